"""Errors as a person reads them on standard error: what, where, the cure."""

from __future__ import annotations

import sys

from runtime.errors import DefinitionError, ElencoError, Fault


def show(error: ElencoError) -> int:
    """Print the error and return the exit code it ends the command with."""
    if isinstance(error, DefinitionError):
        for fault in error.faults:
            print(excerpt(fault), file=sys.stderr)
        count = len(error.faults)
        print(f"{count} fault{'s' if count != 1 else ''}; nothing was started (elenco check)", file=sys.stderr)
    else:
        print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def excerpt(fault: Fault) -> str:
    """`path:line:column: text`, the line, and a caret under what is meant."""
    word = "warning: " if fault.warning else ""
    lines = [f"{fault.path}:{fault.line}:{fault.column}: {word}{fault.text}"]
    if fault.source:
        number = f"{fault.line:>4}"
        width = max(1, min(fault.width, len(fault.source) - fault.column + 1))
        lines.append(f"{number} | {fault.source}")
        lines.append(f"     | {' ' * (fault.column - 1)}{'^' * width}")
    return "\n".join(lines)
