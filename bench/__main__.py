"""`python -m bench` lists the benchmarks; `python -m bench NAME …` runs one, `python -m bench all` every one."""

import argparse
import signal
import sys
from typing import Protocol

from rich.console import Console

from bench import paging, scale, throughput
from bench.report import Claim, Report, print_claims


class Benchmark(Protocol):
    """What a benchmark's module offers: its first docstring line says what it measures."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Its options, beside --short and --json."""

    def measure(self, options: argparse.Namespace, /) -> Report:
        """Measures; progress goes to standard error. Raises `SystemExit` with a sentence if it cannot."""


BENCHMARKS: dict[str, Benchmark] = {"throughput": throughput, "scale": scale, "paging": paging}


def main() -> int:
    """The command line; gives the exit code: 0, or with --strict 1 if a claim was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Threadmill's benchmarks")
    commands = parser.add_subparsers(dest="benchmark", title="benchmarks")
    parsers = {}
    for name, benchmark in BENCHMARKS.items():
        about = (benchmark.__doc__ or "").splitlines()[0]
        parsers[name] = _common(commands.add_parser(name, help=about, description=about))
        benchmark.add_arguments(parsers[name])
    _common(commands.add_parser("all", help="every benchmark, one after the other, and all claims at the end"))
    options = parser.parse_args()
    if options.benchmark is None:
        parser.print_help()
        return 0
    # Ends like Ctrl-C does, through the blocks that stop the site, the proxies and Redis.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    claims: list[Claim] = []
    names = list(BENCHMARKS) if options.benchmark == "all" else [options.benchmark]
    for name in names:
        own = options
        if options.benchmark == "all":
            own = parsers[name].parse_args(["--short"] if options.short else [])
        report = BENCHMARKS[name].measure(own)
        report.publish(as_json=options.json)
        claims += report.claims
    if len(names) > 1:
        print_claims(claims, Console(file=sys.stderr if options.json else sys.stdout, width=120))
    return int(options.strict and not all(claim.kept for claim in claims))


def _common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--short", action="store_true", help="a small form for CI: whether it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="JSON on standard output, the rest on standard error")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a claim was missed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
