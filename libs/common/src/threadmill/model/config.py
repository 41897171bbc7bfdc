"""Every setting that comes from the environment, in one class. `threadmill doctor` prints them, secrets hidden."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from threadmill.model.errors import ConfigError


class Config(BaseSettings):
    """Settings named `THREADMILL_<NAME>`; durations end in `_ms`, sizes in `_bytes`."""

    model_config = SettingsConfigDict(env_prefix="THREADMILL_", frozen=True, extra="ignore")

    redis_url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="redis://, rediss:// or unix:// URL of Redis or Valkey",
    )
    redis_wait_ms: int = Field(60_000, ge=0, description="how long to wait at start for a Redis that does not answer")
    namespace: str = Field("", pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="stands before every key")
    sources: Annotated[tuple[str, ...], NoDecode] = Field(
        ("bbs",), description="source files or names (sources/<name>.toml), separated by commas"
    )
    base_url: str = Field("", description="overrides the base URL of the one source, e.g. of a demo forum")
    partitions: int = Field(1, ge=1, le=4096, description="partitions of each source")
    store_url: SecretStr = Field(
        SecretStr("sqlite:///data/threadmill.db"),
        description="where the item writer stores rows (SQLAlchemy URL)",
    )
    lease_ttl_ms: int = Field(
        30_000, ge=500, le=3_600_000, description="after this long without renewal a page is another's"
    )
    max_deliveries: int = Field(
        5, ge=1, le=1000, description="a page that killed its worker this often is parked as a dead letter"
    )
    max_failures: int = Field(12, ge=1, le=1000, description="a page that failed this often is parked")
    retry_base_ms: int = Field(1_000, ge=1, description="first retry delay; doubles with every failure")
    retry_max_ms: int = Field(300_000, ge=1, description="longest retry delay")
    concurrency: int = Field(16, ge=1, le=1000, description="downloads at a time of one worker")
    queue_order: str = Field("priority", pattern="^(priority|fifo|lifo)$", description="priority, fifo or lifo")
    dupefilter: str = Field(
        "run",
        pattern="^(run|exact|set|bloom|window)$",
        description="filter of follow-up requests; see redis-keys.md",
    )
    known_age_s: int = Field(
        0, ge=0, description="a post not met for so long is forgotten, and new when met; 0 = never"
    )
    known_size: int = Field(0, ge=0, description="posts of a lane that are known at most, about; 0 = all")
    known_hits: int = Field(
        0, ge=0, le=60_000, description="a post met so often is collected again; 0 = only when moved"
    )
    backlog_high: int = Field(
        100_000,
        ge=0,
        description="a stage leases nothing while a stage it hands down to has so much waiting; 0 = no mark",
    )
    backlog_low: int = Field(50_000, ge=0, description="and goes on when no more than this waits")
    items_high: int = Field(
        20_000, ge=0, description="no stage leases while items of so many pages are not stored; 0 = no mark"
    )
    items_low: int = Field(10_000, ge=0, description="and goes on when no more than this wait")
    boards: str = Field(
        "", description="file of the boards that the dispatcher scans (TOML); empty: none but those added live"
    )
    threshold: int = Field(
        10_000, ge=1, description="a board is dispatched only while fewer scans than this wait or run in its lane"
    )
    post_events: bool = Field(False, description="write an event for each post that is complete with its comments")
    idle_close_ms: int = Field(0, ge=0, description="a service without work for this long closes; 0 = waits for ever")
    grace_ms: int = Field(
        20_000, ge=0, description="after SIGTERM, time for pages in flight before they are given back"
    )
    log_format: str = Field("console", pattern="^(console|json)$", description="console or json")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG, INFO, WARNING or ERROR")

    @field_validator("sources", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def from_environment(cls) -> Config:
        """Read `THREADMILL_*`; raises `ConfigError` naming each setting that is wrong, never its value."""
        try:
            return cls()
        except ValidationError as error:
            wrong = "; ".join(f"THREADMILL_{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors())
            raise ConfigError(f"the environment has settings that cannot be used: {wrong}") from None

    def shown(self) -> dict[str, str]:
        """Every setting as text for people, passwords hidden."""
        values = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            if isinstance(value, str) and "://" in value:
                value = without_password(value)
            values[f"THREADMILL_{name.upper()}"] = ",".join(value) if isinstance(value, tuple) else str(value)
        return values


_USER_PASSWORD = re.compile(r"^([A-Za-z][\w+.-]*://[^:@/?#]*):.*@", re.DOTALL)
_PASSWORD_PARAMETER = re.compile(r"([?&]password=)[^&#]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """The URL with its password, if any, replaced by `***`: before the host, or a parameter `password`.

    Hides too much rather than too little: a password with unescaped `/`, `#` or `@` in it is still a password.
    """
    url = _USER_PASSWORD.sub(r"\1:***@", url)
    return _PASSWORD_PARAMETER.sub(r"\1***", url)
