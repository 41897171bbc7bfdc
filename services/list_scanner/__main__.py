"""Run the service: `list-scanner`, or `python -m list_scanner`."""

import sys

from list_scanner import settings
from list_scanner.spider import ListScanner
from threadmill.crawl.service import run_stage
from threadmill.ops.service import run_service


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    return run_service(ListScanner.name, lambda config: run_stage(config, ListScanner, settings))


if __name__ == "__main__":
    sys.exit(main())
