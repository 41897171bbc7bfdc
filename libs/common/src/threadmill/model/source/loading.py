"""Reading a source definition from its TOML file."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from threadmill.model.errors import SourceError
from threadmill.model.source.source import Source

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_HELP = "docs/writing-a-source.md describes every key."


def load_source(name_or_path: str | Path, search: Sequence[Path] = (Path("sources"),)) -> Source:
    """The source in the file `name_or_path`, or in `<name>.toml` of the first folder of `search` that has it.

    Raises `SourceError` saying which file, which key, and what to do.
    """
    file = _find(name_or_path, search)
    try:
        body = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(
            f"{file}: cannot be read ({error.strerror or error}); check the path and its permissions."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{file}: is not TOML: {error}. Correct the file.") from None
    try:
        source = Source.model_validate(body)
    except ValidationError as error:
        raise SourceError(_sentence(file, error)) from None
    if isinstance(name_or_path, str) and file.stem == name_or_path != source.name:
        raise SourceError(
            f"{file}: name is {source.name!r}; call the source {file.stem!r} as the file, or load it by path."
        )
    return source


def _find(name_or_path: str | Path, search: Sequence[Path]) -> Path:
    if isinstance(name_or_path, Path) or not _NAME.fullmatch(name_or_path):
        return Path(name_or_path)
    candidates = [folder / f"{name_or_path}.toml" for folder in search]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise SourceError(
        f"there is no source {name_or_path!r}: none of {looked} exists. Write one, or give the file's path."
    )


def _sentence(file: Path, error: ValidationError) -> str:
    """The first mistake as a sentence, and how many more there are."""
    first, *others = error.errors(include_url=False)
    key = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "there is no such key; correct its name or remove it"
    elif first["type"] == "missing":
        message = "the key is missing; add it"
    more = f" (and {len(others)} more)" if others else ""
    return f"{file}: {key + ': ' if key else ''}{message}{more}. {_HELP}"
