"""Redis's glob patterns."""


def escaped(text: str) -> str:
    """The pattern for this very text."""
    return "".join(f"\\{character}" if character in "*?[]^\\" else character for character in text)
