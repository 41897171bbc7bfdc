"""What the figures were measured on: machine, versions, and the state of the code."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.child import ROOT

_PACKAGES = ("scrapy", "twisted", "aiohttp", "redis", "scrapy-redis", "crawlee", "uvloop")


def machine() -> dict[str, str]:
    """Names and values for people; what cannot be found is left out."""
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "CPU": f"{_field('/proc/cpuinfo', 'model name') or platform.machine()}, {os.cpu_count()} cores",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {name: value for name, value in found.items() if value}


def _commit() -> str:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return described.stdout.strip()


def _memory() -> str:
    kib = _field("/proc/meminfo", "MemTotal").removesuffix(" kB")
    return f"{int(kib) / 2**20:.0f} GiB" if kib else ""


def _field(path: str, name: str) -> str:
    """The value of the first line `name: value`; empty where there is no such file or line."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
