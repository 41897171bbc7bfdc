"""The site's times are those of the wire."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from bench.watched_site import WatchedSite

LATENCY_S = 0.05
SLACK_S = 0.05


def _render(path: bytes) -> bytes | None:
    return b'"here"' if path == b"/here" else None


@pytest.fixture
def site() -> Iterator[WatchedSite]:
    with WatchedSite(_render, LATENCY_S) as site:
        site.start()
        yield site


def _get(site: WatchedSite, path: str) -> bytes:
    with urllib.request.urlopen(site.url + path, timeout=5) as answer:
        body: bytes = answer.read()
    return body


def test_a_visit_is_noted_when_it_arrives_and_when_it_is_answered(site: WatchedSite) -> None:
    # When a page is asked for
    begin = time.perf_counter()
    assert _get(site, "/here") == b'"here"'
    end = time.perf_counter()
    # Then its request came at once, and its answer after the site's latency
    visit = site.visit("/here", 1.0)
    assert begin < visit.arrived_s < begin + SLACK_S
    assert LATENCY_S <= visit.sent_s - visit.arrived_s < LATENCY_S + SLACK_S
    assert visit.sent_s < end


def test_the_first_visit_counts(site: WatchedSite) -> None:
    for _ in range(2):
        _get(site, "/here")
    # A visit is noted after its answer went out.
    first = site.visit("/here", 5.0)
    deadline = time.monotonic() + 5.0
    while len(site.visits) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(site.visits) == 2
    assert site.visits[0] == first == site.visit("/here", 0.0)


def test_pages_that_are_not_there(site: WatchedSite) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        _get(site, "/elsewhere")


def test_nobody_comes(site: WatchedSite) -> None:
    with pytest.raises(TimeoutError, match="/here"):
        site.visit("/here", 0.05)


def test_connections_wait_for_the_start() -> None:
    # Given a site that is not started, and a second one
    with WatchedSite(_render) as late, WatchedSite(_render) as other:
        other.start()
        late.start()
        # Then each answers on its own port
        assert late.url != other.url
        assert _get(late, "/here") == b'"here"'
        assert [visit.path for visit in other.visits] == []
