"""Run the service: `comment-collector`, or `python -m comment_collector`."""

import sys

from comment_collector import settings
from comment_collector.spider import CommentCollector
from threadmill.crawl.service import run_stage
from threadmill.ops.service import run_service


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    return run_service(CommentCollector.name, lambda config: run_stage(config, CommentCollector, settings))


if __name__ == "__main__":
    sys.exit(main())
