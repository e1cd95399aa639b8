"""What an actor and those below it have really read, and which kept results it may open. Pure: a fold of its record."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from runtime.events import ToolFinished
from runtime.messages import JsonObject
from runtime.report import Report

from .attachment import Attachment
from .sources import READ, Kept, Lines, Source, kept_from_json, merged, source_from_json

MOST_SOURCES = 100
"""Files and pages."""
MOST_STRETCHES = 50
"""Of lines, in one file."""
MOST_KEPT = 20
"""Handles a report names, the newest."""


@attrs.define
class Trail:
    """`number` is the actor's: its own results are kept under handles that begin with it.

    `cut`: there was more than could be listed.
    """

    number: int
    cut: bool = False
    _sources: dict[str, Source] = attrs.Factory(dict[str, Source])
    _kept: dict[str, str] = attrs.Factory(dict[str, str])
    _opened: dict[str, None] = attrs.Factory(dict[str, None])

    @property
    def sources(self) -> tuple[Source, ...]:
        """Files by their paths, then pages: calls that run together end in any order."""
        return tuple(sorted(self._sources.values(), key=lambda source: (source.url, source.path)))

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The newest results that can be opened whole, oldest first."""
        return tuple(Kept(handle, call) for handle, call in self._kept.items())

    def opens(self, handle: str) -> bool:
        """Whether the actor may read the result kept under a handle: its own, or one that was handed to it."""
        return handle.startswith((f"a{self.number}t", f"a{self.number}k")) or handle in self._opened

    def open(self, *handles: str) -> None:
        """From now on the actor may read what is kept under them."""
        self._opened.update(dict.fromkeys(handles))

    def begun(self, attached: Iterable[Attachment]) -> None:
        """The actor has been shown what is attached to its task."""
        for each in attached:
            if each.handle:
                self.open(each.handle)
            if each.kind == "file" and each.whole:
                self.read(Source(each.name, (each.lines,) if each.lines is not None else ()))

    def read(self, source: Source) -> None:
        """The actor has been shown this."""
        key = source.url or source.path
        if not key:
            return
        known = self._sources.get(key)
        if known is None and len(self._sources) >= MOST_SOURCES:
            self.cut = True
        elif known is None or known.lines != source.lines:
            self._sources[key] = attrs.evolve(source, lines=self._together(known, source))

    def finished(self, event: ToolFinished, arguments: JsonObject | None) -> None:
        """A call of the actor has ended."""
        if event.data is not None:
            for each in event.data.get(READ, ()):
                self.read(source_from_json(each))
        if event.full:
            self._keep(Kept(event.call_id, named(event.name, arguments)))

    def added_to(self, report: Report) -> Report:
        """The actor's report with all that."""
        return attrs.evolve(report, sources=self.sources, handles=self.kept, sources_cut=self.cut)

    def received(self, report: JsonObject) -> None:
        """A child of the actor has ended, with a report as the record has it.

        What the child read counts as read, and its results can be opened.
        """
        for each in report.get("sources", ()):
            self.read(source_from_json(each))
        self.cut = self.cut or bool(report.get("sources_cut"))
        for each in report.get("handles", ()):
            kept = kept_from_json(each)
            self.open(kept.handle)
            self._keep(kept)

    def _together(self, known: Source | None, source: Source) -> Lines:
        lines = merged((*(known.lines if known is not None else ()), *source.lines))
        if len(lines) > MOST_STRETCHES:
            self.cut = True
        return lines[:MOST_STRETCHES]

    def _keep(self, kept: Kept) -> None:
        self._kept.pop(kept.handle, None)
        self._kept[kept.handle] = kept.call
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def named(tool: str, arguments: JsonObject | None) -> str:
    """A call in a few words: its tool and the first of its arguments that is a text."""
    said = next((value for value in (arguments or {}).values() if isinstance(value, str)), "")
    flat = " ".join("".join(char if char.isprintable() else " " for char in said[:200]).split())
    return f"{tool}({flat if len(flat) <= 60 else f'{flat[:59]}…'})"
