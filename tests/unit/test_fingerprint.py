"""Requests that are the same have one fingerprint, by the short way or the long one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from w3lib.url import canonicalize_url

from threadmill.crawl.dupefilter import CANONICAL


@given(st.from_regex(re.compile(CANONICAL.pattern, re.ASCII), fullmatch=True))
def test_what_is_called_canonical_is(url: str) -> None:
    assert canonicalize_url(url) == url


def test_what_may_not_be_canonical_is_not_called_so() -> None:
    for url in ("http://a.b/c?d=1", "http://a.b/c#d", "http://A.b/c", "http://a.b", "http://a.b/%7e", "http://a.b/é"):
        assert not CANONICAL.fullmatch(url)
