"""A table of a source definition: what all of them have in common."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Table(BaseModel):
    """A frozen table in which an unknown key is a mistake, not a wish."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _regular(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_regular)]
"""A regular expression in Python's syntax, checked when the source is loaded."""
