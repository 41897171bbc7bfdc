"""The simulated forum: what stands on it at a moment, as a pure function of seed, configuration and time."""

from demo_forum.board import Board
from demo_forum.comments import Comments
from demo_forum.config import ACTIVE, ForumConfig
from demo_forum.dice import Dice
from demo_forum.history import Event, Happening, history
from demo_forum.post import FIRST_NUMBER, first_post, new_post

__all__ = ["Board", "Forum", "ForumConfig"]


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
        for board in self.boards.values():
            if config.list_order == ACTIVE:
                board.posts.sort(key=lambda comments: comments.active_s)
            board.pin(config.pinned)
        self._second = 0.0
        self._events = history(config)
        self._next = next(self._events, None)

    def advance(self, second: float) -> None:
        """Lets happen what happens up to `second` since serving began. Earlier seconds change nothing."""
        self._second = max(self._second, second)
        while self._next is not None and self._next.at_s <= second:
            self._happen(self._next)
            self._next = next(self._events, None)

    def post(self, number: int) -> Comments | None:
        """The standing post with that number and its comments."""
        return self._standing.get(number)

    def is_deleted(self, number: int) -> bool:
        """Whether there was such a post that is no more."""
        return FIRST_NUMBER <= number < FIRST_NUMBER + self._born and number not in self._standing

    def grow(self, number: int, many: int) -> bool:
        """Adds so many comments to a post, now, whatever its history says; False if it does not stand."""
        comments = self._standing.get(number)
        if comments is None:
            return False
        for _ in range(many):
            self._comment(comments, self._second)
        return True

    def delete(self, number: int) -> bool:
        """Deletes a post, now, whatever its history says; False if it does not stand."""
        if number in self._standing:
            self._delete(self._numbers.index(number))
            return True
        return False

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
                self._comment(self._standing[self._numbers[place]], event.at_s)
            else:
                self._delete(place)

    def _comment(self, comments: Comments, at_s: float) -> None:
        comments.append(at_s)
        self.boards[comments.post.forum].commented(comments, bump=self.config.list_order == ACTIVE)

    def _add(self, comments: Comments) -> None:
        post = comments.post
        self._standing[post.number] = comments
        self._numbers.append(post.number)
        self.boards[post.forum].add(comments)

    def _delete(self, place: int) -> None:
        number = self._numbers[place]
        self._numbers[place] = self._numbers[-1]
        self._numbers.pop()
        comments = self._standing.pop(number)
        self.boards[comments.post.forum].remove(comments)
