"""The other end of the control socket: watch and steer a live run from any process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import attrs
import trio

from runtime.errors import ElencoError, UsageError
from runtime.events import Record
from runtime.journal.folder import RunFolder
from runtime.journal.lock import is_owned
from runtime.journal.rows import encode_json
from runtime.messages import JsonObject

from .commands import Command, command_to_json
from .lines import record_from


class NotRunning(ElencoError):
    """No process serves this run: nothing was sent."""


class Disconnected(ElencoError):
    """The run went away before it answered: whether the command took effect its journal tells."""


@asynccontextmanager
async def connect(folder: RunFolder) -> AsyncGenerator[Client]:
    """A connection to the process that owns a run. Raises NotRunning."""
    try:
        found: Any = json.loads(await trio.to_thread.run_sync(folder.control.read_text))
        path, token = str(found["socket"]), str(found["token"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _not_running(folder) from error
    client = Client(folder, path, token, await _dial(folder, path))
    try:
        yield client
    finally:
        await trio.aclose_forcefully(client.connection)


class Client:
    """A connection for commands; every subscription has one of its own. Made by `connect`."""

    def __init__(self, folder: RunFolder, path: str, token: str, connection: trio.SocketStream) -> None:
        self.connection = connection
        self._folder = folder
        self._path = path
        self._token = token
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
            return await _request(self.connection, self._lines, self._token, self._sent, command_to_json(command))

    @asynccontextmanager
    async def subscribe(self, from_seq: int | None = 1) -> AsyncGenerator[Subscription]:
        """The run's records from `from_seq` on, then live until it ends; None begins with a snapshot of now.

        Raises Disconnected, NotRunning.
        """
        connection = await _dial(self._folder, self._path)
        try:
            lines = _Lines(connection)
            await _request(connection, lines, self._token, 1, {"op": "subscribe", "from": from_seq})
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
        data: Any = json.loads(found)
        if not isinstance(data, dict):
            raise ElencoError("the run sent a line that is no event")
        data = cast("dict[str, Any]", data)
        if "error" in data and "v" not in data:
            raise ElencoError(str(data["error"]))
        try:
            return record_from(data)
        except (ValueError, TypeError) as error:
            raise ElencoError(f"the run sent a line that is no event: {error}") from error

    async def line(self) -> bytes | None:
        """The next line without its end, None when the run has ended. A cancelled call loses nothing."""
        return await self._lines.next()


@attrs.define(eq=False)
class _Lines:
    connection: trio.SocketStream
    buffer: bytearray = attrs.Factory(bytearray)

    async def next(self) -> bytes | None:
        looked_at = 0
        while (end := self.buffer.find(b"\n", looked_at)) < 0:
            looked_at = len(self.buffer)
            try:
                data = await self.connection.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                return None
            self.buffer += data
        found = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return found


async def _request(
    connection: trio.SocketStream, lines: _Lines, token: str, number: int, body: JsonObject
) -> JsonObject:
    try:
        await connection.send_all(encode_json({"re": number, "token": token, **body}).encode("ascii") + b"\n")
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise Disconnected("the run went away") from error
    found = await lines.next()
    if found is None:
        raise Disconnected("the run went away before it answered")
    answer: Any = json.loads(found)
    if answer.get("ok"):
        return cast("JsonObject", answer["result"])
    text = str(answer.get("error"))
    raise UsageError(text) if answer.get("usage") else ElencoError(text)


async def _dial(folder: RunFolder, path: str) -> trio.SocketStream:
    try:
        return await trio.open_unix_socket(path)
    except (OSError, ValueError) as error:
        raise _not_running(folder) from error


def _not_running(folder: RunFolder) -> NotRunning:
    if is_owned(folder.lock):
        return NotRunning(f"run {folder.id} is being started or ended by its process; try again in a moment")
    return NotRunning(f"no process works on run {folder.id}")
