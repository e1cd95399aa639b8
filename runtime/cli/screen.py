"""Standard error as a run uses it: lines that stay and, on a terminal, a tree below them that is redrawn in place.

All writing happens in a thread: a terminal that takes nothing stalls the screen, never the run.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs
import trio

from .tree import Row
from .visible import cells, cut, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDE = 100
"""Columns from which each actor has a bar of its own."""
MOST_SAID = 8
"""Lines of what is said that are shown below the tree."""
STYLES = {"●": "cyan", "✓": "green", "■": "yellow", "✗": "red", "!": "yellow", "?": "bold magenta"}


class Screen(Protocol):
    """Where progress goes. Tasks take turns; a cancelled call may have written a part, or write it later."""

    @property
    def redraws(self) -> bool:
        """Whether `draw` shows anything."""
        ...

    async def say(self, lines: Sequence[str], prompt: str = "") -> None:
        """Write lines that stay, and the beginning of a line that a human ends; nothing at all ends such a line."""
        ...

    def answered(self) -> None:
        """The human has ended the line."""
        ...

    async def draw(self, rows: Sequence[Row], foot: str, said: str = "") -> None:
        """Put the tree, a line below it and the last of what is said, in place of what is there."""
        ...

    async def clear(self) -> None:
        """Take the tree away."""
        ...


def screen_for_stderr(*, tree: bool) -> Screen:
    """The tree, where it is wanted, on a terminal that can move its cursor; plain lines everywhere else."""
    return TreeScreen() if tree and can_redraw() else LineScreen()


def can_redraw() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


class LineScreen:
    """Lines only: no colour, nothing is moved."""

    redraws = False

    def __init__(self) -> None:
        self._turn = trio.Lock()
        self._prompt = ""

    async def say(self, lines: Sequence[str], prompt: str = "") -> None:
        async with self._turn:
            begin = "\n" if self._prompt else ""
            self._prompt = prompt
            text = "".join(f"{line}\n" for line in lines)
            await trio.to_thread.run_sync(_write, begin + text + prompt, abandon_on_cancel=True)

    def answered(self) -> None:
        self._prompt = ""

    async def draw(self, rows: Sequence[Row], foot: str, said: str = "") -> None:
        del rows, foot, said

    async def clear(self) -> None:
        pass


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class TreeScreen:
    """rich's live display, refreshed by whoever calls `draw`."""

    redraws = True

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._new = Live
        self._turn = trio.Lock()
        self._prompt = ""
        self._stalled = False
        self._plain = bool(os.environ.get("NO_COLOR"))

    async def say(self, lines: Sequence[str], prompt: str = "") -> None:
        async with self._turn:
            before, self._prompt = self._prompt, prompt
            await self._write(lambda: self._say(lines, bool(before), prompt))

    def answered(self) -> None:
        self._prompt = ""

    async def draw(self, rows: Sequence[Row], foot: str, said: str = "") -> None:
        async with self._turn:
            await self._write(lambda: self._draw(rows, foot, said))

    async def clear(self) -> None:
        async with self._turn:
            if self._live is not None:
                await self._write(self._stop)

    async def _write(self, write: Callable[[], None]) -> None:
        # Once a write was left behind in its thread, the display is its own: whatever we added would wait for it.
        if self._stalled:
            return
        self._stalled = True
        await trio.to_thread.run_sync(write, abandon_on_cancel=True)
        self._stalled = False

    def _say(self, lines: Sequence[str], after_prompt: bool, prompt: str) -> None:
        if after_prompt:
            self.console.print()
        for line in lines:
            self.console.print(self._styled(line), soft_wrap=True)
        if prompt:
            self.console.print(prompt, end="")

    def _draw(self, rows: Sequence[Row], foot: str, said: str) -> None:
        if self._live is None:
            self._live = self._new(
                console=self.console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.update(self._tree(rows, foot, said), refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def _styled(self, line: str) -> Text:
        from rich.text import Text

        text = Text(line, style="dim" if line[:1] not in "?✗■!" and not self._plain else "")
        if not self._plain and (style := STYLES.get(line[:1])):
            text.stylize(style, 0, 1)
        return text

    def _tree(self, rows: Sequence[Row], foot: str, said: str) -> Text:
        from rich.text import Text

        width, height = self.console.width - 1, self.console.height
        text = Text(no_wrap=True, overflow="crop")
        words = last_lines(said, width, min(MOST_SAID, max(0, height - 8)))
        shown = fit(rows, max(3, height - 4 - len(words)))
        for row, line in zip(shown, laid_out(shown, width), strict=True):
            start = len(text)
            text.append(line + "\n", style="dim" if row.mark == "✓" and not self._plain else "")
            mark = start + len(row.branch)
            text.stylize("" if self._plain else STYLES.get(row.mark, ""), mark, mark + 1)
        text.append(cut(foot, width), style="" if self._plain else "dim")
        for line in words:
            text.append(f"\n{line}")
        return text


def fit(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """As many rows as there is room for: ended actors go first, the root never."""
    if len(rows) <= most:
        return rows
    excess = len(rows) - most + 1
    ended = [index for index, row in enumerate(rows) if index and row.mark != "●"]
    busy = [index for index in range(len(rows) - 1, 0, -1) if rows[index].mark == "●"]
    dropped = set([*ended, *busy][:excess])
    kept = [row for index, row in enumerate(rows) if index not in dropped]
    return [*kept, Row("", "…", f"{len(dropped)} more", "", ("",) * len(rows[0].facts))]


def last_lines(text: str, width: int, most: int) -> list[str]:
    """The end of a text as lines of at most `width` columns."""
    if most <= 0 or not text.strip():
        return []
    lines: list[str] = []
    for line in visible(text.rstrip()).expandtabs(4).split("\n")[-most:]:
        rest = line
        while cells(rest) > width:
            piece = cut(rest, width + 1)[:-1] or rest[:1]
            lines.append(piece)
            rest = rest[len(piece) :]
        lines.append(rest)
    return lines[-most:]


def laid_out(rows: Sequence[Row], width: int) -> list[str]:
    """The rows as lines of at most `width` columns, their parts one below the other; bars only where there is room."""
    if width < WIDE:
        rows = [attrs.evolve(row, facts=row.facts[:4]) for row in rows]
    names = [f"{row.branch}{row.mark} {row.name}" for row in rows]
    name_width = max((cells(name) for name in names), default=0)
    columns = min((len(row.facts) for row in rows), default=0)
    fact_widths = [max((cells(row.facts[index]) for row in rows), default=0) for index in range(columns)]
    facts = [
        "   ".join(_padded(fact, size) for fact, size in zip(row.facts, fact_widths, strict=False) if size).rstrip()
        for row in rows
    ]
    facts_width = max((cells(fact) for fact in facts), default=0)
    room = max(0, width - name_width - facts_width - 6)
    doing_width = min(max((cells(row.doing) for row in rows), default=0), room, 60)
    lines: list[str] = []
    for name, row, fact in zip(names, rows, facts, strict=True):
        doing = _padded(cut(row.doing, doing_width), doing_width)
        lines.append(cut(f"{_padded(name, name_width)}   {doing}   {fact}".rstrip(), width))
    return lines


def _padded(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def leave(words: str) -> None:
    """Last words before the process ends at once: below the tree, with the cursor back; no stalled terminal is waited
    for."""
    cursor = "\x1b[?25h" if can_redraw() else ""
    if select.select([], [2], [], 0)[1]:
        with contextlib.suppress(OSError):
            os.write(2, f"{cursor}\n{words}\n".encode())
