"""Run the service: `item-writer`, or `python -m item_writer`."""

import sys

from item_writer.service import serve
from threadmill.ops.service import run_service


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    return run_service("item_writer", serve)


if __name__ == "__main__":
    sys.exit(main())
