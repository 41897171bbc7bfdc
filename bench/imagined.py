"""Pages without a site: what each page of the benchmark's forum causes, for clients that download nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import orjson

from bench.pages import (
    COMMENTS_PER_PAGE,
    MAX_COMMENTS,
    POSTS_PER_FORUM,
    POSTS_PER_PAGE,
    comment_count,
    comment_pages,
    render,
)
from threadmill.crawl.extraction import Extractor
from threadmill.crawl.reference import PageReference
from threadmill.model.source import load_source
from threadmill.model.task import Task
from threadmill.store.filters import fingerprint
from threadmill.store.work import Child, Lease, Met, PageCommit, When

SOURCE = "bbs"
MARGIN = 10
"""`stages.list.margin` of a source that does not say otherwise."""
_SAMPLES = 30
_MARK = b'"@'
"""Stands in a sample for the quote and the number that all its ids begin with."""


@dataclass(frozen=True, slots=True)
class Imagined:
    """The commits of the three stages' pages, as the services' own would be.

    posts: samples of a post's item; comments: by page number, samples of a full page's items. They were read from the
    forum's longest posts by the source's rules, once; a page takes the next ones and puts its own ids in, because to
    read each anew would cost a client more than the store does.
    """

    posts: Iterator[bytes]
    comments: Mapping[int, Iterator[Sequence[bytes]]]

    @classmethod
    def from_source(cls, file: Path) -> "Imagined":
        """By the rules of a source file for the forum's three interfaces."""
        source = load_source(file)
        details, threads = Extractor(source, "detail"), Extractor(source, "comment")
        # No number that a year begins with.
        longest = [post for post in range(3_000, 9_000) if comment_count(post) == MAX_COMMENTS][:_SAMPLES]
        pages = range(1, comment_pages(longest[0]) + 1)
        return cls(
            cycle([_samples(details, post, 1)[0] for post in longest]),
            {page: cycle([_samples(threads, post, page) for post in longest]) for page in pages},
        )

    def commit(self, stage: str, lease: Lease) -> PageCommit:
        """What the leased page causes."""
        this = PageReference.load(lease.record.payload, SOURCE)
        page = PageCommit(lease.id, key=this.key)
        {"list": self._list, "detail": self._detail, "comment": self._comments}[stage](this, page)
        return page

    def _list(self, this: PageReference, page: PageCommit) -> None:
        # As the list scanner: on to the next page if this one brought something new, also at its end. A page holds more
        # posts than the margin, so one that brought nothing is the last.
        page.met = Met.REMEMBER
        first = int(this.key) * POSTS_PER_FORUM + (this.number - 1) * POSTS_PER_PAGE
        for post in range(first, first + POSTS_PER_PAGE):
            version = f"2025-01-01T00:00:00Z|{comment_count(post)}"
            page.subtasks.append(Task("detail", SOURCE, str(post), version=version, depth=1, parent=this.key))
        if this.number * POSTS_PER_PAGE < POSTS_PER_FORUM:
            _follow(page, this, MARGIN)

    def _detail(self, this: PageReference, page: PageCommit) -> None:
        page.items.append(next(self.posts).replace(_MARK, _beginning(this.key)))
        if count := comment_count(int(this.key)):
            page.subtasks.append(Task("comment", SOURCE, this.key, version=str(count), depth=2, parent=this.key))

    def _comments(self, this: PageReference, page: PageCommit) -> None:
        post = int(this.key)
        rows = min(COMMENTS_PER_PAGE, comment_count(post) - (this.number - 1) * COMMENTS_PER_PAGE)
        mine = _beginning(this.key)
        page.items.extend(item.replace(_MARK, mine) for item in next(self.comments[this.number])[:rows])
        if this.number < comment_pages(post):
            _follow(page, this)


def root(task: Task) -> bytes:
    """The first page of a task, as the stages' spiders queue it."""
    return PageReference.of(task, 1).dump()


def _follow(page: PageCommit, this: PageReference, margin: int = 0) -> None:
    following = this.following(this.number + 1, this.params)
    page.fingerprint = _fingerprint(this)
    when = When.SOMETHING_NEW if margin else When.ALWAYS
    page.children.append(Child(following.dump(), _fingerprint(following), when=when, margin=margin))


def _fingerprint(page: PageReference) -> str:
    return fingerprint(f"{page.key}\n{page.number}")


def _beginning(post: str) -> bytes:
    return b'"' + post.encode()


def _samples(extractor: Extractor, post: int, number: int) -> list[bytes]:
    url = extractor.url(str(post), number, {})
    body = render(url.removeprefix(extractor.source.base_url).encode())
    assert body is not None
    extract = extractor.extract(body, url=url, encoding=None, key=str(post), page=number, params={})
    return [orjson.dumps(item).replace(_beginning(str(post)), _MARK) for item in extract.items]
