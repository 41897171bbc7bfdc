"""threadmill export and import: waiting work leaves a deployment and comes into one, and every book balances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from commands.operator import Operator
from store.workshop import Workshop, payloads
from threadmill.store.work import Delay, Park, Refusal

Line = dict[str, Any]


def work_everywhere(shop: Workshop) -> None:
    """Tasks, express ones, queued pages of two runs, one of them replayed, a delayed one, and two letters."""
    shop.start("1", b'{"k":"1"}', b'{"k":"1","n":2}', job="7")
    shop.start("2", b'{"k":"2"}', job="8")
    pages = shop.lease(3)
    shop.run(shop.store.delay([Delay(pages[0].id, 60_000, "http-500", "no")], max_failures=5))
    shop.run(shop.store.park([Park(pages[1].id, "http-403", "ünable"), Park(pages[2].id, "unreadable", "no rows")]))
    shop.run(shop.store.replay(shop.letters()[:1]))
    shop.push({"key": "9", "job": "8"})
    (entry,) = shop.read()
    shop.run(shop.store.refuse([Refusal(entry, "refused-key", "it does not match")], express=False))
    shop.submit("7", job="8", version="5")
    shop.admit(*shop.read(), b'{"k":"7"}')
    shop.submit("3", "4", job="7", version="5", priority=2)
    shop.submit("4", job="8", version="6")
    shop.push({"key": "6", "job": "8"})
    shop.submit("5", job="7", express=True, force=True)


def what_is_there(shop: Workshop, threadmill: Operator) -> list[Line]:
    """Every piece but its place in time."""
    rows: list[Line] = threadmill("peek", "detail", "--limit", "100", "--json").lines
    rows += threadmill("dead", "list", "detail", "--json").lines
    for row in rows:
        for name in ("since", "id", "before"):
            row.pop(name, None)
    return rows


def test_what_was_exported_and_purged_comes_back_by_import(
    shop: Workshop, threadmill: Operator, tmp_path: Path
) -> None:
    # Given work in every place
    work_everywhere(shop)
    before, books = what_is_there(shop, threadmill), shop.books
    file = tmp_path / "detail.jsonl"
    # When it is exported; then nothing moves, and each piece is a line under the header
    done = threadmill("export", "detail", str(file), "--queue", "all", "--json").json
    assert done["written"] == {"express": 1, "tasks": 4, "delayed": 1, "requests": 2, "dead": 2}
    assert what_is_there(shop, threadmill) == before
    assert len(file.read_bytes().splitlines()) == 1 + 10
    # When it is purged; then nothing is open, the books balance, and both jobs are finished
    assert threadmill("purge", "detail", "--queue", "all", "--yes", "--json").json == {"purged": done["written"]}
    shop.audit()
    assert (shop.books.open, shop.books.dead, shop.books.done) == (0, 0, books.accepted)
    assert shop.job("7").finished
    assert shop.job("8").finished
    # When it is imported
    assert threadmill("import", "detail", str(file), "--json").json == {
        "imported": done["written"],
        "imported_before": 0,
    }
    # Then all is as it was, the jobs are open again, and the books of both balance
    shop.audit()
    assert what_is_there(shop, threadmill) == before
    assert (shop.books.open, shop.books.dead) == (books.open, books.dead)
    assert not shop.job("7").finished
    # And what is known is known again: a scan that meets the post at that version submits nothing
    assert shop.submit("3", version="5") == (0, 1)


def test_what_was_taken_out_is_gone_here_and_can_be_imported_elsewhere(
    shop: Workshop, threadmill: Operator, tmp_path: Path
) -> None:
    # Given work, exported and taken out
    work_everywhere(shop)
    before, file = what_is_there(shop, threadmill), tmp_path / "detail.jsonl"
    done = threadmill("export", "detail", str(file), "--queue", "all", "--take", "--yes", "--json").json
    assert (done["taken"], done["gone"], done["unreadable"]) == (10, 0, 0)
    shop.audit()
    assert (shop.books.open, shop.books.dead, shop.stat("exported")) == (0, 0, 10)
    # Then a scan does not submit here again what was taken elsewhere
    assert shop.submit("3", version="5") == (0, 1)
    # When another deployment imports it
    shop.client.flushall()
    assert sum(threadmill("import", "detail", str(file), "--json").json["imported"].values()) == 10
    # Then all is there, with the versions at which it was known
    shop.audit()
    assert what_is_there(shop, threadmill) == before
    assert shop.submit("3", "4", version="6") == (1, 1)
    assert shop.submit("7", version="5") == (0, 1)


def test_pages_are_leased_again_as_they_were(shop: Workshop, threadmill: Operator, tmp_path: Path) -> None:
    # Given three pages of one run and one of another, with priorities
    shop.start("1", b'{"k":"1"}', b'{"k":"1","n":2}', b'{"k":"1","n":3}', job="7")
    shop.queue(b'{"k":"2"}', priority=5)
    file = str(tmp_path / "detail.jsonl")
    threadmill("export", "detail", file, "--take", "--yes")
    threadmill("import", "detail", file)
    shop.audit()
    # When they are leased and committed, then in their order, each in its run, until nothing is left
    leases = shop.lease(10)
    assert payloads(leases) == [b'{"k":"2"}', b'{"k":"1"}', b'{"k":"1","n":2}', b'{"k":"1","n":3}']
    assert [lease.record.priority for lease in leases] == [5, 0, 0, 0]
    assert len({lease.record.run for lease in leases[1:]}) == 1
    for lease in leases:
        assert shop.commit(lease).ok
    assert not shop.client.exists(shop.keys.runs)
    assert shop.job("7").finished


def test_an_import_that_was_interrupted_may_be_said_again(shop: Workshop, threadmill: Operator, tmp_path: Path) -> None:
    # Given 1,200 tasks that were taken out, and an import that came as far as its second batch
    shop.submit(*(str(number) for number in range(1200)))
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    threadmill("export", "detail", str(whole), "--take", "--yes")
    part.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:1001]))
    assert threadmill("import", "detail", str(part), "--json").json["imported"] == {"tasks": 1000}
    # When the whole is imported, then only the rest is
    assert threadmill("import", "detail", str(whole), "--json").json == {
        "imported": {"tasks": 200},
        "imported_before": 1000,
    }
    assert shop.books.tasks == 1200
    # And again, if that is what is wanted
    assert threadmill("import", "detail", str(whole), "--again", "--json").json["imported"] == {"tasks": 1200}


def test_standard_output_into_standard_input(shop: Workshop, threadmill: Operator) -> None:
    # Given tasks; when they go through a pipe
    shop.submit("1", "2")
    exported = threadmill("export", "detail", "--take", "--yes")
    assert "2 tasks and pages of detail exported, and taken out of it" in exported.err
    assert shop.books.tasks == 0
    imported = threadmill("import", "detail", "-", stdin=exported.out.encode())
    # Then they wait again
    assert "2 tasks and pages imported into detail" in imported.out
    assert [row["key"] for row in threadmill("peek", "detail", "--json").lines] == ["1", "2"]


def change(**fields: Any) -> Callable[[Line], Line]:
    return lambda line: {**line, **fields}


BAD_LINES: list[tuple[str, Callable[[Line], object], str]] = [
    ("tasks", lambda _: "no object", "it is not a JSON object"),
    ("tasks", change(queue="dreams"), "its queue is 'dreams'"),
    ("tasks", change(queue=["tasks"]), "its queue is not str"),
    ("tasks", change(source="elsewhere"), "source 'elsewhere' is not configured"),
    ("tasks", change(surprise=1), "unknown fields: surprise"),
    ("tasks", change(task={"key": "../../etc/passwd"}), "does not match the source's key_pattern"),
    ("tasks", change(task={"key": "1", "job": "a b"}), "a job id is"),
    ("tasks", change(task=None), "its task is missing"),
    ("requests", change(payload={"n": 1}), "its payload names no key"),
    ("requests", change(payload={"k": "1/2"}), "does not match the source's key_pattern"),
    ("requests", change(failures=-1), "its failures is below zero"),
    ("requests", change(run="1\x1f2"), "its run is not letters and digits"),
    ("requests", change(priority=10**9), "its priority does not lie between"),
    ("delayed", change(due_ms="soon"), "its due_ms is not int"),
    ("dead", change(kind="other"), "a letter's kind is request or task, not 'other'"),
]


@pytest.mark.parametrize(("queue", "spoil", "sentence"), BAD_LINES, ids=[case[2][:30] for case in BAD_LINES])
def test_one_bad_line_is_named_and_nothing_is_imported(
    shop: Workshop, threadmill: Operator, queue: str, spoil: Callable[[Line], object], sentence: str
) -> None:
    # Given an exported file, one line of which was spoilt
    work_everywhere(shop)
    lines = threadmill("export", "detail", "--queue", "all").out.encode().splitlines()
    at = next(at for at, line in enumerate(lines) if orjson.loads(line).get("queue") == queue)
    lines[at] = orjson.dumps(spoil(orjson.loads(lines[at])))
    before = shop.everything()
    # When it is imported
    ended = threadmill("import", "detail", "-", stdin=b"\n".join(lines))
    # Then the line is named, and nothing has changed
    assert ended.status == 2
    assert f"line {at + 1}: " in ended.err
    assert sentence in ended.err
    assert "Nothing was imported" in ended.err
    assert shop.everything() == before


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"{broken", "line 1: it is not JSON"),
        (b'{"key":"1"}\n', "line 1: this is no exported file"),
        (b'{"threadmill":"export","format":9,"stage":"detail"}\n', "its format is 9; this release reads 1"),
        (b'{"threadmill":"export","format":1,"stage":"list"}\n', "it holds work of stage 'list', not of detail"),
    ],
)
def test_a_file_of_another_kind_is_refused(threadmill: Operator, content: bytes, sentence: str) -> None:
    ended = threadmill("import", "detail", "-", stdin=content)
    assert ended.status == 2
    assert sentence in ended.err


def test_nothing_is_taken_out_without_being_asked_for_or_over_another_file(
    shop: Workshop, threadmill: Operator, tmp_path: Path
) -> None:
    # Given work, and a file that is there already
    shop.submit("1")
    file = tmp_path / "detail.jsonl"
    file.write_text("precious")
    # When the work is to be taken out, then that must be said, and the file is left as it is
    ended = threadmill("export", "detail", "--take")
    assert ended.status == 2
    assert "say --yes" in ended.err
    assert threadmill("export", "detail", str(file), "--take", "--yes").status == 2
    assert file.read_text() == "precious"
    assert shop.books.tasks == 1


def test_what_cannot_be_read_stays_where_it_is(shop: Workshop, threadmill: Operator) -> None:
    # Given a task and an entry that is none; when they are taken out, then the entry stays, and is told
    shop.submit("1")
    shop.push(b"{not JSON")
    ended = threadmill("export", "detail", "--take", "--yes")
    assert "1 entries are no work that could be read" in ended.err
    assert shop.books.tasks == 1
