"""The conversation on the screen: entries as they are, replies as Markdown, the running one as plain text below."""

from __future__ import annotations

from collections import deque

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Markdown, Static

from runtime.chat.blocks import blocks
from runtime.chat.view import Called, Entry, Log, Said, Spoke, Thought
from runtime.cli.visible import visible

from .paint import painted

MOST = 200
"""Entries that stay on the screen; earlier ones are on record."""
MARKDOWN = 60_000
"""Characters of a reply that are laid out; what is more stands as plain text."""


class Block(Static):
    """An entry that is no Markdown; a click unfolds it."""

    def __init__(self, entry: Entry, *, full: bool) -> None:
        super().__init__(painted(entry, full=full), classes=f"entry {type(entry).__name__.lower()}", markup=False)
        self.entry: Entry = entry
        self.full: bool = full

    def show(self, entry: Entry, *, full: bool) -> None:
        if entry != self.entry or full != self.full:
            self.entry = entry
            self.full = full
            self.update(painted(entry, full=full))

    def on_click(self) -> None:
        if isinstance(self.entry, Called | Thought | Said):
            self.show(self.entry, full=not self.full)


class Transcript(VerticalScroll):
    """Shows a log; `live` is what the model is saying. Painted by `paint`, twenty times a second at most.

    A reply is laid out block by block, one block a painting, so that nothing else has to wait for a long one.
    """

    can_focus = True

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.full = False
        self._blocks: dict[int, list[Widget]] = {}
        self._waiting: deque[tuple[int, str]] = deque()
        self._live = Static("", classes="entry live", markup=False)
        self._shown = ""
        self._log: Log | None = None
        self._hello = ""

    def compose(self) -> ComposeResult:
        yield self._live

    def on_mount(self) -> None:
        self._live.display = False
        self.anchor()

    def paint(self, log: Log, live: str) -> None:
        """Bring the screen up to date with the log and the text under way."""
        if log is not self._log:
            self._begin(log)
        if self._waiting:
            self._lay_out()
        for place in log.flush():
            self._set(place, log.entries[place])
        if live != self._shown:
            self._shown = live
            self._live.display = bool(live)
            self._live.update(Content(visible(live)))

    @property
    def busy(self) -> bool:
        """Whether blocks of replies wait to be laid out."""
        return bool(self._waiting)

    def unfold(self) -> None:
        """Show all of every entry, or fold them again."""
        self.full = not self.full
        for widgets in self._blocks.values():
            for widget in widgets:
                if isinstance(widget, Block):
                    widget.show(widget.entry, full=self.full)

    def _begin(self, log: Log) -> None:
        for widgets in self._blocks.values():
            for widget in widgets:
                widget.remove()
        self._blocks.clear()
        self._waiting.clear()
        self._log = log
        log.changed.update(range(max(0, len(log.entries) - MOST), len(log.entries)))

    def _set(self, place: int, entry: Entry) -> None:
        there = self._blocks.get(place)
        if there is not None:
            if there and isinstance(block := there[0], Block):
                block.show(entry, full=self.full)
            return
        if isinstance(entry, Spoke):
            self._blocks[place] = []
            self._waiting.extend((place, block) for block in _cut(entry.text))
            self._lay_out()
            return
        while self._waiting:  # what comes after a reply stands below it
            self._lay_out()
        self._add(place, Block(entry, full=self.full))

    def _lay_out(self) -> None:
        place, text = self._waiting.popleft()
        if text.startswith("\0"):
            self._add(place, Static(text[1:], classes="entry spoke", markup=False))
        else:
            self._add(place, Markdown(text, classes="entry spoke", open_links=False))

    def _add(self, place: int, widget: Widget) -> None:
        self._blocks.setdefault(place, []).append(widget)
        self.mount(widget, before=self._live)
        if len(self._blocks) > MOST:
            oldest = min(self._blocks)
            for each in self._blocks.pop(oldest):
                each.remove()


def _cut(text: str) -> list[str]:
    """Blocks of Markdown; one that begins with a NUL is plain text."""
    text = visible(text)
    found = blocks(text[:MARKDOWN])
    return [*found, f"\0{text[MARKDOWN:]}"] if len(text) > MARKDOWN else found
