"""The sources a deployment serves, as its settings name them."""

from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.model.source.loading import load_source
from threadmill.model.source.source import Source


def configured_sources(config: Config) -> list[Source]:
    """Load THREADMILL_SOURCES, at THREADMILL_BASE_URL if that is set; raises `SourceError` or `ConfigError`."""
    sources = [load_source(name) for name in config.sources]
    if not sources:
        raise ConfigError("no source is configured: set THREADMILL_SOURCES to files or names in sources/")
    if config.base_url:
        if len(sources) != 1:
            raise ConfigError("THREADMILL_BASE_URL moves one source; set THREADMILL_SOURCES to just that one")
        sources = [sources[0].at(config.base_url)]
    return sources


def lanes_of(source: Source, config: Config) -> list[Lane]:
    """The lanes of a source: its partitions."""
    return [Lane(source.name, partition, config.namespace) for partition in range(config.partitions)]
