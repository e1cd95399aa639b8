"""Columns of text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], last_width: int = 60) -> str:
    """The rows with their columns aligned; the last column is cut at `last_width` characters."""
    if not rows:
        return ""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    lines: list[str] = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        last = row[-1] if len(row[-1]) <= last_width else f"{row[-1][: last_width - 1]}…"
        lines.append("  ".join([*cells, last]).rstrip())
    return "\n".join(lines)
