"""Tasks: JSON outside, packed fields inside, and every reason for which one is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmill.model.errors import TaskError
from threadmill.model.stages import STAGES, stage_named
from threadmill.model.task import EXPRESS_PRIORITY, MAX_BYTES, Task

FULL = Task(
    stage="detail",
    source="bbs",
    key="게시글/42",
    params={"slug": "été"},
    priority=-7,
    job="job_1-A",
    depth=2,
    attempts=1,
    parent="7",
    trace="abc",
    version="12",
    known="11",
    force=True,
    cascade=True,
    submitted_at=1_795_000_000_123,
)


def read(body: object) -> Task:
    data = body if isinstance(body, bytes | str) else orjson.dumps(body)
    return Task.from_json(data, source="bbs", stage="detail")


def refusal(body: object) -> TaskError:
    with pytest.raises(TaskError) as caught:
        read(body)
    return caught.value


# JSON -----------------------------------------------------------------------------------------------------------------


def test_a_task_survives_json() -> None:
    assert read(FULL.to_json()) == FULL
    assert read(FULL.to_json().decode()) == FULL


def test_defaults_are_left_out_of_json() -> None:
    task = Task("detail", "bbs", "42")
    assert orjson.loads(task.to_json()) == {"v": 1, "stage": "detail", "source": "bbs", "key": "42"}


@pytest.mark.parametrize(
    "body", ['{"key":"42"}', b'{"key":42}', {"v": 1, "key": "42", "stage": "detail", "source": "bbs"}]
)
def test_a_key_is_enough(body: object) -> None:
    assert read(body) == Task("detail", "bbs", "42")


texts = st.text(st.characters(codec="utf-8"), max_size=40)
numbers = st.integers(0, 2**53 - 1)
tasks = st.builds(
    Task,
    stage=st.just("detail"),
    source=st.just("bbs"),
    key=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=100),
    params=st.dictionaries(texts, texts, max_size=3),
    priority=st.integers(1 - EXPRESS_PRIORITY, EXPRESS_PRIORITY - 1),
    job=st.from_regex(r"[A-Za-z0-9_-]{0,40}", fullmatch=True),
    depth=numbers,
    attempts=numbers,
    parent=texts,
    trace=texts,
    known=texts,
    force=st.booleans(),
    cascade=st.booleans(),
    submitted_at=numbers,
)


@settings(derandomize=True, deadline=None)
@given(tasks)
def test_any_task_survives_json_and_fields(task: Task) -> None:
    # Given any task; when it is written and read in either form; then it is the same
    assert read(task.to_json()) == task
    entry_id = b"%d-3" % task.submitted_at
    assert Task.from_fields(packed(task), source="bbs", stage="detail", entry_id=entry_id) == task


@settings(derandomize=True, deadline=None)
@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr))
def test_no_bytes_raise_anything_but_a_task_error(data: bytes | str) -> None:
    # Given any bytes; when they are read; then they are a task or a refusal
    try:
        task = read(data)
    except TaskError as error:
        assert error.reason
    else:
        assert task.key


# Refusals -------------------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[str, Any]] = [
    ("not-json", b""),
    ("not-json", b"{"),
    ("not-json", b"\xff\xfe"),
    ("not-json", b'{"key":NaN}'),
    ("not-json", '{"key":"\udc80"}'),
    ("malformed", b"[]"),
    ("malformed", b"null"),
    ("malformed", b'"42"'),
    ("unknown-version", {"v": 2, "key": "1"}),
    ("unknown-version", {"v": "1", "key": "1"}),
    ("unknown-version", {"v": True, "key": "1"}),
    ("unknown-version", b'{"v":1.0,"key":"1"}'),
    ("unknown-version", {"v": None, "key": "1"}),
    ("unknown-stage", {"key": "1", "stage": "profile"}),
    ("wrong-stage", {"key": "1", "stage": "comment"}),
    ("wrong-stage", {"key": "1", "stage": None}),
    ("wrong-stage", {"key": "1", "stage": ["detail"]}),
    ("unknown-source", {"key": "1", "source": "elsewhere"}),
    ("unknown-source", {"key": "1", "source": None}),
    ("malformed", {}),
    ("malformed", {"key": ""}),
    ("malformed", {"key": None}),
    ("malformed", {"key": True}),
    ("malformed", {"key": 1.5}),
    ("malformed", {"key": ["1"]}),
    ("malformed", {"key": "a\x1fb"}),
    ("malformed", {"key": "a\nb"}),
    ("malformed", {"key": "a\x7f"}),
    ("malformed", {"key": "x" * 513}),
    ("malformed", {"key": "1", "url": "http://evil.example/"}),
    ("malformed", {"key": "1", "priority": "7"}),
    ("malformed", {"key": "1", "priority": True}),
    ("malformed", {"key": "1", "priority": 1.0}),
    ("malformed", {"key": "1", "priority": EXPRESS_PRIORITY}),
    ("malformed", {"key": "1", "priority": -EXPRESS_PRIORITY}),
    ("malformed", {"key": "1", "depth": -1}),
    ("malformed", {"key": "1", "depth": 2**64 - 1}),
    ("malformed", {"key": "1", "attempts": 2**53}),
    ("malformed", {"key": "1", "submitted_at": -1}),
    ("malformed", {"key": "1", "force": 1}),
    ("malformed", {"key": "1", "cascade": "yes"}),
    ("malformed", {"key": "1", "job": "a b"}),
    ("malformed", {"key": "1", "job": "a\x1f"}),
    ("malformed", {"key": "1", "job": "j" * 41}),
    ("malformed", {"key": "1", "job": "j\n"}),
    ("malformed", {"key": "1", "params": []}),
    ("malformed", {"key": "1", "params": {"slug": 1}}),
    ("malformed", {"key": "1", "params": {"slug": None}}),
    ("malformed", {"key": "1", "trace": None}),
]


@pytest.mark.parametrize(("reason", "body"), REFUSALS)
def test_what_is_refused_and_why(reason: str, body: object) -> None:
    assert refusal(body).reason == reason


def test_refusals_tell_what_is_wrong() -> None:
    assert "url" in str(refusal({"key": "1", "url": "x"}))
    assert "list, detail, comment" in str(refusal({"key": "1", "stage": "profile"}))
    assert "'elsewhere'" in str(refusal({"key": "1", "source": "elsewhere"}))
    assert "priority must be int" in str(refusal({"key": "1", "priority": "7"}))


@pytest.mark.parametrize("filler", ["x", "é"])
def test_size_is_counted_in_bytes(filler: str) -> None:
    # Given a task of exactly the most bytes, as text or as bytes; then it is read, and one byte more is refused
    frame = len(b'{"key":"1","trace":""}')
    room, rest = divmod(MAX_BYTES - frame, len(filler.encode()))
    fits = f'{{"key":"1","trace":"{filler * room}{"x" * rest}"}}'
    assert len(fits.encode()) == MAX_BYTES
    assert read(fits) == read(fits.encode())
    assert refusal(fits + " ").reason == "too-large"
    assert refusal(fits.encode() + b" ").reason == "too-large"


# Stream fields --------------------------------------------------------------------------------------------------------


def packed(task: Task) -> dict[bytes, bytes]:
    """As submit writes it."""
    fields = {b"k": task.key, b"p": task.parent, b"j": task.job, b"d": str(task.depth)}
    seldom = {b"o": task.known.encode(), b"x": task.extras()}
    return {name: text.encode() for name, text in fields.items()} | {
        name: value for name, value in seldom.items() if value
    }


def from_fields(entry: dict[bytes, bytes], entry_id: bytes = b"1795000000123-0") -> Task:
    return Task.from_fields(entry, source="bbs", stage="detail", entry_id=entry_id)


def test_a_task_survives_packing() -> None:
    # Its version is for the filter alone; its time is the entry's
    assert from_fields(packed(FULL)) == dataclasses.replace(FULL, version="")


def test_a_plain_task_has_no_extras() -> None:
    assert Task("detail", "bbs", "42", parent="7", job="j1", version="3", known="2").extras() == b""


def test_a_task_from_outside_is_read_as_json() -> None:
    assert from_fields({b"task": b'{"key":42,"job":"j1"}'}) == Task("detail", "bbs", "42", job="j1")


def test_a_replayed_task_has_the_job_of_its_letter() -> None:
    assert from_fields({b"task": b'{"key":42,"job":"j1"}', b"j": b""}).job == ""
    assert from_fields({b"task": b'{"key":42,"job":"j1"}', b"j": b"j1"}).job == "j1"


@pytest.mark.parametrize(
    "change",
    [
        {b"k": None},
        {b"k": b""},
        {b"k": b"\xff"},
        {b"k": b"a\x1f"},
        {b"x": b"{"},
        {b"x": b"[1]"},
        {b"x": b'{"zz":1}'},
        {b"x": b'{"p":"abc"}'},
        {b"x": b'{"a":"text"}'},
        {b"d": b"-1"},
        {b"d": b"one"},
        {b"x": b""},
        {b"j": b"a b"},
        {b"o": b"\xff"},
        {b"zz": b"1"},
    ],
)
def test_a_packed_entry_that_is_no_task_is_malformed(change: dict[bytes, bytes | None]) -> None:
    # Given what submit writes, with one thing wrong; then it is refused
    entry = {name: value for name, value in (packed(FULL) | change).items() if value is not None}
    with pytest.raises(TaskError) as caught:
        from_fields(entry)
    assert caught.value.reason == "malformed"


def test_an_empty_entry_is_malformed() -> None:
    with pytest.raises(TaskError, match="push one JSON field `task`"):
        from_fields({})


# Stages ---------------------------------------------------------------------------------------------------------------


def test_stages_hand_down_to_stages_that_exist_and_come_later() -> None:
    names = list(STAGES)
    for at, stage in enumerate(STAGES.values()):
        assert all(names.index(name) > at for name in stage.hands_to)
        assert stage_named(stage.name) is stage


def test_an_unknown_stage_is_named_with_those_there_are() -> None:
    with pytest.raises(TaskError, match="unknown stage 'x'; known: list, detail, comment"):
        stage_named("x")
