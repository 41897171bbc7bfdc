"""`python -m bench` lists the benchmarks; `python -m bench NAME …` runs one, `python -m bench all` every one."""

import argparse
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console

from bench import growth, isolation, latency, levers, memory, paging, scale, steady, throughput
from bench.docs import write_docs
from bench.progress import Progress, say
from bench.report import Claim, Report, print_claims


class Benchmark(Protocol):
    """What a benchmark's module offers: its first docstring line says what it measures."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Its options, beside --short and --json."""

    def measure(self, options: argparse.Namespace, /) -> Report:
        """Measures; progress goes to standard error. Raises `SystemExit` with a sentence if it cannot."""


# One line each: the order of `all` and of docs/performance.md.
BENCHMARKS: dict[str, Benchmark] = {
    "throughput": throughput,
    "levers": levers,
    "steady": steady,
    "latency": latency,
    "isolation": isolation,
    "memory": memory,
    "growth": growth,
    "scale": scale,
    "paging": paging,
}


def main() -> int:
    """The command line; gives the exit code: 0, or 1 if a benchmark broke, or with --strict if a claim was missed."""
    parsers, options = _parse()
    if options.benchmark is None:
        parsers[""].print_help()
        return 0
    if options.benchmark == "docs":
        for name in write_docs():
            say(f"No full run of {name}: its figures stay as they are")
        return 0
    # Ends like Ctrl-C does, through the blocks that stop the site, the proxies and Redis.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.benchmark != "all":
        report = _run(options.benchmark, options, options)
        return int(options.strict and not all(claim.kept for claim in report.claims))
    return _all(parsers, options)


def _all(parsers: Mapping[str, argparse.ArgumentParser], options: argparse.Namespace) -> int:
    """Every benchmark with its defaults; one that breaks does not hold up the others."""
    claims: list[Claim] = []
    broken: list[str] = []
    progress = Progress(len(BENCHMARKS), "benchmark")
    for name, benchmark in BENCHMARKS.items():
        progress.begin(f"{name}: {_about(benchmark)}")
        try:
            claims += _run(name, parsers[name].parse_args(["--short"] if options.short else []), options).claims
        except SystemExit as error:
            # A sentence says why it cannot run; a number is the signal's, and ends everything.
            if not isinstance(error.code, str):
                raise
            say(error.code)
            broken.append(name)
        except Exception:
            traceback.print_exc()
            broken.append(name)
    print_claims(claims, Console(file=sys.stderr if options.json else sys.stdout, width=120))
    if broken:
        say(f"Broken: {', '.join(broken)}")
    return int(bool(broken) or (options.strict and not all(claim.kept for claim in claims)))


def _run(name: str, own: argparse.Namespace, options: argparse.Namespace) -> Report:
    report = BENCHMARKS[name].measure(own)
    report.publish(as_json=options.json, short=own.short)
    return report


def _parse() -> tuple[dict[str, argparse.ArgumentParser], argparse.Namespace]:
    """The parsers by benchmark, the whole under "", and what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Threadmill's benchmarks")
    commands = parser.add_subparsers(dest="benchmark", title="benchmarks")
    parsers = {"": parser}
    for name, benchmark in BENCHMARKS.items():
        about = _about(benchmark)
        parsers[name] = _common(commands.add_parser(name, help=about.replace("%", "%%"), description=about))
        benchmark.add_arguments(parsers[name])
    _common(commands.add_parser("all", help="every benchmark, one after the other, and all claims at the end"))
    commands.add_parser("docs", help="write the tables and plots of the last full runs into docs/")
    return parsers, parser.parse_args()


def _about(benchmark: Benchmark) -> str:
    return (benchmark.__doc__ or "").splitlines()[0]


def _common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--short", action="store_true", help="a small form for CI: whether it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="JSON on standard output, the rest on standard error")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a claim was missed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
