"""`make run-spirit`: install and fill a real forum, collect it by `sources/spirit.toml` alone, compare every row."""

import json
import shutil
import sys
from pathlib import Path

from rich.console import Console

from threadmill.model.config import Config
from threadmill.model.stages import STAGES
from threadmill.ops.up import Plan, up

from .compare import Report, compare
from .environment import SpiritError
from .forum import spirit_forum
from .truth import read_truth

MIN_TOPICS, MIN_COMMENTS = 200, 3_000


def collect(data: Path, console: Console) -> Report:
    """Run the whole pipeline against a Spirit of our own; what it keeps is in `data`."""
    with spirit_forum(data) as forum:
        console.print(f"Spirit is at {forum.base_url}, its database is {forum.database}")
        collected = data / "collected"
        shutil.rmtree(collected, ignore_errors=True)
        database = collected / "threadmill.db"
        config = Config.model_validate(
            {
                **Config.from_environment().model_dump(),
                "sources": ("sources/spirit.toml",),
                "base_url": forum.base_url,
                "store_url": f"sqlite:///{database}",
            }
        )
        plan = Plan(dict.fromkeys(STAGES, 1), ["all"], once=True, data=collected)
        outcome = up(config, plan, console)
        if not outcome.ok:
            raise SpiritError(f"the job did not end well: {outcome}")
        return compare(read_truth(forum.database), database)


def main() -> int:
    """0 when every topic and comment is stored once, as it is in Spirit's own database, and nothing else is."""
    data, console = Path("data/spirit"), Console()
    try:
        report = collect(data, console)
    except SpiritError as error:
        console.print(f"[red]{error}[/]")
        return 1
    console.print(str(report), highlight=False)
    (data / "report.json").write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
    enough = report.posts.expected >= MIN_TOPICS and report.comments.expected >= MIN_COMMENTS
    return 0 if report.clean and enough else 1


if __name__ == "__main__":
    sys.exit(main())
