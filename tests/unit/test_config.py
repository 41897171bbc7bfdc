"""Settings from the environment: what may be said, and what must never be shown."""

from __future__ import annotations

import pytest

from threadmill.model.config import Config, without_password
from threadmill.model.errors import ConfigError

SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests."""
    for name in Config.model_fields:
        monkeypatch.delenv(f"THREADMILL_{name.upper()}", raising=False)


def test_defaults_are_usable() -> None:
    config = Config.from_environment()
    assert (config.sources, config.partitions, config.namespace) == (("bbs",), 1, "")
    assert config.redis_url.get_secret_value() == "redis://127.0.0.1:6379/0"


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADMILL_LEASE_TTL_MS", "5000")
    monkeypatch.setenv("THREADMILL_SOURCES", " bbs, sources/other.toml ,")
    monkeypatch.setenv("THREADMILL_QUEUE_ORDER", "lifo")
    monkeypatch.setenv("THREADMILL_NOT_A_SETTING", "is not ours to judge")
    config = Config.from_environment()
    assert (config.lease_ttl_ms, config.sources, config.queue_order) == (5000, ("bbs", "sources/other.toml"), "lifo")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_TTL_MS", f"{SECRET}"),
        ("LEASE_TTL_MS", "12"),
        ("LEASE_TTL_MS", "1e99"),
        ("PARTITIONS", "0"),
        ("PARTITIONS", "5000"),
        ("CONCURRENCY", f"-{SECRET}"),
        ("NAMESPACE", f"{{{SECRET}}}"),
        ("NAMESPACE", f"{SECRET}:"),
        ("NAMESPACE", f"{SECRET}\n"),
        ("QUEUE_ORDER", SECRET),
        ("QUEUE_ORDER", f"fifo|{SECRET}"),
        ("DUPEFILTER", SECRET),
        ("LOG_LEVEL", SECRET),
        ("MAX_FAILURES", ""),
    ],
)
def test_errors_name_the_variable_and_never_its_value(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    # Given a setting that cannot be used; when settings are read; then the operator is told which, and not what
    monkeypatch.setenv(f"THREADMILL_{name}", value)
    with pytest.raises(ConfigError, match=f"THREADMILL_{name}: ") as caught:
        Config.from_environment()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_every_wrong_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADMILL_PARTITIONS", "many")
    monkeypatch.setenv("THREADMILL_CONCURRENCY", "0")
    with pytest.raises(ConfigError, match=r"THREADMILL_PARTITIONS: .*; THREADMILL_CONCURRENCY: "):
        Config.from_environment()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config.from_environment().concurrency = 3


URLS = [
    (f"redis://:{SECRET}@redis:6379/0", "redis://:***@redis:6379/0"),
    (f"rediss://user:{SECRET}@redis/1", "rediss://user:***@redis/1"),
    (f"redis://user:{SECRET}@{SECRET}@redis/1", "redis://user:***@redis/1"),
    (f"redis://user:{SECRET}/{SECRET}#{SECRET}?{SECRET}@redis/1", "redis://user:***@redis/1"),
    (f"unix://user:{SECRET}@/run/redis.sock?db=0", "unix://user:***@/run/redis.sock?db=0"),
    (f"redis://redis/0?password={SECRET}&db=1", "redis://redis/0?password=***&db=1"),
    (f"postgresql+psycopg://me:{SECRET}@db:5432/forum", "postgresql+psycopg://me:***@db:5432/forum"),
    (f"postgresql://db/forum?user=me&password={SECRET}", "postgresql://db/forum?user=me&password=***"),
    (f"redis://:{SECRET}@[::1]:6379/0", "redis://:***@[::1]:6379/0"),
    (f"redis://:{SECRET}@[::1:6379/0", "redis://:***@[::1:6379/0"),
]


@pytest.mark.parametrize(("url", "shown"), URLS)
def test_passwords_are_hidden(monkeypatch: pytest.MonkeyPatch, url: str, shown: str) -> None:
    # Given a URL with a password; then it is nowhere to be seen
    assert without_password(url) == shown
    for name in ("REDIS_URL", "STORE_URL"):
        monkeypatch.setenv(f"THREADMILL_{name}", url)
    assert SECRET not in repr(Config.from_environment()) + str(Config.from_environment())
    monkeypatch.setenv("THREADMILL_BASE_URL", url)
    config = Config.from_environment()
    assert config.shown()["THREADMILL_REDIS_URL"] == shown
    assert SECRET not in str(config.shown())


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/0",
        "redis://user@redis:6379/0",
        "redis://[::1]:6379/0",
        "sqlite:///data/threadmill.db",
        "sqlite:////srv/a:b@c/threadmill.db",
        "",
    ],
)
def test_urls_without_password_are_shown_as_they_are(url: str) -> None:
    assert without_password(url) == url


def test_every_setting_is_shown_and_described() -> None:
    shown = Config.from_environment().shown()
    assert list(shown) == [f"THREADMILL_{name.upper()}" for name in Config.model_fields]
    assert all(setting.description for setting in Config.model_fields.values())
    assert shown["THREADMILL_SOURCES"] == "bbs"
