"""commit: everything a page caused, once, and only if its lease is still held."""

from __future__ import annotations

import itertools

import orjson
import pytest

from store.workshop import EXPIRED_MS, Workshop, payloads
from threadmill.model.stages import COMMENT, LIST
from threadmill.model.task import Task
from threadmill.store.filters import fingerprint
from threadmill.store.status import items_waiting, run_books
from threadmill.store.work import Child, Committed, Lease, PageCommit, When


def comments(key: str, **fields: object) -> Task:
    return Task(stage="comment", source="bbs", key=key, **fields)  # type: ignore[arg-type]


def everything_a_page_can_cause() -> dict[str, object]:
    return {
        "fingerprint": fingerprint("root"),
        "outcome": "ignored",
        "children": [Child(b"next", fingerprint("next"), 2), Child(b"free", "")],
        "subtasks": [comments("42", version="3"), comments("43", parent="42", params={"slug": "x"})],
        "items": [b'{"a":1}', b'{"b":2}'],
    }


def test_a_page_commits_all_it_caused(shop: Workshop) -> None:
    # Given a page; when it commits children, subtasks and items
    shop.start("42", b"root", job="j1")
    committed = shop.commit(shop.lease_one(), **everything_a_page_can_cause())
    # Then all of it is there
    assert committed == Committed(True, queued=2, submitted=2, filtered=0)
    assert payloads(shop.lease(5)) == [b"next", b"free"]
    ((_, item),) = shop.client.xrange(shop.lane.items)
    assert (item[b"s"], orjson.loads(item[b"i"])) == (b"detail", [{"a": 1}, {"b": 2}])
    assert items_waiting(shop.client, [shop.lane]) == 2
    tasks = [
        Task.from_fields(fields, source="bbs", stage="comment", entry_id=entry_id)
        for entry_id, fields in shop.client.xrange(shop.lane.stage("comment").tasks)
    ]
    assert [(task.key, task.parent, task.job, task.params) for task in tasks] == [
        ("42", "", "j1", {}),
        ("43", "42", "j1", {"slug": "x"}),
    ]
    # And the books of both stages and of the job say so
    assert (shop.books.accepted, shop.books.done, shop.books.leased) == (3, 1, 2)
    assert run_books(shop.client, shop.lane, "comment").accepted == 2
    job = shop.job("j1")
    assert (job.open, job.accepted, job.done, job.items) == (
        4,
        {"detail": 3, "comment": 2},
        {"detail": 1},
        {"detail": 2},
    )
    assert (shop.stat("items"), shop.stat("submitted"), shop.stat("ignored")) == (2, 2, 1)


def test_a_second_commit_is_fenced(shop: Workshop) -> None:
    # Given a page that was committed
    shop.start("42", b"root", job="j1")
    call = shop.store.commit([PageCommit(shop.lease_one().id, **everything_a_page_can_cause())])  # type: ignore[arg-type]
    assert shop.run(call)[0].ok
    before = shop.everything()
    # When the same commit comes again; then nothing but the count of fenced pages moves
    assert shop.run(call) == [Committed(False, 0, 0, 0)]
    after = shop.everything()
    stats = shop.keys.stats.encode()
    assert {k: v for k, v in after.items() if k != stats} == {k: v for k, v in before.items() if k != stats}
    assert shop.stat("fenced") == 1


def test_a_worker_that_wakes_up_too_late_is_fenced(shop: Workshop) -> None:
    # Given a page whose worker stopped until another took it over
    shop.start("42", b"root")
    slow = shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim()
    quick = shop.lease_one()
    # When both commit; then only the second one's page counts
    assert shop.commit(slow, items=[b'{"by":"slow"}']) == Committed(False, 0, 0, 0)
    assert shop.commit(quick, items=[b'{"by":"quick"}']).ok
    assert [fields[b"i"] for _, fields in shop.client.xrange(shop.lane.items)] == [b'[{"by":"quick"}]']
    assert shop.books.done == 1


def test_an_expired_lease_that_nobody_took_still_commits(shop: Workshop) -> None:
    shop.start("42", b"root")
    assert shop.commit(shop.lease_one(ttl_ms=EXPIRED_MS)).ok


def test_many_pages_travel_together_each_under_its_own_lease(shop: Workshop) -> None:
    # Given four leases, the second of which is lost, and the third of which is named twice
    shop.queue(b"a", b"b", b"c", b"d")
    leases = shop.lease(4)
    shop.run(shop.store.release([leases[1].id]))
    pages = [PageCommit(leases[at].id, items=[b"{}"]) for at in (0, 1, 2, 2, 3)]
    # When all are committed in one call; then each page that was held counts once
    assert [page.ok for page in shop.run(shop.store.commit(pages))] == [True, False, True, False, True]
    assert shop.client.xlen(shop.lane.items) == 3


def test_children_are_queued_once_a_run(shop: Workshop) -> None:
    # Given two runs that meet the same pages
    shop.start("1", b"root1", job="j1")
    shop.start("2", b"root2", job="j1")
    page2 = Child(b"page2", fingerprint("page2"))
    for lease, name in zip(shop.lease(2), ("root1", "root2"), strict=True):
        # When each names a child twice, itself, and one that it knows not
        children = [page2, page2, Child(b"self", fingerprint(name)), Child(b"page3", fingerprint("page3"))]
        committed = shop.commit(lease, fingerprint=fingerprint(name), children=children)
        # Then each page is queued once, in each run
        assert (committed.queued, committed.filtered) == (2, 2)
    # When a child leads back to the root; then that is known too
    assert shop.commit(shop.lease_one(), children=[Child(b"back", fingerprint("root1"))]).filtered == 1
    assert shop.stat("filtered") == 5


