"""Pages without a site cause what the real ones would."""

from typing import Any

import orjson
import pytest

from bench.child import ROOT
from bench.imagined import Imagined, root
from bench.pages import comment_count, comment_pages
from threadmill.model.task import Task
from threadmill.store.work import Lease, PageCommit, Record, When

POST = next(post for post in range(100, 1000) if comment_pages(post) == 3 and comment_count(post) % 20)


@pytest.fixture(scope="module")
def imagined() -> Imagined:
    return Imagined.from_source(ROOT / "sources" / "bbs.toml")


def _lease(payload: bytes) -> Lease:
    return Lease("w.1.1", Record("job", "run", 0, 0, 0, b"", payload))


def _items(page: PageCommit) -> list[dict[str, Any]]:
    return [orjson.loads(item) for item in page.items]


def test_a_list_page_hands_down_its_posts_and_goes_on_if_any_is_new(imagined: Imagined) -> None:
    page = imagined.commit("list", _lease(root(Task("list", "bbs", "7"))))
    assert [task.key for task in page.subtasks] == [str(70_000 + n) for n in range(20)]
    assert [(child.when, child.margin) for child in page.children] == [(When.SOMETHING_NEW, 10)]
    assert not page.items


def test_a_post_is_an_item_and_a_subtask(imagined: Imagined) -> None:
    page = imagined.commit("detail", _lease(root(Task("detail", "bbs", str(POST)))))
    assert [task.stage for task in page.subtasks] == ["comment"]
    assert [(item["type"], item["post_id"]) for item in _items(page)] == [("post", str(POST))]


def test_comment_pages_hold_all_comments_and_lead_to_each_other(imagined: Imagined) -> None:
    payloads, items = [root(Task("comment", "bbs", str(POST)))], []
    for payload in payloads:
        page = imagined.commit("comment", _lease(payload))
        payloads += [child.payload for child in page.children]
        items += _items(page)
    assert len(payloads) == 3
    assert {(item["type"], item["post_id"]) for item in items} == {("comment", str(POST))}
    assert {item["comment_id"] for item in items} == {str(POST * 1000 + n) for n in range(comment_count(POST))}
    assert {item["parent_id"] for item in items} < {None, *(item["comment_id"] for item in items)}
