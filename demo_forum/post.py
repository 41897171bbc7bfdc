"""One post of the forum: what never changes about it, drawn from its number."""

import math
from dataclasses import dataclass

from demo_forum import words
from demo_forum.config import ForumConfig
from demo_forum.dice import Dice
from demo_forum.moment import EPOCH_S, iso
from demo_forum.row import PostRow

# The first post's number; ids are numbers as text, and larger ones are newer.
FIRST_NUMBER = 100_001
# Seconds between two posts of the time before serving began.
_GAP_S = 420

# Comment counts: this share of the posts has none; the others follow a Lomax (shifted Pareto) distribution
# with exponent _ALPHA, cut off at _CUT times its scale: for a mean of 20, about 1 post in 120 has
# more than 300 comments, and none over 820.
_SILENT_SHARE = 0.35
_ALPHA = 1.5
_CUT = 45
# The mean of that distribution in units of its scale: the integral of (1 + x) ** -_ALPHA from 0 to _CUT.
_MEAN: float = (1 - (1 + _CUT) ** (1 - _ALPHA)) / (_ALPHA - 1)
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Post:
    """A post as it was born. Times in seconds since 1970.

    It had `first_comments` comments when serving began, the last of them at `first_replies_until_s`.
    """

    seed: int
    number: int
    forum: int
    published_s: int
    first_comments: int
    first_replies_until_s: int

    @property
    def post_id(self) -> str:
        """The id the forum shows."""
        return str(self.number)

    def row(self, comment_count: int) -> PostRow:
        """The post's content when it has `comment_count` comments.

        Views move with the comments only: a page whose content changed while nothing in the list told so
        could not be collected completely by anybody.
        """
        dice = self._dice()
        return PostRow(
            post_id=self.post_id,
            forum_id=str(self.forum),
            author=words.author(dice),
            title=words.title(dice),
            views=dice.below(500) + 7 * comment_count,
            body=words.post_body(dice),
            published_at=iso(self.published_s),
            comment_count=comment_count,
        )

    def author_and_title(self) -> tuple[str, str]:
        """What a list shows of `row`, without the cost of the body."""
        dice = self._dice()
        return words.author(dice), words.title(dice)

    def _dice(self) -> Dice:
        return Dice(self.seed, "post", self.number)


def first_post(config: ForumConfig, index: int) -> Post:
    """The `index`-th post (from 0, oldest first) of those there are when serving begins."""
    dice = Dice(config.seed, "first", index)
    published_s = EPOCH_S - (config.first_posts - index) * _GAP_S + dice.below(_GAP_S)
    comments = _first_comments(config, index)
    if dice.share() < config.straggler_share:
        comments = max(comments, 1) * config.straggler_factor
    return Post(
        seed=config.seed,
        number=FIRST_NUMBER + index,
        forum=index % config.forums + 1,
        published_s=published_s,
        first_comments=comments,
        first_replies_until_s=published_s + int((EPOCH_S - published_s) * (0.05 + 0.9 * dice.share())),
    )


def new_post(config: ForumConfig, index: int, at_s: float) -> Post:
    """The `index`-th post (from 0) of those written while serving, at second `at_s`."""
    published_s = EPOCH_S + int(at_s)
    return Post(
        seed=config.seed,
        number=FIRST_NUMBER + config.first_posts + index,
        forum=Dice(config.seed, "new", index).below(config.forums) + 1,
        published_s=published_s,
        first_comments=0,
        first_replies_until_s=published_s,
    )


def _first_comments(config: ForumConfig, index: int) -> int:
    """How many comments the `index`-th post starts with.

    The quantiles follow the golden-ratio sequence instead of free draws. It fills the distribution evenly, so
    the forum's total stays close to its mean for every seed, although single posts differ a thousandfold.
    """
    quantile = (Dice(config.seed, "comments").share() + index * _GOLDEN) % 1
    if quantile < _SILENT_SHARE:
        return 0
    rest = (1 - quantile) / (1 - _SILENT_SHARE)
    scale = config.mean_comments / (1 - _SILENT_SHARE) / _MEAN
    return round(scale * min(math.pow(rest, -1 / _ALPHA) - 1, _CUT))
