"""The simulated forum: what stands on it at a moment, as a pure function of seed, configuration and time."""

from dataclasses import dataclass, field

from demo_forum.comments import Comments
from demo_forum.config import ForumConfig
from demo_forum.dice import Dice
from demo_forum.history import Event, Happening, history
from demo_forum.post import FIRST_NUMBER, first_post, new_post

__all__ = ["Board", "Forum", "ForumConfig"]


@dataclass(slots=True)
class Board:
    """The posts of one forum id, oldest first. `version` moves whenever a list page of it changes."""

    posts: list[Comments] = field(default_factory=list)
    version: int = 0

    def page(self, number: int, size: int) -> list[Comments]:
        """List page `number` (from 1) at `size` posts a page, newest first; empty past the end."""
        end = len(self.posts) - (number - 1) * size
        return self.posts[max(end - size, 0) : end][::-1] if end > 0 else []


class Forum:
    """The forum of `config`, at second 0 until `advance` takes it further.

    Its state is what the events up to the present left behind. The events are fixed by the configuration, so
    two forums taken to the same second are equal, whatever the steps.
    """

    def __init__(self, config: ForumConfig) -> None:
        self.config = config
        self.boards = {number: Board() for number in range(1, config.forums + 1)}
        self._standing: dict[int, Comments] = {}
        # The standing posts' numbers again, in an order that makes drawing and removing one cheap.
        self._numbers: list[int] = []
        self._born = config.first_posts
        for index in range(config.first_posts):
            self._add(Comments(first_post(config, index)))
        self._events = history(config)
        self._next = next(self._events, None)

    def advance(self, second: float) -> None:
        """Lets happen what happens up to `second` since serving began. Earlier seconds change nothing."""
        while self._next is not None and self._next.at_s <= second:
            self._happen(self._next)
            self._next = next(self._events, None)

    def post(self, number: int) -> Comments | None:
        """The standing post with that number and its comments."""
        return self._standing.get(number)

    def is_deleted(self, number: int) -> bool:
        """Whether there was such a post that is no more."""
        return FIRST_NUMBER <= number < FIRST_NUMBER + self._born and number not in self._standing

    def posts(self) -> list[tuple[Comments, int]]:
        """Every standing post, oldest first, with its present number of comments.

        Comments are only ever added at the end, so each first `count` of them stay what they are now, however
        slowly a reader walks through the answer.
        """
        return [(comments, comments.count) for comments in self._standing.values()]

    def _happen(self, event: Event) -> None:
        if event.what is Happening.NEW_POST:
            self._add(Comments(new_post(self.config, event.number, event.at_s)))
            self._born += 1
        elif self._numbers:
            place = Dice(self.config.seed, event.what.name, event.number).below(len(self._numbers))
            if event.what is Happening.NEW_COMMENT:
                comments = self._standing[self._numbers[place]]
                comments.append(event.at_s)
                self.boards[comments.post.forum].version += 1
            else:
                self._delete(place)

    def _add(self, comments: Comments) -> None:
        post = comments.post
        self._standing[post.number] = comments
        self._numbers.append(post.number)
        board = self.boards[post.forum]
        board.posts.append(comments)
        board.version += 1

    def _delete(self, place: int) -> None:
        number = self._numbers[place]
        self._numbers[place] = self._numbers[-1]
        self._numbers.pop()
        comments = self._standing.pop(number)
        board = self.boards[comments.post.forum]
        board.posts.remove(comments)
        board.version += 1
