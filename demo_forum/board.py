"""A board: the posts of one forum id, in the order in which its list shows them."""

from dataclasses import dataclass, field

from demo_forum.comments import Comments


@dataclass(slots=True)
class Board:
    """`posts` are shown last one first, below those that are `pinned`. `version` moves whenever a list page changes."""

    posts: list[Comments] = field(default_factory=list)
    pinned: list[Comments] = field(default_factory=list)
    version: int = 0

    @property
    def size(self) -> int:
        """Posts on it."""
        return len(self.pinned) + len(self.posts)

    def page(self, number: int, size: int) -> list[Comments]:
        """List page `number` (from 1) at `size` posts a page; empty past the end."""
        start = (number - 1) * size
        top = self.pinned[start : start + size]
        end = len(self.posts) - max(start - len(self.pinned), 0)
        rest = size - len(top)
        return top + (self.posts[max(end - rest, 0) : end][::-1] if end > 0 else [])

    def add(self, comments: Comments) -> None:
        """A new post, on top."""
        self.posts.append(comments)
        self.version += 1

    def pin(self, many: int) -> None:
        """Pins the `many` posts that stand lowest."""
        self.pinned, self.posts = self.posts[:many][::-1], self.posts[many:]

    def remove(self, comments: Comments) -> None:
        """A post that was deleted."""
        (self.pinned if comments in self.pinned else self.posts).remove(comments)
        self.version += 1

    def commented(self, comments: Comments, *, bump: bool) -> None:
        """A post got a comment, and goes to the top if the list is ordered by activity; what is pinned stays."""
        if bump and comments not in self.pinned:
            self.posts.remove(comments)
            self.posts.append(comments)
        self.version += 1
