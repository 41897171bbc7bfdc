"""What compose.yaml must hold, read as text: it needs no engine."""

from pathlib import Path

import pytest

from threadmill.model.config import Config

COMPOSE = (Path(__file__).parents[2] / "compose.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [f"THREADMILL_{name.upper()}" for name in Config.model_fields])
def test_every_setting_reaches_the_containers(name: str) -> None:
    assert f"  {name}:" in COMPOSE


def test_the_project_can_be_started_twice_and_scaled() -> None:
    lines = COMPOSE.splitlines()
    assert not any(line.startswith("name:") for line in lines)
    assert not any(line.strip().startswith("container_name:") for line in lines)
