"""One run's log stream for one page: the journal first, then the live run's socket, then the journal again.

The past is read from the journal by this process, so that a page costs the run nothing but what is new. Whoever reads
slowly is not waited for: nothing is taken from the socket meanwhile, and the run answers that with a `gap`.
"""

from __future__ import annotations

import asyncio
import threading

import attrs

from runtime.errors import ElencoError, JournalError
from runtime.journal.folder import RunFolder
from runtime.journal.lock import is_owned
from runtime.journal.read import RunReader
from runtime.watch.exchange import NotRunning, place_of, request, result_of
from runtime.watch.lines import line

from .row_lines import row_line

PAGE = 1000
LATER = 0.5
"""Seconds after which a run that nobody works on is looked at again."""
_KEPT = b'{"v":1,"seq":'
_READ = 1 << 18


@attrs.frozen
class Lines:
    """Lines of the log stream, each with its newline."""

    lines: list[bytes]


@attrs.frozen
class Reached:
    """All there is has been given up to event `seq`; `owned`: a process works on the run and more comes live."""

    seq: int
    owned: bool


class Follow:
    """A place in a run's stream; take `batch` after `batch`, and `close` it."""

    def __init__(self, folder: RunFolder, from_seq: int) -> None:
        self._folder = folder
        self._next = max(from_seq, 1)
        self._reader: RunReader | None = None
        self._reading = threading.Lock()
        self._socket: _Socket | None = None
        self._told: Reached | None = None

    async def batch(self) -> Lines | Reached:
        """What is new, waited for. Raises JournalError. Cancel it only to close."""
        while True:
            if self._socket is not None:
                found = await self._socket.lines()
                if found is None:
                    self._socket.close()
                    self._socket = None
                    continue
                if news := self._new(found):
                    return Lines(news)
                continue
            # Asked before reading: what the owner wrote before it went is then still found.
            owned = await asyncio.to_thread(is_owned, self._folder.lock)
            page = await asyncio.to_thread(self._page)
            if page:
                return Lines(page)
            self._socket = await _dial(self._folder, self._next) if owned else None
            reached = Reached(self._next - 1, self._socket is not None)
            if self._told is None or reached.owned != self._told.owned:
                self._told = reached
                return reached
            if self._socket is None:
                await asyncio.sleep(LATER)
                if not await asyncio.to_thread(self._folder.path.exists):
                    raise JournalError(f"run {self._folder.id} has been deleted; this is what was known of it")

    async def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        await asyncio.to_thread(self._close_reader)

    def _close_reader(self) -> None:
        # A thread whose task was cancelled may still be reading.
        with self._reading:
            if self._reader is not None:
                self._reader.close()

    def _page(self) -> list[bytes]:
        with self._reading:
            return self._lines()

    def _lines(self) -> list[bytes]:
        if self._reader is None:
            self._reader = RunReader(self._folder)
        reader, run = self._reader, self._folder.id
        rows = reader.rows(self._next, PAGE)
        if rows:
            self._next = rows[-1][0] + 1
        return [row_line(row, run) or line(reader.record(row), run) for row in rows]

    def _new(self, lines: list[bytes]) -> list[bytes]:
        """Without the kept events that the journal has given already."""
        found: list[bytes] = []
        for each in lines:
            if each.startswith(_KEPT):
                seq = int(each[len(_KEPT) : each.index(b",", len(_KEPT))])
                if seq < self._next:
                    continue
                self._next = seq + 1
            found.append(each)
        return found


@attrs.define(eq=False)
class _Socket:
    """A subscription at a live run's control socket."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    rest: bytes = b""

    async def lines(self) -> list[bytes] | None:
        """All whole lines that have come, None at the end of the stream."""
        while True:
            try:
                data = await self.reader.read(_READ)
            except OSError:
                return None
            if not data:
                return None
            *whole, rest = (self.rest + data).split(b"\n") if b"\n" in data else (self.rest + data,)
            self.rest = rest
            if whole:
                # A line without a version is the run's word that it cannot go on with this subscription.
                return None if any(each.startswith(b'{"re"') for each in whole) else [each + b"\n" for each in whole]

    def close(self) -> None:
        self.writer.close()


async def _dial(folder: RunFolder, from_seq: int) -> _Socket | None:
    """A subscription from `from_seq` on, None where no process serves the run."""
    try:
        place = await asyncio.to_thread(place_of, folder)
        reader, writer = await asyncio.open_unix_connection(place.socket, limit=1 << 20)
    except (NotRunning, OSError, ValueError):
        return None
    try:
        writer.write(request(1, place.token, {"op": "subscribe", "from": from_seq}))
        await writer.drain()
        result_of(await reader.readline())
    except (ElencoError, OSError, ValueError):
        writer.close()
        return None
    return _Socket(reader, writer)
