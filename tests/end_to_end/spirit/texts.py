"""What people write in the seeded forum: many scripts, and all that Spirit's Markdown can do to a text."""

# ruff: noqa: RUF001 - letters that look alike are meant
from random import Random

_WORDS = """
forum topic reply weather garden engine bridge ticket morning winter question answer idea number window river
naïve café Straße smörgåsbord żółw crème açaí Ελλάδα Москва погода вопрос дерево
公園 天気 質問 論壇 回覆
今天 한국어 안녕하세요 שלום مرحبا ไทย tiếng Việt हिन्दी
😀 🚲 ½ € ≠ “quoted” <tag> & &amp; 100% C:\\temp a_b_c 2*3*4
"""
WORDS = tuple(_WORDS.split())

_NICKNAMES = """
anna|bob|Çağla|Дмитрий|Ελένη|françois|グリーン|Håkon|李小龙|
jürgen|김민준|Łukasz|مريم|Nguyễn|o'neil|Päivi|q & a|<rené>|
सीता|tom_66|Ürün|دانيال|z.z+z
"""
NICKNAMES = (*(name.strip() for name in _NICKNAMES.split("|")), "a" * 60)

TITLES = (
    "今日の天気はどうですか",
    "Wie wird das Wetter?",
    "Что вы думаете о погоде?",
    "😀🚲",  # these two have an empty slug
    "!!! ???",
    "<script>alert(1)</script>",
    'Tom & Jerry\'s "best" &amp; worst',
    "مرحبا بالعالم",
    "x" * 255,
    "   spaces   inside   ",
    "slash/../and\\back",
    "100% of ½",
    "안녕하세요 여러분",
    "../../etc/passwd",
    "page=2&page=3",
)


def sentence(random: Random, least: int = 3, most: int = 25) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(least, most)))


def title(random: Random, number: int) -> str:
    return TITLES[number] if number < len(TITLES) else f"{sentence(random, 2, 8)} #{number}"[:255]


def text(random: Random) -> str:
    """A comment in Markdown."""
    blocks = [random.choice(_BLOCKS)(random) for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5)))]
    return "\n\n".join(blocks)


def _styled(random: Random) -> str:
    mark = random.choice(("**", "*", "`", "~~"))
    return f"{sentence(random)} {mark}{random.choice(WORDS[:16])}{mark} {sentence(random)}"


def _list(random: Random) -> str:
    return "\n".join(f"{random.choice(('*', '1.'))} {sentence(random, 1, 6)}" for _ in range(random.randint(1, 4)))


def _quote(random: Random) -> str:
    return f"> @{random.choice(('anna', 'bob', 'nobody'))} said:\n> {sentence(random)}\n\n{sentence(random)}"


def _code(random: Random) -> str:
    return f"```\nif a < b && c:\n    print('{random.choice(WORDS)}')\n\n  done\n```"


_BLOCKS = (
    sentence,
    sentence,
    sentence,
    _styled,
    _list,
    _quote,
    _code,
    lambda random: f"{sentence(random)}\n{sentence(random)}\n{sentence(random)}",  # line breaks
    lambda random: f"## {sentence(random, 1, 5)}\n\n{sentence(random)}",
    lambda random: f"{sentence(random)} :smile: :+1: :no_such_emoji: @anna @nobody",
    lambda random: f'[{sentence(random, 1, 3)}](https://example.com/?a=1&b=2 "title") https://example.com/{"x" * 80}',
    lambda random: f"![{sentence(random, 1, 2)}](https://example.com/a.png)",
    lambda random: "| a | b |\n|---|---|\n| 1 | ü |",
    lambda random: f"<b>{sentence(random, 1, 3)}</b><br><!-- {sentence(random, 1, 2)} -->",
    lambda random: r"\(a < b\) and $$\sum_{i} x_i$$",
    lambda random: "line  with  double  blanks\u00a0and\u3000wide ones\t.",
)
