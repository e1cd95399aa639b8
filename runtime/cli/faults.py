"""Errors as a person reads them on standard error: what, where, the cure."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from runtime.errors import DamagedRecord, DefinitionError, ElencoError, Fault
from runtime.journal.elsewhere import in_state

from .visible import cells, same_width, visible

WIDEST = 160
MOST = 5


def show(error: ElencoError) -> int:
    """Print the error and return the exit code it ends the command with."""
    if isinstance(error, DefinitionError):
        for fault in error.faults[:MOST]:
            print(excerpt(fault), file=sys.stderr)
        count = len(error.faults)
        more = f" ({count - MOST} more not shown)" if count > MOST else ""
        print(f"{count_of(count, 'fault')}{more}; nothing was started (elenco check)", file=sys.stderr)
    else:
        print(f"error: {visible(str(error))}{_cure(error)}", file=sys.stderr)
    return error.exit_code


def _cure(error: ElencoError) -> str:
    if not isinstance(error, DamagedRecord):
        return ""
    at = in_state()
    return f"   which runs are damaged: elenco runs --check{at}   without this one: elenco delete {error.run}{at}"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def excerpts(faults: Iterable[Fault]) -> str:
    return "\n".join(excerpt(fault) for fault in faults)


def excerpt(fault: Fault) -> str:
    """`path:line:column: text`, the line, and a caret under what is meant."""
    word = "warning: " if fault.warning else ""
    lines = [visible(f"{fault.path}:{fault.line}:{fault.column}: {word}{fault.text}")]
    if fault.source.strip():
        source = same_width(fault.source)
        start, width = fault.column - 1, max(1, fault.width)
        if start > WIDEST // 2:
            skipped = start - WIDEST // 2
            source, start = f"…{source[skipped:]}", start - skipped + 1
        before, meant = source[:start], source[start : start + width]
        shown = source if len(source) <= WIDEST else f"{source[: WIDEST - 1]}…"
        carets = max(1, min(cells(meant), cells(shown) - cells(before)))
        lines.append(f"{fault.line:>4} | {shown}")
        lines.append(f"     | {' ' * cells(before)}{'^' * carets}")
    return "\n".join(lines)
