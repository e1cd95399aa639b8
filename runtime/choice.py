"""Which of the offered options a human's answer means; pure."""

from __future__ import annotations

from collections.abc import Sequence


def chosen(text: str, options: Sequence[str]) -> str:
    """The option that a text names by its number, from 1, or by itself in any case; else the text as it is."""
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and 1 <= int(plain) <= len(options):
        return options[int(plain) - 1]
    return next((option for option in options if option.casefold() == plain.casefold()), plain)
