"""Lone surrogates: one emoji's two halves may come in two deltas, and neither can be written as UTF-8 alone."""

from __future__ import annotations


def repaired(text: str) -> str:
    """`text` with surrogate pairs joined into their character and lone ones replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def to_utf8(text: str) -> bytes:
    """`text` as UTF-8, repaired where needed."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return repaired(text).encode()


class Halves:
    """Holds back a high surrogate at the end of a piece until the piece with the other half comes."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def whole(self, text: str) -> str:
        """`text` as it can be shown now: behind what was held back, without a half at its own end."""
        if self._held:
            text, self._held = self._held + text, ""
        if not text.isascii() and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return repaired(text)
