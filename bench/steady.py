"""Memory of one worker over 200,000 pages: its RSS must not grow, its pages/s must not sink.

One threadmill worker, every guarantee on, Redis on loopback; the items are read and settled as a store would, but
not stored, so that Redis does not fill. RSS and pages are read from outside, once a second. RSS moves by a few
percent from one second to the next, so tenths of the run are compared by their medians: the last with the second
(after the first 20,000 pages, in which interpreter, pools and caches fill).
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import psutil
from redis import Redis

from bench.child import ROOT
from bench.forum_choice import forum
from bench.plots import Plot
from bench.post_ids import post_ids
from bench.progress import duration, say
from bench.redis_server import redis_server
from bench.report import Claim, Report
from bench.run import Run
from bench.sides import SIDES, THREADMILL
from bench.threadmill_side import LANE, STAGE
from threadmill.model.errors import StoreUnavailable
from threadmill.store.connection import connect
from threadmill.store.items import ItemStreams

PAGES, SHORT_PAGES = 200_000, 10_000
_TENTHS = 10
_LONGEST_S = 1_200.0
_SAY_EVERY_S = 20.0
_GROWTH = 1.05  # the acceptance: what counts as flat


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the worker: seconds since it began, pages done, its RSS and Redis's memory in MiB."""

    seconds: float
    pages: int
    rss_mb: float
    redis_mb: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench steady`."""
    parser.add_argument("--pages", type=int, help=f"default {PAGES:,}")


def measure(options: argparse.Namespace) -> Report:
    """Runs the worker and watches it."""
    pages = options.pages or (SHORT_PAGES if options.short else PAGES)
    with ExitStack() as stack:
        site_url = stack.enter_context(forum("bench"))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmill-bench-"))
        ids = Path(folder, "post_ids")
        ids.write_text("\n".join(post_ids(site_url, pages)))
        url = f"redis://127.0.0.1:{stack.enter_context(redis_server())}/0"
        stack.enter_context(_consumed_items(url))
        run = Run(site_url, url, url, str(ids), pages, warmup_pages=1, warmup_seconds=0.0, seconds=_LONGEST_S)
        samples, result = _watch(run, every_s=0.05 if options.short else 1.0)
    if result["pages"] < pages:
        raise RuntimeError(f"The worker did {result['pages']:,} of {pages:,} pages in {_LONGEST_S:.0f} s")
    tenths = by_tenth(samples, pages)
    rows = [
        [f"{at * pages // _TENTHS:,} to {(at + 1) * pages // _TENTHS:,}", *_cells(tenth)]
        for at, tenth in enumerate(tenths)
    ]
    early, late = (statistics.median(sample.rss_mb for sample in tenths[at]) for at in (1, -1))
    figures = {"pages": pages, "run": result, "samples": [asdict(sample) for sample in samples]}
    claims = [
        Claim(
            f"worker's RSS over the last tenth of {pages:,} pages over the second's", late / early, _GROWTH, "x", True
        )
    ]
    return Report("steady", ("pages", "pages/s", "RSS MiB", "Redis MiB"), rows, figures, claims, _plots(samples))


def by_tenth(samples: Sequence[Sample], pages: int) -> list[list[Sample]]:
    """The samples by the tenth of the run they were taken in. Raises RuntimeError if one has fewer than two."""
    tenths: list[list[Sample]] = [[] for _ in range(_TENTHS)]
    for sample in samples:
        tenths[min(sample.pages * _TENTHS // pages, _TENTHS - 1)].append(sample)
    if min(map(len, tenths)) < 2:
        raise RuntimeError("The run was too short to be sampled; ask for more --pages")
    return tenths


def _cells(tenth: Sequence[Sample]) -> list[str]:
    first, last = tenth[0], tenth[-1]
    rate = (last.pages - first.pages) / (last.seconds - first.seconds)
    rss = statistics.median(sample.rss_mb for sample in tenth)
    return [f"{rate:,.0f}", f"{rss:.1f}", f"{statistics.median(sample.redis_mb for sample in tenth):.0f}"]


def _watch(run: Run, every_s: float) -> tuple[list[Sample], dict[str, float]]:
    """Samples the side's process until it ends; its report beside them. Raises RuntimeError if it failed."""
    samples: list[Sample] = []
    begin = said = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as errors,
        Redis.from_url(run.near_redis_url) as redis,
        subprocess.Popen(
            SIDES[THREADMILL].command(run), cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            worker = psutil.Process(process.pid)
            while process.poll() is None:
                if (sample := _sample(worker, redis, begin)) and sample.pages:
                    samples.append(sample)
                    if time.monotonic() - said > _SAY_EVERY_S:
                        said = time.monotonic()
                        _say(sample, run.pages)
                time.sleep(every_s)
        except BaseException:
            process.kill()
            raise
        assert process.stdout
        output = process.stdout.read()
        if process.returncode or not output.strip():
            errors.seek(0)
            raise RuntimeError(f"The worker failed with code {process.returncode}:\n{errors.read()[-4000:]}")
    return samples, json.loads(output.splitlines()[-1])


def _sample(worker: psutil.Process, redis: Redis, begin: float) -> Sample | None:
    try:
        rss = worker.memory_info().rss
    except psutil.NoSuchProcess:
        return None
    done = int(redis.hget(LANE.stage(STAGE.name).stats, "done") or 0)
    used: int = redis.info("memory")["used_memory"]
    return Sample(round(time.monotonic() - begin, 3), done, round(rss / 2**20, 2), round(used / 2**20, 1))


def _say(sample: Sample, pages: int) -> None:
    left = sample.seconds / sample.pages * (pages - sample.pages)
    say(f"{sample.pages:,} of {pages:,} pages, RSS {sample.rss_mb:.0f} MiB, about {duration(left)} left")


@contextmanager
def _consumed_items(url: str) -> Iterator[None]:
    """Reads the items and settles them, in a thread, as long as the block lasts."""
    over = threading.Event()
    client = connect(url)
    streams = ItemStreams(client, [LANE], group="bench", consumer="bench")
    streams.ensure_groups()

    def consume() -> None:
        while not over.is_set():
            try:
                entries = streams.read(500, block_ms=500)
                streams.settle([(entry, len(orjson.loads(entry.body))) for entry in entries])
            except StoreUnavailable:
                if not over.is_set():
                    raise

    thread = threading.Thread(target=consume, name="items")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        client.close()


def _plots(samples: Sequence[Sample]) -> list[Plot]:
    series = {
        "worker's RSS": [(sample.pages, sample.rss_mb) for sample in samples],
        "Redis, used memory": [(sample.pages, sample.redis_mb) for sample in samples],
    }
    return [Plot("steady", "Memory over one long crawl", "pages done", "MiB", series)]
