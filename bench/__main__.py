"""`python -m bench` lists the benchmarks; `python -m bench NAME …` runs one."""

import argparse
import signal
import sys
from typing import Protocol

from bench import throughput


class Benchmark(Protocol):
    """What a benchmark's module offers: its first docstring line says what it measures."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Its options."""

    def run(self, options: argparse.Namespace, /) -> int:
        """Measures, prints, and gives the exit code."""


BENCHMARKS: dict[str, Benchmark] = {"throughput": throughput}


def main() -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Threadmill's benchmarks")
    commands = parser.add_subparsers(dest="benchmark", title="benchmarks")
    for name, benchmark in BENCHMARKS.items():
        about = (benchmark.__doc__ or "").splitlines()[0]
        benchmark.add_arguments(commands.add_parser(name, help=about, description=about))
    options = parser.parse_args()
    if options.benchmark is None:
        parser.print_help()
        return 0
    # Ends like Ctrl-C does, through the blocks that stop the site, the proxies and Redis.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return BENCHMARKS[options.benchmark].run(options)


if __name__ == "__main__":
    sys.exit(main())
