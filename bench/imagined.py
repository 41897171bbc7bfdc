"""Pages without a site: what each page of the benchmark's forum causes, for clients that download nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import orjson

from bench.pages import COMMENTS_PER_PAGE, POSTS_PER_FORUM, POSTS_PER_PAGE, comment_count, comment_pages, render
from threadmill.crawl.extraction import Extractor
from threadmill.crawl.reference import PageReference
from threadmill.model.source import load_source
from threadmill.model.task import Task
from threadmill.store.filters import fingerprint
from threadmill.store.work import Child, Lease, PageCommit, When

SOURCE = "bbs"
_SAMPLES = 50  # different pages' items, so that their sizes are spread as the forum's are


@dataclass(frozen=True, slots=True)
class Imagined:
    """The commits of the three stages' pages, as the services' own would be.

    posts: items of post pages; comments: of full comment pages, each item by itself. Both were read from the forum's
    pages by the source's rules, once; a page takes the next ones, because to read each would cost a client more than
    the store does.
    """

    posts: Iterator[bytes]
    comments: Iterator[Sequence[bytes]]

    @classmethod
    def from_source(cls, file: Path) -> "Imagined":
        """By the rules of a source file for the forum's three interfaces."""
        source = load_source(file)
        details, threads = Extractor(source, "detail"), Extractor(source, "comment")
        full = [post for post in range(1, 1000) if comment_count(post) >= COMMENTS_PER_PAGE][:_SAMPLES]
        return cls(
            cycle([item for post in full for item in _items(details, str(post), 1)]),
            cycle([_items(threads, str(post), 1) for post in full]),
        )

    def commit(self, stage: str, lease: Lease) -> PageCommit:
        """What the leased page causes."""
        this = PageReference.load(lease.record.payload, SOURCE)
        page = PageCommit(lease.id)
        {"list": self._list, "detail": self._detail, "comment": self._comments}[stage](this, page)
        return page

    def _list(self, this: PageReference, page: PageCommit) -> None:
        # As the list scanner: on to the next page if this one brought something new, and once if it did not.
        first = int(this.key) * POSTS_PER_FORUM + (this.number - 1) * POSTS_PER_PAGE
        for post in range(first, first + POSTS_PER_PAGE):
            version = f"2025-01-01T00:00:00Z|{comment_count(post)}"
            page.subtasks.append(Task("detail", SOURCE, str(post), version=version, depth=1, parent=this.key))
        if this.number * POSTS_PER_PAGE < POSTS_PER_FORUM:
            _follow(page, this, When.SOMETHING_NEW)
            _follow(page, this, When.NOTHING_NEW)

    def _detail(self, this: PageReference, page: PageCommit) -> None:
        page.items.append(next(self.posts))
        if count := comment_count(int(this.key)):
            page.subtasks.append(Task("comment", SOURCE, this.key, version=str(count), depth=2, parent=this.key))

    def _comments(self, this: PageReference, page: PageCommit) -> None:
        post = int(this.key)
        rows = min(COMMENTS_PER_PAGE, comment_count(post) - (this.number - 1) * COMMENTS_PER_PAGE)
        page.items.extend(next(self.comments)[:rows])
        if this.number < comment_pages(post):
            _follow(page, this, When.ALWAYS)


def root(task: Task) -> bytes:
    """The first page of a task, as the stages' spiders queue it."""
    return PageReference.of(task, 1).dump()


def _follow(page: PageCommit, this: PageReference, when: When) -> None:
    stale = this.stale + 1 if when is When.NOTHING_NEW else 0
    following = this.following(this.number + 1, this.params, stale=stale)
    page.fingerprint = _fingerprint(this)
    page.children.append(Child(following.dump(), _fingerprint(following), when=when))


def _fingerprint(page: PageReference) -> str:
    return fingerprint(f"{page.key}\n{page.number}")


def _items(extractor: Extractor, key: str, number: int) -> list[bytes]:
    url = extractor.url(key, number, {})
    body = render(url.removeprefix(extractor.source.base_url).encode())
    assert body is not None
    extract = extractor.extract(body, url=url, encoding=None, key=key, page=number, params={})
    return [orjson.dumps(item) for item in extract.items]
