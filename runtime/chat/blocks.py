"""A long text in pieces that can each be laid out quickly, cut where Markdown allows it; pure."""

from __future__ import annotations

import re

LONGEST = 6000
"""Characters: laying out 20,000 as Markdown took 1.5 seconds."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def blocks(text: str, longest: int = LONGEST) -> list[str]:
    """Pieces of at most about `longest` characters, each Markdown in itself: a code block that is cut is closed and
    opened again. Without the fences added so, the pieces joined are the text."""
    found: list[str] = []
    piece: list[str] = []
    size = 0
    fence = ""
    for line in _lines(text, longest):
        if piece and (size + len(line) > longest or (size > longest // 2 and not fence and not line.strip())):
            found.append("".join(piece) + (f"\n{_mark(fence)}" if fence else ""))
            piece, size = ([f"{fence}\n"], len(fence) + 1) if fence else ([], 0)
        piece.append(line)
        size += len(line)
        fence = _after(fence, line)
    return [*found, "".join(piece)] if piece else found


def _lines(text: str, longest: int) -> list[str]:
    """The lines with their ends; one that is longer than a piece may be is cut."""
    return [
        line[start : start + longest]
        for line in text.splitlines(keepends=True)
        for start in range(0, len(line), longest)
    ]


def _mark(fence: str) -> str:
    found = _FENCE.match(fence)
    assert found is not None
    return found[1]


def _after(fence: str, line: str) -> str:
    """The opening line of the code block that is open after this one, nothing outside of one."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return line.rstrip("\n")
    closes = found[1].startswith(_mark(fence)) and not line[found.end() :].strip()
    return "" if closes else fence
