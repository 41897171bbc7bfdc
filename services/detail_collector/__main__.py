"""Run the service: `detail-collector`, or `python -m detail_collector`."""

import sys

from detail_collector import settings
from detail_collector.spider import DetailCollector
from threadmill.crawl.service import run_stage
from threadmill.ops.service import run_service


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    return run_service(DetailCollector.name, lambda config: run_stage(config, DetailCollector, settings))


if __name__ == "__main__":
    sys.exit(main())
