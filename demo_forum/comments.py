"""The comments of one post: a tree, flattened in the order in which a board shows it."""

from array import array
from collections.abc import Iterator

from demo_forum import words
from demo_forum.dice import Dice
from demo_forum.moment import EPOCH_S, iso
from demo_forum.post import Post
from demo_forum.row import CommentRow

# Comment ids are the post's number followed by this many digits of the comment's position: unique everywhere.
_DIGITS = 7
_NO_PARENT = -1


class Comments:
    """The comments of `post`, which only ever grow at the end.

    Position i (from 0) is the i-th comment in thread order: each comment is followed by the answers to it.
    That order holds exactly when every comment answers the post, the comment before it, or an ancestor of
    that one; so the tree is grown by that rule, one comment at a time, and a new comment never moves an older
    one. Only the parents' positions are kept; texts are drawn anew whenever they are asked for.
    """

    __slots__ = ("_later_s", "_parents", "_path", "count", "post")

    def __init__(self, post: Post) -> None:
        self.post = post
        self.count = post.first_comments
        self._later_s: list[int] = []
        self._parents = array("i")
        self._path: list[int] = []

    def append(self, at_s: float) -> None:
        """One more comment, at second `at_s` since serving began."""
        self._later_s.append(EPOCH_S + int(at_s))
        self.count += 1

    @property
    def active_s(self) -> int:
        """When something was last written, in seconds since 1970."""
        return self._published_s(self.count - 1) if self.count else self.post.published_s

    @property
    def last_reply_at(self) -> str | None:
        """When the last comment was written; None while there is none."""
        return iso(self._published_s(self.count - 1)) if self.count else None

    def rows(self, start: int, stop: int) -> Iterator[CommentRow]:
        """The comments at positions `start` to `stop` - 1, as far as there are any."""
        stop = min(stop, self.count)
        self._grow_tree(stop)
        for position in range(start, stop):
            dice = Dice(self.post.seed, "comment", self.post.number, position)
            parent = self._parents[position]
            yield CommentRow(
                comment_id=self._id(position),
                post_id=self.post.post_id,
                parent_id=None if parent == _NO_PARENT else self._id(parent),
                author=words.author(dice),
                body=words.comment_body(dice),
                published_at=iso(self._published_s(position)),
            )

    def _id(self, position: int) -> str:
        return f"{self.post.number}{position:0{_DIGITS}d}"

    def _published_s(self, position: int) -> int:
        post = self.post
        if position >= post.first_comments:
            return self._later_s[position - post.first_comments]
        span_s = post.first_replies_until_s - post.published_s
        return post.published_s + span_s * (position + 1) // post.first_comments

    def _grow_tree(self, size: int) -> None:
        """Decides whom the first `size` comments answer; `_path` leads to the last one decided."""
        for position in range(len(self._parents), size):
            dice = Dice(self.post.seed, "parent", self.post.number, position)
            # A third opens a new thread, a third answers the last comment, the others someone before it.
            way = dice.below(3)
            depth = (0, len(self._path), dice.below(len(self._path) + 1))[way]
            del self._path[depth:]
            self._parents.append(self._path[-1] if self._path else _NO_PARENT)
            self._path.append(position)
