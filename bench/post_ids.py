"""Which posts a run collects: read from the list pages, so that any forum with the interfaces will do."""

import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from bench.pages import COMMENTS_PER_PAGE

_SPARE = 1.25  # a run must not end for want of posts


def post_ids(site_url: str, pages: int) -> list[str]:
    """Enough posts for `pages` post and comment pages, and some to spare."""
    chosen: list[str] = []
    expected = 0.0
    for post in listed(site_url):
        chosen.append(str(post["post_id"]))
        expected += 1 + math.ceil(post["comment_count"] / COMMENTS_PER_PAGE)
        if expected >= pages * _SPARE:
            return chosen
    raise RuntimeError(f"{site_url} lists posts for about {expected:.0f} pages only; {pages * _SPARE:.0f} are needed")


def listed(site_url: str) -> Iterator[dict[str, Any]]:
    """Every post as the list pages show it, board after board."""
    forum = 1
    while True:
        page, pages = 1, 1
        while page <= pages:
            try:
                with urllib.request.urlopen(f"{site_url}/BBS/list/{forum}/{page}") as response:
                    listing = json.load(response)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return
                raise
            yield from listing["posts"]
            page, pages = page + 1, listing["pages"]
        forum += 1
