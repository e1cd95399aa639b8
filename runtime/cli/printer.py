"""The events of a run on standard output, as JSON lines or as lines for a person."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import trio

from runtime.events import ModelDelta, Record
from runtime.journal.folder import RunFolder
from runtime.journal.read import follow
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.watch.client import Disconnected, NotRunning, connect
from runtime.watch.lines import line

from .tree import changed_lines, short
from .visible import visible


class Printer:
    """Writes records one after the other. Raises BrokenPipeError when nobody reads any more."""

    def __init__(self, run: str, *, as_json: bool) -> None:
        self._run = run
        self._json = as_json
        self._state = RunState(histories=False)
        self._speaker = ""

    def shown(self, records: Iterable[Record]) -> list[int]:
        """The numbers of those that `show` would write something of."""
        if self._json:
            return [record.seq for record in records]
        state, found = RunState(histories=False), list[int]()
        for record in records:
            state = fold(state, record)
            if changed_lines(state, record):
                found.append(record.seq)
        return found

    def know(self, records: Iterable[Record], until: int) -> None:
        """Take in the records before `until`, of which nothing is written: later lines tell of what they began."""
        if self._json:
            return
        for record in records:
            if record.seq >= until:
                return
            self._state = fold(self._state, record)

    def show(self, record: Record) -> None:
        """Write one record; blocks as long as its reader does not read."""
        if self._json:
            sys.stdout.buffer.write(line(record, self._run))
            sys.stdout.buffer.flush()
            return
        event = record.event
        if isinstance(event, ModelDelta):
            if event.kind == "text":
                self._speak(event.actor, event.text)
            return
        self._state = fold(self._state, record)
        for text in changed_lines(self._state, record):
            print(f"\n{text}" if self._speaker else text, flush=True)
            self._speaker = ""

    def _speak(self, actor: str, text: str) -> None:
        if self._speaker != actor:
            begin = "\n" if self._speaker else ""
            print(f"{begin}  {short(actor)}: ", end="")
            self._speaker = actor
        print(visible(text), end="", flush=True)


async def follow_run(folder: RunFolder, from_seq: int, printer: Printer) -> None:
    """Every kept event once, live ones while the run's process serves them; until it ends or its process is gone."""
    seen = from_seq - 1
    try:
        async with connect(folder) as client, client.subscribe(from_seq) as records:
            async for record in records:
                await trio.to_thread.run_sync(printer.show, record)
                seen = max(seen, record.seq)
    except (NotRunning, Disconnected):
        pass  # It is being started, or has just ended: its journal has the rest.
    async with follow(folder, seen + 1) as rest:
        async for record in rest:
            await trio.to_thread.run_sync(printer.show, record)
