"""What the simulated forum is like: its size, its stragglers, its growth."""

import math
from dataclasses import dataclass

from demo_forum.setting import require_types, setting

NEWEST, ACTIVE = "newest", "active"
"""Orders of a list: by when a post was written, or by when something was last written about it."""


@dataclass(frozen=True, slots=True)
class ForumConfig:
    """The shape of a forum. Together with a time it decides every byte the forum says.

    Growth runs from second 0, when serving begins, to `growth_seconds`. With all three rates at 0, as by
    default, the forum stands still. Raises ValueError for values that make no forum.
    """

    seed: int = setting(1, "the forum's seed: the same seed makes the same forum")
    forums: int = setting(10, "number of forums")
    pages_per_forum: int = setting(5, "list pages of each forum at second 0")
    posts_per_page: int = setting(20, "posts on a list page")
    mean_comments: float = setting(20.0, "mean number of comments of a post at second 0, heavy-tailed")
    comments_per_page: int = setting(20, "comments on a comment page")
    list_order: str = setting(NEWEST, f"what a list shows first: {NEWEST} posts, or those that were {ACTIVE} last")
    pinned: int = setting(0, "posts of each forum that stand above all others, the oldest ones")
    straggler_share: float = setting(0.0, "share of posts (0 to 1) whose comment tree is far longer")
    straggler_factor: int = setting(10, "how many times longer a straggler's comment tree is")
    new_posts_per_minute: float = setting(0.0, "new posts, per minute, over all forums")
    new_comments_per_minute: float = setting(0.0, "new comments on standing posts, per minute")
    deletions_per_minute: float = setting(0.0, "posts deleted, per minute, over all forums")
    growth_seconds: float | None = setting(None, "seconds after which growth and deletions stop")

    def __post_init__(self) -> None:
        require_types(self)
        for name in ("forums", "pages_per_forum", "posts_per_page", "comments_per_page", "straggler_factor"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.list_order not in (NEWEST, ACTIVE):
            raise ValueError(f"list_order must be {NEWEST} or {ACTIVE}, not {self.list_order}")
        if self.pinned < 0:
            raise ValueError(f"pinned must be at least 0, not {self.pinned}")
        rates = ("new_posts_per_minute", "new_comments_per_minute", "deletions_per_minute")
        for name in ("mean_comments", *rates):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value}")
        if not 0 <= self.straggler_share <= 1:
            raise ValueError(f"straggler_share must be from 0 to 1, not {self.straggler_share}")
        if self.growth_seconds is not None and not self.growth_seconds >= 0:
            raise ValueError(f"growth_seconds must be at least 0, not {self.growth_seconds}")

    @property
    def first_posts(self) -> int:
        """Number of posts at second 0."""
        return self.forums * self.pages_per_forum * self.posts_per_page
