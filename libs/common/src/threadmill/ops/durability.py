"""What a Redis's settings promise: one finding for each thing the promises rest on, and what remains of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from threadmill.store.connection import MIN_VERSION, STORE_FAILURES, Client

WANTED = (
    *("appendfsync", "save", "no-appendfsync-on-rewrite", "min-replicas-to-write", "min-replicas-max-lag"),
    "stop-writes-on-bgsave-error",
)
"""Settings that INFO does not show."""
OK, WARNING, ERROR = "ok", "warning", "error"
UNSEEN = "cannot be seen"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `level` is ok, warning or error."""

    subject: str
    level: str
    message: str


class Durability:
    """A Redis as it says it is set: by INFO, and by CONFIG GET where that is allowed."""

    def __init__(self, info: Mapping[str, Any], settings: Mapping[str, str], refusal: str = "") -> None:
        self._info = info
        self._settings = settings
        self._refusal = refusal

    @classmethod
    def of(cls, client: Client) -> Durability:
        """Ask a Redis; raises one of `STORE_FAILURES` if it does not answer. Managed ones often refuse CONFIG."""
        info: dict[str, Any] = client.info()
        settings: dict[str, Any] = {}
        try:
            for name in WANTED:  # one by one: before 7.0 CONFIG GET takes one name
                settings.update({str(key): str(value) for key, value in client.config_get(name).items()})
        except STORE_FAILURES as error:
            return cls(info, {}, str(error))
        return cls(info, settings)

    def findings(self) -> Iterator[Finding]:
        """All of them, what is well included."""
        yield self._version()
        yield self._cluster()
        yield self._append_only()
        yield from self._fsync()
        yield self._snapshots()
        yield from self._last_writes()
        yield self._eviction()
        yield self._memory()
        yield self._replication()
        if self._refusal:
            yield Finding(
                "config",
                WARNING,
                f"CONFIG GET is refused ({self._refusal}), so {', '.join(WANTED)} cannot be seen; allow it "
                "(ACL SETUSER <user> +config|get), or look where this Redis is managed",
            )

    def promise(self) -> str:
        """What is lost when, in one sentence."""
        if any(finding.level == ERROR and finding.subject in _UNFIT for finding in self.findings()):
            return "none: this Redis must not be used as it is set"
        if not self._aof:
            if self._refusal:
                return "a restart of Redis may lose all work (whether there are snapshots cannot be seen)"
            if not self._saves:
                return "a restart of Redis loses all work"
            return "a crash of Redis or a power cut loses all that was submitted since the last snapshot"
        fsync, failover = self._settings.get("appendfsync"), ""
        if self._info.get("connected_slaves"):
            failover = "; a failover loses what its replica had not yet been sent"
        if fsync == "always" and not self._pauses_fsync:
            return "nothing acknowledged is lost, even by a power cut" + failover
        window = "the last 2 seconds"
        if self._pauses_fsync:
            window = "the time a rewrite takes, or the last 2 seconds"
        if fsync == "no":
            window = "the last 30 seconds or longer"
        if fsync is None:
            window = "a time that cannot be seen (appendfsync)"
        again = "everything else is done again"
        return f"a power cut or a crash of Redis may lose what was submitted in {window}; {again}{failover}"

    @property
    def _aof(self) -> bool:
        return bool(self._info.get("aof_enabled"))

    @property
    def _saves(self) -> bool:
        return self._settings.get("save", "") != ""

    @property
    def _pauses_fsync(self) -> bool:
        return self._settings.get("no-appendfsync-on-rewrite") == "yes"

    def _version(self) -> Finding:
        version = str(self._info.get("redis_version", "0"))
        if tuple(int(part) for part in version.split(".")[:2]) < MIN_VERSION:
            return Finding("version", ERROR, f"{version}; 6.2 or newer is needed")
        return Finding("version", OK, version)

    def _cluster(self) -> Finding:
        if self._info.get("cluster_enabled"):
            return Finding("cluster", ERROR, "cluster mode is on; use one server (cluster-enabled no)")
        return Finding("cluster", OK, "one server")

    def _append_only(self) -> Finding:
        if self._aof:
            return Finding("appendonly", OK, "the append-only file is on")
        todo = "set appendonly yes and appendfsync everysec or always"
        if self._saves:
            return Finding("appendonly", WARNING, f"off: a crash loses what came after the last snapshot; {todo}")
        if self._refusal:
            return Finding("appendonly", WARNING, f"off: a restart of Redis loses work; {todo}")
        return Finding("appendonly", ERROR, f"off, and there are no snapshots: a restart of Redis loses all; {todo}")

    def _fsync(self) -> Iterator[Finding]:
        if not self._aof:
            return
        fsync = self._settings.get("appendfsync")
        says = {
            "always": (OK, "always: what is acknowledged is on disk"),
            "everysec": (OK, "everysec: what was submitted in the last 2 seconds may be lost; always loses nothing"),
            "no": (WARNING, "no: half a minute or more may be lost; set appendfsync everysec or always"),
        }
        yield Finding("appendfsync", *says.get(fsync or "", (WARNING, UNSEEN)))
        if self._pauses_fsync:
            yield Finding(
                "no-appendfsync-on-rewrite",
                WARNING,
                "yes: while the file is rewritten nothing is forced to disk, whatever appendfsync says; set it to no",
            )
        elif not self._refusal:
            yield Finding("no-appendfsync-on-rewrite", OK, "no")

    def _snapshots(self) -> Finding:
        if self._refusal:
            return Finding("save", OK, UNSEEN)
        if not self._saves:
            return Finding("save", OK, "no snapshots; the append-only file needs none" if self._aof else "no snapshots")
        return Finding("save", OK, f"snapshots at {self._settings['save']} (seconds, changes)")

    def _last_writes(self) -> Iterator[Finding]:
        """A Redis that cannot write to its disk refuses all work."""
        stops = self._settings.get("stop-writes-on-bgsave-error", "yes") == "yes"
        for field, level in (
            ("aof_last_write_status", ERROR),
            ("aof_last_bgrewrite_status", WARNING),
            ("rdb_last_bgsave_status", ERROR if stops else WARNING),
        ):
            if (status := self._info.get(field, "ok")) == "ok":
                yield Finding(field, OK, "ok")
            else:
                yield Finding(field, level, f"{status}: is the disk of Redis full or broken? Its log says")

    def _eviction(self) -> Finding:
        policy = self._info.get("maxmemory_policy", "noeviction")
        if policy == "noeviction":
            return Finding("maxmemory-policy", OK, "noeviction")
        return Finding("maxmemory-policy", ERROR, f"{policy} throws work away when memory is full; set noeviction")

    def _memory(self) -> Finding:
        """Without a limit the machine's memory is one, and the kernel ends who goes beyond it."""
        used, limit = self._info.get("used_memory", 0), self._info.get("maxmemory", 0)
        whole = limit or self._info.get("total_system_memory", 0)
        of = f"{used / 1e6:.0f} MB used of {whole / 1e6:.0f} MB" + (" (maxmemory)" if limit else " in the machine")
        if whole and used > (0.8 if limit else 0.5) * whole:
            return Finding("maxmemory", WARNING, f"{of}: full, Redis takes no more work; give it more memory")
        if not limit:
            return Finding("maxmemory", OK, f"{of}; no limit: set one where Redis shares the machine with others")
        return Finding("maxmemory", OK, of)

    def _replication(self) -> Finding:
        if self._info.get("role") not in (None, "master"):
            return Finding("replicas", ERROR, "this is a replica, which takes no writes; name its master")
        if not (replicas := self._info.get("connected_slaves", 0)):
            return Finding("replicas", OK, "none: nothing fails over")
        least = self._settings.get("min-replicas-to-write", "0")
        if least == "0":
            return Finding(
                "replicas",
                WARNING,
                f"{replicas}, and Redis does not wait for them: a failover loses what was not sent yet, or all since a "
                "master was cut off; set min-replicas-to-write 1 to bound that",
            )
        lag = self._settings.get("min-replicas-max-lag", "10")
        return Finding("replicas", OK, f"{replicas}: a failover loses at most some {lag} seconds of submissions")


_UNFIT = ("version", "cluster", "maxmemory-policy", "replicas")
