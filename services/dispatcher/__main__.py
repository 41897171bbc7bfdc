"""Run the service: `dispatcher`, or `python -m dispatcher`."""

import sys

from dispatcher.service import serve
from threadmill.ops.service import run_service


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    return run_service("dispatcher", serve)


if __name__ == "__main__":
    sys.exit(main())
