"""When watchers are told what is new: all at the same moments and with the same bytes, none of them waited for."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from runtime.events import Record

from .lines import line
from .reader import Reader
from .stream import LogStream

BREATH = 0.03
"""Seconds between two batches, unless somebody is asked something: text flows for the eye, and each costs the run."""
MOST_BATCHES = 600
"""Batches a second for all watchers together: a crowd of them is told less often, and costs the run no more."""


class Pace:
    """Tells those who keep step; one that cannot take it all goes on by itself until it keeps step again."""

    def __init__(self, stream: LogStream, run_id: str) -> None:
        self._stream = stream
        self._run_id = run_id
        self._in_step: dict[_Listener, None] = {}
        self._joined = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Tell everybody, moment after moment, until the stream has ended. A cancelled call loses nothing."""
        stream = self._stream
        while not stream.closed:
            if not self._in_step:
                await self._joined.park()
            elif all(each.reader.position == stream.mark() for each in self._in_step):
                await stream.wait()
            else:
                self._tell()
                with trio.move_on_after(max(BREATH, len(self._in_step) / MOST_BATCHES)):
                    await stream.pressing()
        for listener in self._in_step:
            listener.out.set()

    async def keep_step(self, reader: Reader, offer: Callable[[bytes], bool]) -> None:
        """Have the reader's events offered as lines, until it must read the journal, the stream has ended, or `offer`
        says that not all could be taken. A cancelled call loses nothing.
        """
        listener = _Listener(reader, offer)
        self._in_step[listener] = None
        self._joined.unpark_all()
        self._stream.wake()
        try:
            await listener.out.wait()
        finally:
            self._in_step.pop(listener, None)

    def lines(self, records: list[Record]) -> bytes:
        return b"".join(line(record, self._run_id) for record in records)

    def _tell(self) -> None:
        end = self._stream.mark()
        made: dict[int, bytes] = {}
        for listener in list(self._in_step):
            start = listener.reader.position
            records = listener.reader.take(end)
            if records is not None and start not in made:
                made[start] = self.lines(records)
            if records is None or not listener.offer(made[start]):
                del self._in_step[listener]
                listener.out.set()
        self._stream.let_go()


@attrs.frozen(eq=False)
class _Listener:
    reader: Reader
    offer: Callable[[bytes], bool]
    out: trio.Event = attrs.Factory(trio.Event)
