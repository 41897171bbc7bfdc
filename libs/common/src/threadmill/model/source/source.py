"""A source: one site, described by one TOML file."""

import re
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator
from pydantic import Field as Key

from threadmill.model.errors import SourceError
from threadmill.model.source.chains import expanded
from threadmill.model.source.converters import Converter
from threadmill.model.source.stage import Name, StageRules
from threadmill.model.source.table import Table

_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_UNSAFE = re.compile("[\x00-\x20\x7f\\\\]")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if (
        parts.scheme not in _DEFAULT_PORTS
        or not _HOST.fullmatch(parts.netloc)
        or parts.query
        or parts.fragment
        or _UNSAFE.search(value)
    ):
        raise ValueError(
            f"{value!r} is no base URL: write scheme, host and at most a path, e.g. https://bbs.example.com"
        )
    return value.rstrip("/")


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError(f"{value!r} is no host: write host or host:port, e.g. bbs.example.com")
    return value.lower()


def host_of(url: str) -> str | None:
    """Host of a URL, with its port unless that is the scheme's own; None for a URL that is never asked."""
    if _UNSAFE.search(url):  # browsers and libraries disagree about what these mean
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(parts.netloc):
        return None
    return parts.netloc.lower().removesuffix(_DEFAULT_PORTS[parts.scheme])


class Source(Table):
    """A site: where it is, how politely it is asked, and the rules of each stage."""

    name: str = Key(pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    base_url: Annotated[str, AfterValidator(_base_url)]
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    """Hosts (host or host:port) that may be asked, redirects included. Default: that of `base_url`."""
    rate: float | None = Key(default=None, gt=0)
    """Requests/s for the whole site, over all replicas. Default: no limit of its own."""
    user_agent: str | None = None
    headers: dict[str, str] = Key(default={})
    """Sent with every request, e.g. the language in which the site shall write its dates."""
    obey_robots: bool = True
    converters: dict[Name, tuple[Converter, ...]] = Key(default={})
    """Chains of converters by name; `convert` may use the name for the chain."""
    stages: dict[Name, StageRules] = Key(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        if not body.get("hosts") and isinstance(body.get("base_url"), str):
            body = {**body, "hosts": [host_of(body["base_url"]) or body["base_url"]]}
        return expanded(body)

    @model_validator(mode="after")
    def _hands_down_to_known_stages(self) -> Self:
        for name, rules in self.stages.items():
            for submit in rules.submit:
                if submit.stage not in self.stages:
                    raise ValueError(f"stages.{name} hands down to {submit.stage}, which is no stage of it")
                resume = self.stages[submit.stage].resume
                if resume is not None and len(submit.version) < resume.part:
                    raise ValueError(
                        f"stages.{name} gives {submit.stage} a version of {len(submit.version)} fields: "
                        f"stages.{submit.stage}.resume reads field {resume.part} of it"
                    )
                if undeclared := submit.params.keys() - self.stages[submit.stage].params.keys():
                    raise ValueError(
                        f"stages.{name} hands {', '.join(sorted(undeclared))} to {submit.stage}: "
                        f"declare it in stages.{submit.stage}.params"
                    )
        return self

    def at(self, base_url: str) -> Self:
        """The same source at another address, and only there: that is its one host. Raises `SourceError`."""
        try:
            moved = _base_url(base_url)
        except ValueError as error:
            raise SourceError(str(error)) from None
        return self.model_copy(update={"base_url": moved, "hosts": (host_of(moved),)})

    def rules(self, stage: str) -> StageRules:
        """The rules of `stage`; raises `SourceError` if the source has none."""
        try:
            return self.stages[stage]
        except KeyError:
            raise SourceError(
                f"source {self.name} has no stage {stage}: add a table [stages.{stage}] or ask for "
                f"{', '.join(self.stages)}"
            ) from None

    def allows(self, url: str) -> bool:
        """Whether `url` is on one of the hosts; asked for every request, redirects included."""
        host = host_of(url)
        return host is not None and host in self.hosts
