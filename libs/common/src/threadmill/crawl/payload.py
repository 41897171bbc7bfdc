"""Requests as bytes: JSON, only what differs from the default, and nothing that needs pickle."""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import orjson
from scrapy import Request, Spider

from threadmill.crawl.page import PAGE, PARENT
from threadmill.model.errors import ConfigError, TaskError

MAX_BYTES = 1_000_000
_LOCAL_META = {PAGE, PARENT, "download_slot", "download_latency", "download_timeout", "redirect_times"}


class UnserializableRequestError(TaskError):
    """A request that cannot be written as JSON: a callback that is no method of the spider, or meta that is no JSON."""

    def __init__(self, message: str) -> None:
        super().__init__("unserializable", message)


class Serializer(Protocol):
    """A module or object that turns JSON values into bytes and back: `SCHEDULER_SERIALIZER`, by default orjson."""

    def dumps(self, value: Any, /) -> bytes: ...

    def loads(self, data: bytes, /) -> Any: ...


def serializer_named(path: str | None) -> Serializer:
    """Import a serializer; `ConfigError` for pickle: whoever can write to Redis could run code in every worker."""
    if path is None:
        return orjson
    if "pickle" in path.lower():
        raise ConfigError(f"SCHEDULER_SERIALIZER={path}: pickle is not supported; use one that only knows values")
    try:
        serializer: Serializer = import_module(path)
    except ImportError as error:
        raise ConfigError(f"SCHEDULER_SERIALIZER={path} cannot be imported: {error}") from None
    return serializer


def encode(request: Request, spider: Spider, serializer: Serializer = orjson) -> bytes:
    """Write a request; raises `UnserializableRequestError` saying which part of it cannot be written."""
    meta = {key: value for key, value in request.meta.items() if key not in _LOCAL_META and not key.startswith("_")}
    body: dict[str, Any] = {"u": request.url}
    optional = {
        "c": _name_of(request.callback, spider),
        "e": _name_of(request.errback, spider),
        "m": request.method if request.method != "GET" else None,
        "b": base64.b64encode(request.body).decode() if request.body else None,
        "h": {k.decode("latin-1"): [v.decode("latin-1") for v in vs] for k, vs in request.headers.items()} or None,
        "k": request.cb_kwargs or None,
        "t": meta or None,
        "o": request.cookies or None,
        "p": request.priority or None,
        "d": request.dont_filter or None,
    }
    body.update({key: value for key, value in optional.items() if value is not None})
    try:
        data = serializer.dumps(body)
    except (TypeError, ValueError) as error:
        raise UnserializableRequestError(f"the request for {request.url} is not JSON: {error}") from None
    if len(data) > MAX_BYTES:
        raise UnserializableRequestError(
            f"the request for {request.url} has {len(data)} bytes; at most {MAX_BYTES} are kept"
        )
    return data


def decode(data: bytes, spider: Spider, serializer: Serializer = orjson) -> Request:
    """Read a request; raises `ValueError`, `TypeError` or `KeyError` when the bytes are not one."""
    body = serializer.loads(data)
    return Request(
        url=body["u"],
        callback=_method(spider, body.get("c")),
        errback=_method(spider, body.get("e")),
        method=body.get("m", "GET"),
        body=base64.b64decode(body["b"]) if "b" in body else None,
        headers=body.get("h"),
        cb_kwargs=body.get("k"),
        meta=body.get("t"),
        cookies=body.get("o"),
        priority=body.get("p", 0),
        dont_filter=body.get("d", False),
    )


def _name_of(function: Any, spider: Spider) -> str | None:
    if function is None:
        return None
    name = getattr(function, "__name__", "")
    if getattr(function, "__self__", None) is not spider or getattr(spider, name, None) != function:
        raise UnserializableRequestError(
            f"{function!r} is not a method of the spider, so no other worker could call it"
        )
    return str(name)


def _method(spider: Spider, name: str | None) -> Callable[..., Any] | None:
    if name is None:
        return None
    method = getattr(spider, name, None)
    if not callable(method):
        raise ValueError(f"the spider has no method {name!r}")
    return method  # type: ignore[no-any-return]
