# ruff: noqa: E501, RUF001  Word lists read best side by side; Chinese has punctuation of its own.
"""What people on the forum are called and what they say, in several languages and scripts."""

from demo_forum.dice import Dice

_AUTHORS = (
    "ada", "bergur", "chloé", "dmitri", "Ængus", "François", "grace_h", "Håkon", "İpek", "jörg", "Kőszegi", "li.wei",
    "Łukasz", "mañana", "ñandú", "Øyvind", "平凡的猫", "quokka", "小雨", "São_Tomé", "Θαλής", "unicode🙂", "王小明",
    "xX_night_Xx", "Юлия", "早起的鸟", "ŽofieK", "深夜食堂", "o'neill", "한별", "さくら", "Tom & Jerry",
)  # fmt: skip

# Openings and claims of one language combine freely: 10 by 10 sentences in each.
_LANGUAGES = (
    (
        (
            "After three weeks with it, ", "Honestly, ", "If you ask the neighbours, ", "Last night ", "On the other hand ",
            "To be fair, ", "Nobody told us that ", "As of this morning ", "From what I can see ", "Against all advice ",
        ),
        (
            "the night bus still leaves ten minutes early. ", "the water pressure on the sixth floor has come back. ",
            "prices at the market went up by 4 % again. ", "the new ferry timetable makes no sense at all. ",
            "the repair took longer than building the thing. ", "the park is full before nine on any dry Sunday. ",
            "it works, \"mostly\", as long as you don't touch it. ", "the council counts votes & complaints separately. ",
            "my old phone <still> gets a better signal there. ", "the bakery's rye bread is worth the queue. ",
        ),
    ),
    (
        (
            "说实话，", "昨天晚上", "据邻居讲，", "用了三个星期以后，", "不管怎么说，",
            "今天早上", "按照官方的说法，", "我个人觉得", "令人意外的是，", "上个月开始，",
        ),
        (
            "地铁末班车还是提前十分钟开走了。", "六楼的水压终于恢复正常。", "菜市场的价格又涨了百分之四。",
            "新的轮渡时刻表完全看不懂！", "修理的时间比建造的时间还长。", "公园一到周日就挤满了人，九点以前就没有位子。",
            "大家都在讨论这件事，可是没有人去反映。", "那家面包店值得排队，真的。", "信号比以前好多了，视频也不卡了。",
            "物业回复说“正在处理”，已经处理了两个月。",
        ),
    ),
    (
        (
            "Franchement, ", "D'après les voisins, ", "À mon avis, ", "Depuis hier soir, ", "Naïvement, ",
            "Après trois semaines, ", "Ça alors : ", "Où qu'on aille, ", "Évidemment, ", "Malgré tout, ",
        ),
        (
            "le dernier métro part toujours dix minutes trop tôt. ", "la pression d'eau est enfin revenue. ",
            "les prix du marché ont encore augmenté. ", "l'horaire du bac n'a ni queue ni tête. ",
            "la réparation dure plus longtemps que prévu. ", "le parc est complet dès neuf heures. ",
            "ça marche, à condition de n'y pas toucher. ", "la mairie compte les plaintes à part. ",
            "le vieux téléphone capte mieux là-bas. ", "le pain de seigle vaut bien la queue. ",
        ),
    ),
    (
        (
            "Ehrlich gesagt: ", "Según los vecinos, ", "Übrigens, ", "Por cierto, ", "Seit gestern gilt: ",
            "Mañana, ", "По словам соседей, ", "Если честно, ", "正直なところ、", "昨日から",
        ),
        (
            "größer als die Baustelle ist nur der Ärger. ", "¿quién paga la reparación del ascensor? ",
            "der Nachtbus fährt weiterhin zu früh. ", "el pan de centeno está buenísimo. ",
            "автобус опять ушёл раньше времени. ", "цены на рынке снова выросли. ",
            "バスはまた十分早く出ました。", "公園は朝九時前にもう満員です。",
            "schöne Grüße aus dem sechsten Stock! ", "mañana será otro día. ",
        ),
    ),
)  # fmt: skip

# Some of several code points: a flag, a family, a skin tone, a base letter with a combining accent.
_REACTIONS = ("😀", "👍🏽", "🇮🇸", "👩‍👩‍👧", "🚌💨", "🍞", "é", "…", "+1", "🐼🐼", "¯\\_(ツ)_/¯", "¡¡!!")

_TOPICS = (
    "Night bus", "Water pressure", "Market prices", "Ferry timetable", "Lift repair", "Sunday in the park", "Rye bread",
    "末班车又早走了", "六楼水压", "菜价", "轮渡时刻表", "周日公园", "Le dernier métro", "Pain de seigle", "Größte Baustelle",
    "¿Quién paga el ascensor?", "Опять автобус", "公園の朝", "Signal 📶", "Neighbours & noise",
)  # fmt: skip
_ANGLES = (
    "any news?", "a complaint", "photos inside", "for the record", "please read first", "大家怎么看？", "求助", "更新了",
    "déjà vu", "à suivre", "warum nur?", "¡por fin!", "что делать?", "🎉", "part 2", "the \"official\" answer",
)  # fmt: skip


def author(dice: Dice) -> str:
    """An author's name; the same few hundred people write everything."""
    name = dice.pick(_AUTHORS)
    return f"{name}{dice.below(12)}" if dice.below(3) else name


def title(dice: Dice) -> str:
    """A post's title."""
    return f"{dice.pick(_TOPICS)}: {dice.pick(_ANGLES)}"


def post_body(dice: Dice) -> str:
    """A post's text: paragraphs of some 600 to 3,300 bytes of UTF-8 together."""
    sentences = 10 + dice.below(31)
    parts = []
    for position in range(1, sentences + 1):
        parts.append(_sentence(dice))
        if position % 6 == 0:
            parts.append("\n\n")
    return "".join(parts).strip()


def comment_body(dice: Dice) -> str:
    """A comment's text: one or two sentences, often with a reaction, sometimes just that."""
    kind = dice.below(10)
    if kind == 0:
        return dice.pick(_REACTIONS)
    text = _sentence(dice) if kind < 8 else _sentence(dice) + _sentence(dice)
    if kind % 3 == 0:
        text += dice.pick(_REACTIONS)
    if kind == 1:
        text = f"@{author(dice)}\n{text}"
    return text.strip()


def _sentence(dice: Dice) -> str:
    openings, claims = dice.pick(_LANGUAGES)
    return dice.pick(openings) + dice.pick(claims)
