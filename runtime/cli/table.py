"""Columns of text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from .visible import cells, cut


def columns(rows: Sequence[Sequence[str]], last_width: int = 60) -> str:
    """The rows with their columns aligned; the last column is cut at `last_width` cells."""
    if not rows:
        return ""
    widths = [max(cells(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    lines: list[str] = []
    for row in rows:
        filled = [cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*filled, cut(row[-1], last_width)]).rstrip())
    return "\n".join(lines)
