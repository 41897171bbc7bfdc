"""threadmill submit --full: a scan of the whole board is asked for."""

from __future__ import annotations

import redis

from commands.operator import Operator
from store.workshop import Workshop
from threadmill.model.stages import LIST
from threadmill.model.task import Task


def test_a_whole_scan_is_asked_for_by_name(client: redis.Redis, threadmill: Operator) -> None:
    # When an operator asks for a scan, and for a whole one
    assert threadmill("submit", "list", "1", "--json").json["submitted"] == 1
    assert threadmill("submit", "list", "1", "--full", "--json").json["submitted"] == 1
    # Then the second task says so
    entries = Workshop(client, LIST).read()
    tasks = [Task.from_fields(e.fields, source="bbs", stage=LIST.name, entry_id=e.id) for e in entries]
    assert [task.full for task in tasks] == [False, True]


def test_only_boards_can_be_scanned_whole(threadmill: Operator) -> None:
    ended = threadmill("submit", "detail", "42", "--full")
    assert ended.status == 2
    assert "--full scans whole boards, so it is for the stage list, not for detail" in ended.err
