"""What an actor has got done, in a few words: `3 files, 2 searches`; counted from the log, pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .faults import count_of

_SEARCHES = frozenset({"search_text", "search_passages", "find_files", "search_web"})


@attrs.define
class Tally:
    """One actor's finished calls by what they were for."""

    read: set[str] = attrs.Factory(set[str])
    changed: set[str] = attrs.Factory(set[str])
    searches: int = 0
    commands: int = 0
    pages: int = 0
    others: int = 0
    failed: int = 0

    def count(self, name: str, arguments: Mapping[str, Any] | None, is_error: bool) -> None:
        """Take one finished call into account; a delegation is told by the child's own row."""
        if is_error:
            self.failed += 1
        elif name.startswith(("delegate_to_", "start_")) or name == "await_agent":
            return
        elif name == "read_file":
            self.read.add(str((arguments or {}).get("path")))
        elif name in ("write_file", "edit_file", "apply_patch"):
            self.changed.add(str((arguments or {}).get("path")))
        elif name in _SEARCHES:
            self.searches += 1
        elif name == "shell":
            self.commands += 1
        elif name == "fetch_url":
            self.pages += 1
        else:
            self.others += 1

    def __str__(self) -> str:
        found = (
            (len(self.read), "file", "files"),
            (self.searches, "search", "searches"),
            (len(self.changed), "file changed", "files changed"),
            (self.commands, "command", "commands"),
            (self.pages, "page", "pages"),
            (self.others, "other call" if self.read or self.searches else "call", "calls"),
        )
        words = [f"{count} {one if count == 1 else many}" for count, one, many in found if count]
        if self.failed:
            words.append(f"{self.failed} failed")
        return ", ".join(words)


def used(spent: float, of: float | None, noun: str) -> str:
    """`13 of 90 steps`, or without a limit `13 steps`."""
    return count_of(int(spent), noun) if of is None else f"{spent:g} of {of:g} {noun}s"
