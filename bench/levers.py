"""What each lever of speed is worth: the same worker with one of them turned back, in turn with the whole.

A lever is turned back by a setting of the project, as any user could, so that what is measured is what is offered.
Ratios are taken within a round; their median is what the table shows.
"""

import argparse
import json
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

from scrapy.http import Response

from bench.json_redis import best_server
from bench.plots import Plot
from bench.report import Report
from bench.rounds import Rounds, Size
from bench.sides import SIDES, THREADMILL, Side, module

HANDLERS = "scrapy.core.downloader.handlers"
LEVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "aiohttp": (
        "Scrapy's own HTTP client, over Twisted",
        {"DOWNLOAD_HANDLERS": {"http": f"{HANDLERS}.http11.HTTP11DownloadHandler"}},
    ),
    "our handler": (
        "Scrapy's experimental handler over aiohttp",
        {"DOWNLOAD_HANDLERS": {"http": f"{HANDLERS}._aiohttp.AiohttpDownloadHandler"}},
    ),
    "downloader": ("Scrapy's own downloader", {"DOWNLOADER": "scrapy.core.downloader.Downloader"}),
    "tap": ("a spider middleware that sees every item", {"SPIDER_MIDDLEWARES": {"bench.levers.Onlooker": 500}}),
    "item path": ("an item pipeline", {"ITEM_PIPELINES": {"bench.levers.Pipeline": 300}}),
    "concurrent items": (
        "an item pipeline and CONCURRENT_ITEMS = 100, as Scrapy has it",
        {"ITEM_PIPELINES": {"bench.levers.Pipeline": 300}, "CONCURRENT_ITEMS": 100},
    ),
}
"""A name for the plot, what is there instead, and the settings that put it there."""
_WITHOUT_HIREDIS = "import sys; sys.modules['hiredis'] = None; from bench.threadmill_side import main; main()"

FULL = Size(
    pages=12_000, seconds=3.0, least_pages=40, longest_seconds=6.0, warmup_pages=1_000, warmup_seconds=1.0, rounds=5
)
SHORT = Size(
    pages=2_000, seconds=0.5, least_pages=5, longest_seconds=2.0, warmup_pages=100, warmup_seconds=0.3, rounds=1
)
REDIS_AWAY_MS = 2.0


class Onlooker:
    """A spider middleware that looks at each output and does nothing."""

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            yield each


class Pipeline:
    """An item pipeline that does nothing."""

    def process_item(self, item: Any) -> Any:
        return item


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench levers`."""
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")


def measure(options: argparse.Namespace) -> Report:
    """Runs the whole, and it with each lever turned back, round after round."""
    size = (SHORT if options.short else FULL).but(rounds=options.rounds, seconds=None)
    sides = [SIDES[THREADMILL]]
    for name, (about, settings) in LEVERS.items():
        sides.append(Side(name, about, module("bench.threadmill_side", "--settings", json.dumps(settings))))
    sides.append(
        Side("hiredis", "redis-py without hiredis", lambda run: [sys.executable, "-c", _WITHOUT_HIREDIS, run.to_json()])
    )
    with ExitStack() as stack:
        rounds = Rounds(stack, best_server(), "bench", size, [REDIS_AWAY_MS]).run(sides)
    runs = {side.name: [run for measured in rounds for run in measured if run["side"] == side.name] for side in sides}
    whole = runs[THREADMILL]

    def median(name: str, field: str) -> float:
        return statistics.median(float(run[field]) for run in runs[name])

    def ratio(name: str) -> float:
        pairs = zip(runs[name], whole, strict=True)
        return statistics.median(
            float(run["pages_per_s"]) / float(all_of_it["pages_per_s"]) for run, all_of_it in pairs
        )

    rows = [
        [
            "all of them" if side.name == THREADMILL else side.about,
            f"{median(side.name, 'pages_per_s'):,.0f}",
            f"{ratio(side.name):.2f}",
            f"{median(side.name, 'cpu_ms_per_page'):.2f}",
            f"{median(side.name, 'peak_rss_mb'):.0f}",
        ]
        for side in sides
    ]
    bars = {"pages/s": [(side.name, median(side.name, "pages_per_s")) for side in sides]}
    return Report(
        "levers",
        ("instead", "pages/s", "ratio", "CPU ms/page", "RSS MiB"),
        rows,
        {"redis_away_ms": REDIS_AWAY_MS, "runs": runs},
        plots=[Plot("levers", "One lever turned back", "without", "pages/s", bars)],
    )