def test_children_without_fingerprint_are_not_filtered(shop: Workshop) -> None:
    shop.start("1", b"root")
    assert shop.commit(shop.lease_one(), children=[Child(b"a", ""), Child(b"a", "")]).queued == 2


@pytest.mark.parametrize("brings_news", [True, False])
def test_conditional_children(shop: Workshop, brings_news: bool) -> None:
    # Given a list page, and whether its post is known
    listing = Workshop(shop.client, LIST)
    if not brings_news:
        shop.submit("42", version="3")
    listing.start("1", b"page1")
    # When it commits three follow-ups under the three conditions
    children = [
        Child(when.name.encode(), fingerprint(when.name), when=when)
        for when in (When.SOMETHING_NEW, When.NOTHING_NEW, When.ALWAYS)
    ]
    subtask = Task(stage="detail", source="bbs", key="42", version="3")
    committed = listing.commit(listing.lease_one(), children=children, subtasks=[subtask])
    # Then those are queued whose condition holds; a condition that does not hold is no duplicate
    chosen = b"SOMETHING_NEW" if brings_news else b"NOTHING_NEW"
    assert payloads(listing.lease(5)) == [chosen, b"ALWAYS"]
    assert (committed.submitted, committed.filtered) == ((1, 0) if brings_news else (0, 1))


def test_a_page_is_remembered_even_if_its_first_follow_up_is_not_queued(shop: Workshop) -> None:
    # Given a page whose first follow-up waits for news that did not come
    shop.start("1", b"root")
    children = [Child(b"never", fingerprint("never"), when=When.SOMETHING_NEW), Child(b"next", fingerprint("next"))]
    shop.commit(shop.lease_one(), fingerprint=fingerprint("root"), children=children)
    # When the second one leads back; then the page is known
    assert shop.commit(shop.lease_one(), children=[Child(b"root", fingerprint("root"))]).filtered == 1


def test_subtasks_carry_the_version_that_was_done_before(shop: Workshop) -> None:
    # Given a post met with 3 comments twice, whose comments are collected; then with 5, and once more by force
    commentary = Workshop(shop.client, COMMENT)
    shop.start("1", b"a", b"b", b"c", b"d")

    def meet(lease: Lease, version: str, *, force: bool = False) -> tuple[int, int]:
        page = shop.commit(lease, subtasks=[comments("42", version=version, force=force)])
        return page.submitted, page.filtered

    first, second, third, fourth = shop.lease(4)
    answers = [meet(first, "3"), meet(second, "3")]
    (entry,) = commentary.read()
    assert (b"o" in entry.fields, b"v" in entry.fields) == (False, False)
    commentary.admit(entry, b"comments")
    commentary.commit(commentary.lease_one(), key="42")
    answers += [meet(third, "5"), meet(fourth, "5", force=True)]
    # Then it is submitted when it moved, with what there was and is, and by force to the express stream
    assert answers == [(1, 0), (0, 1), (1, 0), (1, 0)]
    target = shop.lane.stage("comment")
    assert [(fields[b"o"], fields[b"v"]) for _, fields in shop.client.xrange(target.tasks)] == [(b"3", b"5")]
    assert [fields.get(b"o") for _, fields in shop.client.xrange(target.express)] == [None]
    assert run_books(shop.client, shop.lane, "comment").filtered == 1


def test_a_job_is_finished_when_its_last_page_is_done(shop: Workshop) -> None:
    # Given a job of a task with two pages, the second of which hands a task down
    commentary = Workshop(shop.client, COMMENT)
    shop.start("42", b"root", job="j1")
    shop.commit(shop.lease_one(), children=[Child(b"next", "")])
    assert not shop.job("j1").finished
    shop.commit(shop.lease_one(), subtasks=[comments("42")])
    assert not shop.job("j1").finished
    # When that is done too; then the job is finished, and says since when
    (entry,) = commentary.read()
    commentary.admit(entry, b"comments")
    assert shop.job("j1").finished_at_ms is None
    commentary.commit(commentary.lease_one())
    assert shop.job("j1").finished
    assert shop.job("j1").finished_at_ms is not None
    # And when more is asked of it, it is open again
    shop.submit("43", job="j1")
    assert not shop.job("j1").finished
    assert shop.job("j1").finished_at_ms is None


def test_payloads_may_hold_any_byte_but_come_back_whole(shop: Workshop) -> None:
    # Given payloads with every byte, the record's own separator too
    body = bytes(range(256)) * 2
    shop.start("42", body, job="j1")
    lease = shop.lease_one()
    assert lease.record.payload == body
    # When one goes through release, delay and reclaim
    shop.run(shop.store.release([lease.id]))
    lease = shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim()
    # Then it is whole
    assert shop.lease_one().record.payload == body


def test_priorities_are_kept_as_numbers(shop: Workshop) -> None:
    numbers = [-999_999, -1, 0, 1, 999_999]
    for number in itertools.chain(numbers, [1_000_000]):
        shop.queue(b"p", priority=number)
    assert [lease.record.priority for lease in shop.lease(10)] == [1_000_000, *reversed(numbers)]
