"""Ids from a file: however an editor wrote it, and a bad one is named by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.operator import Operator
from store.workshop import Workshop


def test_blank_lines_doubles_and_line_ends_of_any_kind_do_not_matter(
    shop: Workshop, threadmill: Operator, tmp_path: Path
) -> None:
    # Given a file of a Windows editor, with blank lines and doubles
    file = tmp_path / "ids.txt"
    file.write_bytes("\ufeff1\r\n\r\n2\r\n  3  \r\n2\r\n\r\n4".encode())
    # When its ids are requeued; then each once
    ended = threadmill("requeue", "detail", "--file", str(file))
    assert ": 4 submitted to detail" in ended.out
    assert "1 ids were given more than once, and submitted once" in ended.out
    assert [row["key"] for row in threadmill("peek", "detail", "--json").lines] == ["1", "2", "3", "4"]


def test_a_bad_id_is_named_by_its_line_and_nothing_is_submitted(
    shop: Workshop, threadmill: Operator, tmp_path: Path
) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("1\n\n2\n../3\n4\n")
    ended = threadmill("requeue", "detail", "--file", str(file))
    assert ended.status == 2
    assert f"line 4 of {file}: the key '../3' does not match" in ended.err
    assert "Nothing was done" in ended.err
    assert shop.books.tasks == 0


def test_a_large_file_is_submitted_in_batches(shop: Workshop, threadmill: Operator) -> None:
    ids = "\n".join(str(number) for number in range(20_000)).encode()
    assert threadmill("requeue", "detail", "--file", "-", "--json", stdin=ids).json["submitted"] == 20_000
    assert shop.books.tasks == 20_000


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "no ids"), (b"\n \r\n", "no ids"), (b"1\n\xff\n", "is no UTF-8 text: byte 2 is not")],
)
def test_a_file_without_ids_is_told(threadmill: Operator, tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "ids.txt"
    file.write_bytes(content)
    ended = threadmill("requeue", "detail", "--file", str(file))
    assert ended.status == 2
    assert sentence in ended.err


def test_a_file_that_is_not_there_is_told(threadmill: Operator) -> None:
    ended = threadmill("requeue", "detail", "--file", "/nowhere/ids.txt")
    assert ended.status == 2
    assert "/nowhere/ids.txt cannot be read" in ended.err
