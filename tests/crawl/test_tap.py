"""Items are the same whether they are taken at the callback or go through what stands between it and the engine."""

from __future__ import annotations

from typing import Any

import pytest

from crawl.conftest import StageUnderTest

ENVIRONMENT = {"THREADMILL_MAX_FAILURES": "1", "THREADMILL_IDLE_CLOSE_MS": "300"}
ONLOOKER = {"SPIDER_MIDDLEWARES": {"crawl.taps.Onlooker": 500}}
PIPELINE = {"ITEM_PIPELINES": {"crawl.taps.Passing": 300}}
BUG = "the callback has a bug"

TWO = ["generator", "list", "tuple", "iterator", "async", "coroutine", "items"]
ONE = ["dict", "coroutinedict"]
NONE = ["none", "coroutinenone"]
RAISE = ["raise", "asyncraise"]
AGAIN = ["replace", "flaky"]


def collect(stage: StageUnderTest, *kinds: str, **settings: Any) -> dict[str, list[Any]]:
    """What the callbacks of these kinds gave, by path."""
    stage.submit(*(f"{kind}/x" for kind in kinds))
    stage.run(module="crawl.taps", environment=ENVIRONMENT, **settings)
    assert stage.books.leased == 0
    assert stage.books.balanced
    items: dict[str, list[Any]] = {}
    for item in stage.items():
        items.setdefault(item["path"], []).append(item["extra"])
    return items


@pytest.mark.parametrize(
    "settings", [{}, ONLOOKER, PIPELINE], ids=["at the callback", "past a middleware", "through item pipelines"]
)
def test_items_are_the_same_whoever_looks_on(stage: StageUnderTest, settings: dict[str, Any]) -> None:
    # Given callbacks of every kind: generators, coroutines, functions, none at all; some fail after an item, one yields
    # its own request again, and one page fails once, so that an errback asks for it again
    items = collect(stage, *TWO, *ONE, *NONE, *RAISE, *AGAIN, "default", **settings)
    # Then each item is there once, in whatever way it was given, in its order
    assert {path: items.pop(path) for path in [f"/{kind}/x" for kind in TWO]} == {f"/{kind}/x": [1, 2] for kind in TWO}
    assert {path: items.pop(path) for path in [f"/{kind}/x" for kind in ONE]} == {f"/{kind}/x": [1] for kind in ONE}
    assert items.pop("/default/x") == [{}]
    # And requests that were copied kept their callbacks, which saw themselves
    assert items.pop("/replace/x") == ["1 by on_replace", "2 by on_replace"]
    assert (items.pop("error"), items.pop("/flaky/x")) == (["on_flaky"], [1])
    # And what failed has committed nothing, and is parked
    assert items == {}
    assert [letter.error for letter in stage.dead()] == [f"ValueError: {BUG}"] * 2
    # And all are counted; who looks on has seen those of the failed callbacks as well
    assert stage.stat("item_scraped_count") == len(stage.items()) + (2 if settings is PIPELINE else 0)
    assert stage.stat("items_seen") == (len(stage.items()) + 2 if settings is ONLOOKER else 0)


def test_middlewares_that_change_items_and_recover_from_failures_are_asked(stage: StageUnderTest) -> None:
    # Given one middleware that has an item for callbacks that fail, and one that changes first items and drops second
    settings = {"SPIDER_MIDDLEWARES": {"crawl.taps.Recovering": 500, "crawl.taps.Tagging": 400}}
    kinds = ["generator", "list", "async", "dict"]
    items = collect(stage, *kinds, *RAISE, **settings)
    # Then all of that shows, and what came before a failure is there with what made up for it
    assert items == {**{f"/{kind}/x": ["tagged"] for kind in [*kinds, *RAISE]}, "recovered": [BUG, BUG]}
    assert stage.books.done == len(kinds + RAISE)
