"""Whole bodies: what was packed and then cut short is never taken for a page."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.spiders import Spider
from scrapy.utils.test import get_crawler

from threadmill.crawl.whole import TruncatedError, WholeBodies

PAGE = "".join(map(str, random.Random(1).sample(range(10**6), 20_000))).encode()
PACKED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:999]) + gzip.compress(PAGE[999:]),
    "deflate": zlib.compress(PAGE),
    "br, GZIP": gzip.compress(PAGE),
}
RAW_DEFLATE = zlib.compress(PAGE, wbits=-15)


def passes(body: bytes, encoding: str, **settings: int) -> bool:
    middleware = WholeBodies.from_crawler(get_crawler(Spider, {"DOWNLOAD_MAXSIZE": 1_000_000, **settings}))
    response = Response("http://a/", body=body, headers={"Content-Encoding": encoding} if encoding else {})
    try:
        return middleware.process_response(Request("http://a/"), response) is response
    except TruncatedError:
        return False


@pytest.mark.parametrize(("encoding", "body"), [*PACKED.items(), ("deflate", RAW_DEFLATE)])
def test_a_body_passes_whole_and_not_when_it_is_cut(encoding: str, body: bytes) -> None:
    assert passes(body, encoding)
    cuts = [1, len(body) // 3, len(body) // 2, len(body) - 9, len(body) - 1]
    assert [passes(body[:cut], encoding) for cut in cuts] == [False] * len(cuts)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", b""), ("gzip", PACKED["gzip"] + b"\0" * 100), ("gzip", PAGE), ("", PACKED["gzip"][:99]), ("br", b"\0")],
    ids=["empty", "padded", "not gzip", "not packed", "another encoding"],
)
def test_what_is_not_cut_short_is_left_to_others(encoding: str, body: bytes) -> None:
    assert passes(body, encoding)


def test_a_bomb_is_left_to_others_before_it_is_unpacked() -> None:
    assert passes((gzip.compress(b" " * 10**7) * 10_000)[:-1], "gzip")
