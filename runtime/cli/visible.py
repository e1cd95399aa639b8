"""Text from models, tools and files as a terminal may have it: control characters are shown, never obeyed."""

from __future__ import annotations

import re
import unicodedata

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OBEYED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with its line breaks and tabs, every other control character written out as `\\x1b`."""
    text = text.replace("\r\n", "\n")
    return _SURROGATE.sub("\ufffd", _OBEYED.sub(lambda found: repr(found[0])[1:-1], text))


def one_line(text: str, width: int) -> str:
    """The text on one line of at most `width` characters."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def same_width(text: str) -> str:
    """A line in which every control character takes one cell, so that a caret below it points where it should."""
    return _OBEYED.sub("·", text.replace("\t", " ").replace("\r", ""))


def cells(text: str) -> int:
    """How many columns a terminal needs for it."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, width: int) -> str:
    """The beginning of a line that fits into `width` columns."""
    if cells(text) <= width:
        return text
    found, used = "", 1
    for char in text:
        used += cells(char)
        if used > width:
            break
        found += char
    return f"{found}…" if width > 0 else ""
