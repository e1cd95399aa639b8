"""The other end of the control socket: watch and steer a live run from any process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio

from runtime.errors import ElencoError
from runtime.events import Record
from runtime.journal.folder import RunFolder
from runtime.messages import JsonObject

from .commands import Command, command_to_json
from .exchange import Disconnected as Disconnected
from .exchange import LineBuffer, Place, frame_of, not_running, place_of, request, result_of
from .exchange import NotRunning as NotRunning
from .lines import record_from


@asynccontextmanager
async def connect(folder: RunFolder) -> AsyncGenerator[Client]:
    """A connection to the process that owns a run. Raises NotRunning."""
    place = await trio.to_thread.run_sync(place_of, folder)
    client = Client(folder, place, await _dial(folder, place))
    try:
        yield client
    finally:
        await trio.aclose_forcefully(client.connection)


class Client:
    """A connection for commands; every subscription has one of its own. Made by `connect`."""

    def __init__(self, folder: RunFolder, place: Place, connection: trio.SocketStream) -> None:
        self.connection = connection
        self._folder = folder
        self._place = place
        self._lines = _Lines(connection)
        self._turn = trio.Lock()
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
    async def subscribe(self, from_seq: int | None = 1) -> AsyncGenerator[Subscription]:
        """The run's records from `from_seq` on, then live until it ends; None begins with a snapshot of now.

        Raises Disconnected, NotRunning.
        """
        connection = await _dial(self._folder, self._place)
        try:
            lines = _Lines(connection)
            await _ask(lines, request(1, self._place.token, {"op": "subscribe", "from": from_seq}))
            yield Subscription(lines)
        finally:
            await trio.aclose_forcefully(connection)


class Subscription:
    """Records of a run as they come; iterate it, or take the lines as they are."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Record:
        """The next record. Raises ElencoError for a line that is none. A cancelled call loses nothing."""
        found = await self.line()
        if found is None:
            raise StopAsyncIteration
        frame = frame_of(found)
        try:
            return record_from(frame)
        except (ValueError, TypeError) as error:
            raise ElencoError(f"the run sent a line that is no event: {error}") from error

    async def line(self) -> bytes | None:
        """The next line without its end, None when the run has ended. A cancelled call loses nothing."""
        return await self._lines.next()


@attrs.define(eq=False)
class _Lines:
    connection: trio.SocketStream
    buffer: LineBuffer = attrs.Factory(LineBuffer)

    async def next(self) -> bytes | None:
        while (found := self.buffer.take()) is None:
            try:
                data = await self.connection.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                return None
            self.buffer.feed(data)
        return found


async def _ask(lines: _Lines, asked: bytes) -> JsonObject:
    try:
        await lines.connection.send_all(asked)
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise Disconnected("the run went away") from error
    return result_of(await lines.next())


async def _dial(folder: RunFolder, place: Place) -> trio.SocketStream:
    try:
        return await trio.open_unix_socket(place.socket)
    except (OSError, ValueError) as error:
        raise not_running(folder) from error
