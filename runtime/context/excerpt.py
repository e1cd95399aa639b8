"""A long text cut to its head and its tail, with a marker that says what is missing and how to read it; pure."""

from __future__ import annotations

LEAST_CHARS = 160
"""What is shorter is not worth a marker."""
NEAR = 200
"""A cut moves this far, at most, to fall on the end of a line."""


def shorten(text: str, limit: int, handle: str | None = None) -> str:
    """Keep the head and the tail of a text longer than `limit` characters, with a marker that says what is missing.

    With a `handle`, the marker says how to read the rest. The answer has at most `limit` characters, unless the
    marker alone is longer.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_marker(0, len(text), len(text), handle)) - len(str(len(text))))
    head_end = _line_end_before(text, room * 2 // 3)
    tail_start = _line_start_after(text, len(text) - (room - room * 2 // 3))
    return text[:head_end] + _marker(head_end, tail_start, len(text), handle) + text[tail_start:]


def _marker(start: int, end: int, whole: int, handle: str | None) -> str:
    how = f'; read_result(handle="{handle}", start={start}) shows them' if handle else ""
    return f"\n[... {end - start} of {whole} characters left out{how} ...]\n"


def _line_end_before(text: str, at: int) -> int:
    found = text.rfind("\n", max(0, at - NEAR), at)
    return at if found < 0 else found + 1


def _line_start_after(text: str, at: int) -> int:
    found = text.find("\n", at, at + NEAR)
    return at if found < 0 else found + 1
