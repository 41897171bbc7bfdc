"""submit, admit, refuse: how work comes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from store.workshop import Workshop, payloads
from threadmill.model.task import Task
from threadmill.store.calls import run
from threadmill.store.letters import dead_letters
from threadmill.store.work import Admission, Child, Refusal

# submit ---------------------------------------------------------------------------------------------------------------


def test_submitted_tasks_wait_in_the_stream(shop: Workshop) -> None:
    # When two tasks are submitted for a job
    assert shop.submit("1", "2", job="j1", parent="7", version="3", priority=5) == (2, 0)
    # Then they wait, accepted, and can be read back whole
    assert (shop.books.tasks, shop.books.accepted) == (2, 2)
    assert (shop.job("j1").open, shop.job("j1").accepted) == (2, {"detail": 2})
    entry = shop.read()[0]
    task = Task.from_fields(entry.fields, source="bbs", stage="detail", entry_id=entry.id)
    assert (task.key, task.job, task.parent, task.priority) == ("1", "j1", "7", 5)
    assert task.submitted_at == int(entry.id.split(b"-")[0])


def test_submit_twice_with_one_token_happens_once(shop: Workshop) -> None:
    # Given a submission, forced, so that no dupefilter helps
    assert shop.submit("1", "2", token="t", job="j1", force=True) == (2, 0)
    before = shop.everything()
    # When it is sent again; then it is recognized and nothing changes
    assert shop.submit("1", "2", token="t", job="j1", force=True) == (-1, 0)
    assert shop.everything() == before


def test_known_tasks_are_filtered_unless_forced(shop: Workshop) -> None:
    # Given a task that was submitted; when it is submitted again, then it is filtered; when forced, then not
    assert shop.submit("1", version="3") == (1, 0)
    assert shop.submit("1", "2", version="3", job="j1") == (1, 1)
    assert shop.submit("1", version="3", force=True) == (1, 0)
    assert (shop.books.accepted, shop.books.filtered) == (3, 1)


def test_a_moved_version_is_submitted_with_the_version_that_was_done(shop: Workshop) -> None:
    # Given a post that was done at 3 comments; when it is submitted with 5, and with 7 before that is done
    shop.submit("1", version="3")
    (entry,) = shop.read()
    shop.admit(entry, b"post")
    shop.commit(shop.lease_one(), key="1")
    assert [shop.submit("1", version=version) for version in ("5", "7")] == [(1, 0), (1, 0)]
    # Then its task tells both, and the next one, to whom 5 is no use, neither
    tasks = [Task.from_fields(e.fields, source="bbs", stage="detail", entry_id=e.id) for e in shop.read()]
    assert [(task.known, task.version) for task in tasks] == [("3", "5"), ("", "")]


def test_express_tasks_are_read_first(shop: Workshop) -> None:
    # Given a backlog, and an express task that came later
    shop.submit("1", "2")
    shop.submit("3", express=True)
    # When tasks are read; then the express one comes first, and both streams are in the books
    entries = shop.read()
    assert [(e.express, e.fields[b"k"]) for e in entries] == [(True, b"3"), (False, b"1"), (False, b"2")]
    assert shop.books.tasks == 3


# admit ----------------------------------------------------------------------------------------------------------------


def test_admit_turns_a_task_into_its_root_requests(shop: Workshop) -> None:
    # Given a task; when it is admitted with three roots
    shop.submit("42", job="j1")
    (entry,) = shop.read()
    assert shop.admit(entry, b"a", b"b", b"c") == 1
    # Then the task is gone and three requests of one run wait
    books = shop.books
    assert (books.tasks, books.requests, books.accepted) == (0, 3, 3)
    leases = shop.lease(5)
    assert payloads(leases) == [b"a", b"b", b"c"]
    assert {lease.record.job for lease in leases} == {"j1"}
    assert len({lease.record.run for lease in leases} - {""}) == 1
    assert shop.client.xpending(shop.keys.tasks, "workers")["pending"] == 0


def test_a_task_is_admitted_once(shop: Workshop) -> None:
    # Given a task that two workers hold (the first was slow, the second claimed it)
    shop.submit("42")
    (entry,) = shop.read("slow")
    assert shop.streams("quick").claim(0) == [entry]
    # When both admit it, and one of them twice; then it happens once
    assert [shop.admit(entry, b"root") for _ in range(3)] == [1, 0, 0]
    assert (shop.books.requests, shop.books.accepted) == (1, 1)


def test_one_answer_a_task_even_if_some_were_taken(shop: Workshop) -> None:
    # Given three tasks of which another worker has admitted the second
    shop.submit("1", "2", "3")
    entries = shop.read()
    shop.admit(entries[1], b"other")
    # When all three are admitted in one call
    admissions = [Admission(entry, "", [(0, b"%d.%d" % (n, k)) for k in range(n)]) for n, entry in enumerate(entries)]
    # Then the answers are in the tasks' order and the taken one changes nothing
    assert shop.run(shop.store.admit(admissions, express=False)) == [1, 0, 1]
    assert payloads(shop.lease(9)) == [b"other", b"2.0", b"2.1"]


def test_a_task_without_roots_is_done(shop: Workshop) -> None:
    # Given a task; when it is admitted without any root
    shop.submit("42", job="j1")
    shop.admit(shop.read()[0])
    # Then it is done, and so is its job
    assert (shop.books.done, shop.books.open) == (1, 0)
    assert shop.job("j1").finished
    assert shop.job("j1").finished_at_ms is not None


def test_a_task_from_outside_is_in_the_books_at_every_instant(shop: Workshop) -> None:
    # Given a task pushed with nothing but XADD, beside a submitted one
    shop.submit("1")
    shop.push({"key": "42", "job": "j1"})
    shop.push({"key": "43"}, express=True)
    assert (shop.books.tasks, shop.books.accepted) == (3, 3)
    shop.audit()
    # When they are read, admitted and done; then the books say so after each step
    entries = {e.raw: e for e in shop.read()}
    for done, (entry, roots) in enumerate(zip(entries.values(), ((b"x",), (), (b"y", b"z")), strict=True)):
        shop.admit(entry, *roots)
        shop.audit()
        assert shop.books.tasks == 2 - done
    for lease in shop.lease(9):
        shop.commit(lease)
        shop.audit()
    assert (shop.books.accepted, shop.books.done, shop.books.open) == (4, 4, 0)
    assert shop.job("j1").finished


# refuse ---------------------------------------------------------------------------------------------------------------


def refuse(shop: Workshop, *, worker: str = "w1") -> list[int]:
    refusals = [Refusal(entry, "malformed", "it is no task") for entry in shop.read(worker)]
    call = shop.store.refuse(refusals, express=False)
    answers = shop.run(call)
    assert shop.run(call) == [0] * len(answers), "refused twice"
    return answers


@pytest.mark.parametrize("fields", [{"task": b"not JSON\xff"}, {"task": b""}, {"key": "42"}, {"k": "1", "x": "{"}])
def test_what_is_no_task_is_parked_with_its_bytes(shop: Workshop, fields: dict) -> None:
    # Given an entry that nobody can read
    shop.client.xadd(shop.keys.tasks, fields)
    assert shop.books.accepted == 1
    # When it is refused
    assert refuse(shop) == [1]
    # Then it is a dead letter with the reason and its bytes
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert (letter.kind, letter.reason, letter.error, letter.job) == ("task", "malformed", "it is no task", "")
    assert all(str(value).encode() in letter.body or value in letter.body for value in map(_bytes, fields.values()))
    assert (shop.books.dead, shop.books.tasks, shop.books.accepted) == (1, 0, 1)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def test_a_refused_task_closes_its_jobs_open_work(shop: Workshop) -> None:
    # Given a submitted task; when it is refused; then its job has nothing open, and one dead
    shop.submit("42", job="j1")
    refuse(shop)
    assert (shop.job("j1").open, shop.job("j1").dead) == (0, {"detail": 1})


def test_a_refused_task_can_be_read_again_after_a_replay(shop: Workshop) -> None:
    # Given a submitted task with everything a task can say, refused (a source's pattern was wrong, and is corrected)
    shop.submit("42", job="j1", parent="7", params={"slug": "été"}, priority=3, trace="t", version="3", cascade=True)
    (entry,) = shop.read()
    before = Task.from_fields(entry.fields, source="bbs", stage="detail", entry_id=entry.id)
    shop.run(shop.store.refuse([Refusal(entry, "malformed", "")], express=False))
    # When the letter is replayed
    assert shop.run(shop.store.replay(shop.letters())) == 1
    # Then it is the same task again, of the same job, replayed once, and it can be done
    (again,) = shop.read()
    task = Task.from_fields(again.fields, source="bbs", stage="detail", entry_id=again.id)
    assert task == replace(before, attempts=1)
    assert shop.admit(again, b"root") == 1
    shop.commit(shop.lease_one())
    assert shop.job("j1").finished


def test_a_refused_task_from_outside_is_replayed_under_the_job_it_was_counted_for(shop: Workshop) -> None:
    # Given a task from outside that names a job, refused before anybody counted it for that job
    shop.push({"key": "42", "job": "j1"})
    refuse(shop)
    # When it is replayed and done; then no job's books are out by one
    shop.run(shop.store.replay(shop.letters()))
    shop.admit(shop.read()[0], b"root")
    shop.commit(shop.lease_one())
    assert shop.books.done == 1
    assert shop.job("j1").open == 0


def test_enqueue_filters_by_fingerprint_and_is_idempotent(shop: Workshop) -> None:
    # Given requests nobody's task asked for, one of them not to be filtered
    roots = [Child(b"a", "11"), Child(b"b", "12"), Child(b"c", "")]
    call = shop.store.enqueue(roots, token="e1", job="j1")
    # When they are queued, the same call comes again, and then another call asks for the same
    answers = [run(shop.client, call), run(shop.client, call)]
    answers.append(run(shop.client, shop.store.enqueue(roots, token="e2", job="j1")))
    # Then the repeated call did nothing, and the second queued only what is not filtered
    assert answers == [3, 0, 1]
    assert (shop.books.requests, shop.books.filtered, shop.books.accepted) == (4, 2, 4)
    assert shop.job("j1").open == 4
