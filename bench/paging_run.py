"""One replica collects posts with many pages; the depth of its queue is sampled meanwhile."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.crew import Crew, Terms, crew
from bench.slow_site import Post, SlowSite
from threadmill.store.status import Books

_SAMPLE_S = 0.02
_LONGEST_S = 200.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What waited, seconds after the submission: tasks in the stream, requests in the queue, pages leased."""

    seconds: float
    tasks: int
    requests: int
    leased: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """What waited, whenever."""
        return self.tasks, self.requests, self.leased


@dataclass(frozen=True, slots=True)
class PagingRun:
    """One load, collected one way. seconds: from submission to the end; downloads: of comment pages, by the site."""

    load: str
    paging: str
    seconds: float
    pages: int
    downloads: int
    samples: Sequence[Sample]

    @property
    def deepest(self) -> int:
        """The most requests that waited in the queue."""
        return max(sample.requests for sample in self.samples)

    @property
    def most_leased(self) -> int:
        """The most pages that were leased at a time."""
        return max(sample.leased for sample in self.samples)


def paging_runs(
    redis_url: str, site: SlowSite, loads: Mapping[str, Sequence[Post]], terms: Terms
) -> Iterator[PagingRun]:
    """Each load by itself, one after the other. Raises `RuntimeError` unless each page was committed once."""
    with crew(1, redis_url, site.url, terms) as those:
        for load, posts in loads.items():
            run = _collect(those, site, load, posts, terms.paging)
            if run.pages != sum(post.pages for post in posts):
                raise RuntimeError(f"{load} have {sum(post.pages for post in posts)} pages, not {run.pages}")
            yield run


def _collect(those: Crew, site: SlowSite, load: str, posts: Sequence[Post], paging: str) -> PagingRun:
    site.reset()
    done = those.books.done
    begin = time.perf_counter()
    those.submit([post.id for post in posts])
    samples: list[Sample] = []

    def over(now: Books) -> bool:
        samples.append(Sample(time.perf_counter() - begin, now.tasks, now.requests, now.leased))
        # Of a stretch in which nothing moved, its ends are enough.
        if len(samples) > 2 and samples[-1].counts == samples[-2].counts == samples[-3].counts:
            del samples[-2]
        return now.open == 0

    those.until(over, _LONGEST_S, every_s=_SAMPLE_S)
    those.check()
    pages = those.books.done - done
    return PagingRun(load, paging, samples[-1].seconds, pages, site.downloads().all, samples)
