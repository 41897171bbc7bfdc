"""Chains: converters that several fields share, written once in `[converters]` and used by name."""

from typing import Any


def expanded(body: dict[str, Any]) -> dict[str, Any]:
    """A copy of `body` with the name of each chain in a `convert` list replaced by its converters."""
    chains = body.get("converters")
    if not isinstance(chains, dict):
        return body
    return {name: _expanded(value, chains) if name == "stages" else value for name, value in body.items()}


def _expanded(value: Any, chains: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_expanded(element, chains) for element in value]
    if isinstance(value, dict):
        return {
            name: _chained(element, chains) if name == "convert" else _expanded(element, chains)
            for name, element in value.items()
        }
    return value


def _chained(converters: Any, chains: dict[str, Any]) -> Any:
    if not isinstance(converters, list):
        return converters  # its type is for validation to judge
    chained: list[Any] = []
    for converter in converters:
        chain = chains.get(converter) if isinstance(converter, str) else None
        chained += chain if isinstance(chain, list) else [converter]
    return chained
