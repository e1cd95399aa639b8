"""Lines typed at a terminal outside of a turn: edited, recalled from earlier chats and completed by readline."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from runtime.chat.commands import Slash, completions
from runtime.chat.typed import Typed

from .streams import as_text

PROMPT = "you> "


def prepare(typed: Typed, more: Sequence[Slash]) -> None:
    """Let Up bring what was typed before, and Tab complete a command; where there is no readline, neither is."""
    stdin: Any = sys.stdin
    stdin.reconfigure(errors="surrogateescape")  # for `as_text`
    try:
        import readline
    except ImportError:
        return

    def complete(word: str, number: int) -> str | None:
        found = [f"/{each.name} " for each in completions(word, more, lines=True) if each.name.startswith(word[1:])]
        return found[number] if number < len(found) else None

    lines: Any = readline
    lines.clear_history()
    for each in typed.lines:
        if "\n" not in each:
            with contextlib.suppress(UnicodeError):  # the locale has no such letters
                lines.add_history(each)
    lines.set_completer_delims(" \t\n")
    lines.set_completer(complete)
    lines.parse_and_bind("tab: complete")


def echoed(typed: Typed, line: str) -> str:
    """A line that was typed before it was asked for, as it stands where it is taken."""
    typed.add(line)
    with contextlib.suppress(ImportError, UnicodeError):
        import readline

        readline.add_history(line)
    print(f"{PROMPT}{line}", file=sys.stderr)
    return line


def asked(typed: Typed) -> str | None:
    """The next line, None at the end of the input. Raises KeyboardInterrupt."""
    try:
        line = as_text(input(PROMPT))
    except EOFError:
        print(file=sys.stderr)
        return None
    if line.strip():
        typed.add(line.strip())
    return line
