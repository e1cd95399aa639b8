"""The client of a run for programs on asyncio, such as the dashboard and the terminal chat: frames as dicts.

Our own runtime is Trio throughout; this is for processes whose framework brings asyncio along.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeAlias

import attrs

from runtime.errors import ElencoError
from runtime.journal.folder import RunFolder
from runtime.journal.lock import is_owned
from runtime.journal.read import RunReader
from runtime.messages import JsonObject

from .commands import Command, command_to_json
from .exchange import Disconnected, LineBuffer, NotRunning, Place, frame_of, not_running, place_of, request, result_of
from .lines import line
from .unattended import record_command

Frame: TypeAlias = dict[str, Any]
"""An event as the wire has it: `seq` or `after` and `n`, `at`, `run`, `actor`, `type`, and the event's fields."""

POLL = 0.25
"""Seconds between two looks at a run that no process works on."""


@asynccontextmanager
async def connect(folder: RunFolder) -> AsyncGenerator[Client]:
    """A connection to the process that owns a run. Raises NotRunning."""
    place = await asyncio.to_thread(place_of, folder)
    lines = await _dial(folder, place)
    try:
        yield Client(folder, place, lines)
    finally:
        lines.close()


class Client:
    """A connection for commands; every subscription has one of its own. Made by `connect`."""

    def __init__(self, folder: RunFolder, place: Place, lines: _Lines) -> None:
        self._folder = folder
        self._place = place
        self._lines = lines
        self._turn = asyncio.Lock()
        self._sent = 0

    async def send(self, command: Command) -> JsonObject:
        """Have a command carried out and return what its answer tells.

        Raises UsageError where it makes no sense, ElencoError where it could not be carried out, Disconnected. A
        cancelled call may have taken effect, and the connection is of no more use.
        """
        async with self._turn:
            self._sent += 1
            return await _ask(self._lines, request(self._sent, self._place.token, command_to_json(command)))

    @asynccontextmanager
    async def subscribe(self, from_seq: int | None = 1) -> AsyncGenerator[Frames]:
        """The run's frames from `from_seq` on, then live until it ends; None begins with a snapshot of now.

        Raises Disconnected, NotRunning.
        """
        lines = await _dial(self._folder, self._place)
        try:
            await _ask(lines, request(1, self._place.token, {"op": "subscribe", "from": from_seq}))
            yield Frames(lines)
        finally:
            lines.close()


class Frames:
    """Frames of a run as they come, until its process is done with it."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines

    def __aiter__(self) -> Frames:
        return self

    async def __anext__(self) -> Frame:
        """The next frame. Raises ElencoError for a line that is none. A cancelled call loses nothing."""
        found = await self._lines.next()
        if found is None:
            raise StopAsyncIteration
        return frame_of(found)


async def deliver(folder: RunFolder, command: Command, new_id: Callable[[], str]) -> JsonObject:
    """Have a command carried out by the run's process, or recorded for the next one: as `watch.deliver` does."""
    try:
        async with connect(folder) as client:
            return await client.send(command)
    except NotRunning as absent:
        return await asyncio.to_thread(record_command, folder, command, new_id, absent)


class Follower:
    """Every kept event of a run once, live ones while a process serves them; made by `follow`.

    Frames come from the socket where there is one, else from the journal; a lost connection, and a new process that
    takes the run up, are not seen but by what they say.
    """

    def __init__(self, folder: RunFolder, from_seq: int, *, for_ever: bool) -> None:
        self._folder = folder
        self._next = max(from_seq, 1)
        self._for_ever = for_ever
        self._reader = RunReader(folder)
        self._lines: _Lines | None = None
        self._waiting: list[Frame] = []

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hang_up()
        self._reader.close()

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Frame:
        """The next frame. Raises JournalError, ElencoError. A cancelled call loses nothing."""
        while not self._waiting:
            if self._lines is not None:
                found = await self._lines.next()
                if found is not None:
                    self._waiting.append(frame_of(found))
                    break
                self._hang_up()
            await self._look()
        frame = self._waiting.pop()
        if "seq" in frame:
            self._next = frame["seq"] + 1
        return frame

    async def _look(self) -> None:
        # Asked before reading: what the owner wrote before it went is then still found.
        owned = is_owned(self._folder.lock)
        if owned and await self._dial():
            return
        page = await asyncio.to_thread(self._reader.page, self._next)
        if page:
            self._waiting = [json.loads(line(record, self._folder.id)) for record in reversed(page)]
        elif not owned and not self._for_ever:
            raise StopAsyncIteration
        else:
            await asyncio.sleep(POLL)

    async def _dial(self) -> bool:
        lines: _Lines | None = None
        try:
            place = await asyncio.to_thread(place_of, self._folder)
            lines = await _dial(self._folder, place)
            await _ask(lines, request(1, place.token, {"op": "subscribe", "from": self._next}))
            self._lines, lines = lines, None
        except ElencoError:  # not there, or all its places are taken: the journal tells as much
            return False
        finally:
            if lines is not None:
                lines.close()
        return True

    def _hang_up(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def follow(folder: RunFolder, from_seq: int = 1, *, for_ever: bool = False) -> Follower:
    """Follow a run from `from_seq` on: iterate it inside `async with`.

    It ends when all is told and no process works on the run; `for_ever` waits for one that takes it up.
    """
    return Follower(folder, from_seq, for_ever=for_ever)


@attrs.define(eq=False)
class _Lines:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    buffer: LineBuffer = attrs.Factory(LineBuffer)

    async def next(self) -> bytes | None:
        while (found := self.buffer.take()) is None:
            try:
                data = await self.reader.read(1 << 16)
            except OSError:
                data = b""
            if not data:
                return None
            self.buffer.feed(data)
        return found

    def close(self) -> None:
        self.writer.transport.abort()


async def _ask(lines: _Lines, asked: bytes) -> JsonObject:
    try:
        lines.writer.write(asked)
        await lines.writer.drain()
    except OSError as error:
        raise Disconnected("the run went away") from error
    return result_of(await lines.next())


async def _dial(folder: RunFolder, place: Place) -> _Lines:
    try:
        return _Lines(*await asyncio.open_unix_connection(place.socket))
    except (OSError, ValueError) as error:
        raise not_running(folder) from error
