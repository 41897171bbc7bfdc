"""A simulated forum with known truth.

The same seed always makes the same forum, so that what a collector stored can be compared, row by row, with
what there was to collect. `python -m demo_forum --help` serves it; `demo_forum.check` compares.
"""

from demo_forum.check import Check, Tally, compare, rows_of
from demo_forum.forum import Forum, ForumConfig
from demo_forum.knobs import Knobs
from demo_forum.server import create_app

__all__ = ["Check", "Forum", "ForumConfig", "Knobs", "Tally", "compare", "create_app", "rows_of"]
