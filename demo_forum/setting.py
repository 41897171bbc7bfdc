"""Settings as dataclass fields: said once, read by the command line and by the knobs' JSON alike."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from dataclasses import field, fields
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


def setting(default: Any, text: str) -> Any:
    """A dataclass field with a default and a help text (with its unit)."""
    return field(default=default, metadata={"help": text})


def add_settings(parser: ArgumentParser, owner: type) -> None:
    """Adds one ``--option`` to `parser` for every field of the dataclass `owner`."""
    types = get_type_hints(owner)
    group = parser.add_argument_group(owner.__name__)
    for entry in fields(owner):
        kind = types[entry.name]
        option = "--" + entry.name.replace("_", "-")
        text = f"{entry.metadata['help']} (default: {'none' if entry.default in (None, '') else entry.default})"
        if kind is bool:
            group.add_argument(option, action=BooleanOptionalAction, default=entry.default, help=text)
        else:
            kind = next(iter(get_args(kind)), kind)
            metavar = "TEXT" if kind is str else "N"
            group.add_argument(option, type=kind, default=entry.default, help=text, metavar=metavar)


def from_options(owner: type[T], options: Namespace) -> T:
    """An `owner` made of the options that `add_settings` added. Raises ValueError as `owner` does."""
    return owner(**{name: getattr(options, name) for name in get_type_hints(owner)})


def require_types(instance: object) -> None:
    """Raises ValueError when a field's value is not of its declared type; an int passes for a float."""
    for name, kind in get_type_hints(type(instance)).items():
        allowed = get_args(kind) or (kind,)
        value = getattr(instance, name)
        if not any(_is_a(value, one) for one in allowed):
            wanted = " or ".join("null" if one is type(None) else one.__name__ for one in allowed)
            raise ValueError(f"{name} must be {wanted}, not {value!r}")


def _is_a(value: object, kind: type) -> bool:
    if isinstance(value, bool):  # bool is an int to Python, never to a reader of settings
        return kind is bool
    return isinstance(value, kind) or (kind is float and isinstance(value, int))
