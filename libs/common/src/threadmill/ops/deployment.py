"""A deployment as an operator's command sees it: settings, sources, lanes, and a connection to Redis."""

from __future__ import annotations

from dataclasses import dataclass

from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane, partition_of
from threadmill.model.source import Source, configured_sources, lanes_of
from threadmill.model.stages import STAGES, Stage
from threadmill.store.configured import configured_store
from threadmill.store.connection import Client, connect, wait_until_ready
from threadmill.store.stage import StageStore


@dataclass(frozen=True)
class Deployment:
    """What the settings describe, connected."""

    config: Config
    sources: dict[str, Source]
    client: Client

    @classmethod
    def connected(cls, config: Config, *, wait_ms: int = 0) -> Deployment:
        """Load the sources and make sure that Redis can be used; commands do not wait for it unless told to."""
        sources = {source.name: source for source in configured_sources(config)}
        url = config.redis_url.get_secret_value()
        client = connect(url)
        wait_until_ready(client, url, wait_ms=wait_ms)
        return cls(config, sources, client)

    def source(self, name: str | None) -> Source:
        """The source called `name`, or the only one."""
        if name is None:
            if len(self.sources) > 1:
                raise ConfigError(f"several sources are configured; say which: --source {'|'.join(self.sources)}")
            return next(iter(self.sources.values()))
        try:
            return self.sources[name]
        except KeyError:
            known = ", ".join(self.sources)
            raise ConfigError(f"source {name!r} is not configured (THREADMILL_SOURCES has {known})") from None

    def lanes(self, source: str | None = None) -> list[Lane]:
        """The lanes of one source, or of all."""
        sources = [self.source(source)] if source else list(self.sources.values())
        return [lane for each in sources for lane in lanes_of(each, self.config)]

    def lane_of(self, source: Source, key: str) -> Lane:
        """The lane a root task with this key belongs to."""
        return Lane(source.name, partition_of(key, self.config.partitions), self.config.namespace)

    def store(self, lane: Lane, stage: Stage) -> StageStore:
        return configured_store(self.config, lane, stage)


def stage_argument(name: str) -> Stage:
    """The stage an operator named; `ConfigError` lists those there are."""
    if name not in STAGES:
        raise ConfigError(f"unknown stage {name!r}; stages are {', '.join(STAGES)}")
    return STAGES[name]
