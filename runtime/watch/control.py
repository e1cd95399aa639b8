"""The control socket of a live run: whoever may, watches and steers it from another process.

JSON lines both ways. A request is `{"re": NUMBER, "token": TOKEN, "op": NAME, ...}`; its answer `{"re": NUMBER,
"ok": true, "result": {...}}` or `{"re": NUMBER, "ok": false, "error": TEXT, "usage": BOOL}`. After `subscribe` (with
`from`, a seq, or null to begin with a snapshot) the event lines follow on the same connection. A client that stalls,
floods or sends garbage costs only its own connection.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from runtime.errors import ElencoError, UsageError
from runtime.events import Record
from runtime.journal.folder import RunFolder
from runtime.journal.nursery import serving
from runtime.journal.rows import encode_json
from runtime.messages import JsonObject

from .commands import Commands, command_from_json
from .exchange import LineBuffer
from .lines import line
from .runtime_folder import runtime_folder, sweep
from .stream import LogStream

LONGEST_LINE = 1 << 20
MOST_CONNECTIONS = 256
HELLO = 5.0
"""Seconds a client has for its first request."""
GRACE = 0.5
"""Seconds that watchers have, when the run has ended, to take what is left; and who is turned away, to ask."""
BREATH = 0.03
"""Seconds between two batches for one watcher: text flows for the eye at that, and each batch costs the run."""
MOST_BATCHES = 600
"""Batches a second for all watchers together: a crowd of them is told less often, and costs the run no more."""
_MISTAKES = 20


@attrs.frozen
class Control:
    """Where a run is served; the run's row in the index names `socket`."""

    socket: Path
    token: str


@asynccontextmanager
async def serve(
    stream: LogStream, commands: Commands, folder: RunFolder, env: Mapping[str, str] = os.environ
) -> AsyncGenerator[Control]:
    """Serve a run's stream and commands while the block lasts; then the stream is closed and nothing is left.

    Raises ElencoError when no socket can be made.
    """
    place = runtime_folder(env)
    sweep(place)
    control = Control(place / f"{folder.id}-{secrets.token_hex(3)}.sock", secrets.token_urlsafe(32))
    server = _Server(stream, commands, folder.id, control.token)
    try:
        listener = _listen(control.socket)
        _write_private(folder.control, json.dumps({"socket": str(control.socket), "token": control.token}))
        async with serving() as nursery:
            nursery.start_soon(server.listen, listener, nursery)
            try:
                yield control
            finally:
                server.listening.cancel()
                stream.close()
                with trio.move_on_after(GRACE, shield=True):
                    await server.watchers_gone()
                listener.socket.close()
    finally:
        control.socket.unlink(missing_ok=True)
        folder.control.unlink(missing_ok=True)


def _listen(path: Path) -> trio.SocketListener:
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(os.fspath(path))
        path.chmod(0o600)
        listening.listen(MOST_CONNECTIONS)
    except OSError as error:
        listening.close()
        raise ElencoError(f"cannot make the control socket {path}: {error.strerror}") from error
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


def _write_private(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    draft.rename(path)


class _Server:
    def __init__(self, stream: LogStream, commands: Commands, run_id: str, token: str) -> None:
        self.stream = stream
        self.commands = commands
        self.run_id = run_id
        self.listening = trio.CancelScope()
        self._token = token.encode()
        self.pace = _Pace(stream, run_id)
        self.watchers = 0
        self._connections = 0
        self._gone = trio.Event()

    async def listen(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        with self.listening:
            await trio.serve_listeners(self._accept, [listener], handler_nursery=nursery)

    async def watchers_gone(self) -> None:
        while self.watchers:
            await self._gone.wait()

    def may(self, token: object) -> bool:
        return isinstance(token, str) and compare_digest(token.encode("utf-8", "replace"), self._token)

    def watching(self, change: int) -> None:
        self.watchers += change
        if change > 0:
            self._gone = trio.Event()
        elif not self.watchers:
            self._gone.set()

    async def _accept(self, connection: trio.SocketStream) -> None:
        self._connections += 1
        try:
            async with connection:
                await self._admit(connection)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._connections -= 1

    async def _admit(self, connection: trio.SocketStream) -> None:
        if _peer(connection) not in (os.getuid(), None):
            return
        client = _Client(self, connection)
        if self._connections <= MOST_CONNECTIONS:
            await client.serve()
            return
        with trio.move_on_after(2 * GRACE):
            await client.turn_away(f"{MOST_CONNECTIONS} clients are connected already")


class _Pace:
    """When watchers are told something: all at the same moments, and up to the same place, so that what is sent to
    each is made once.
    """

    def __init__(self, stream: LogStream, run_id: str) -> None:
        self._stream = stream
        self._run_id = run_id
        self._moment = -math.inf
        self._end = 0
        self._made: dict[tuple[int, int], bytes] = {}

    async def tick(self, watchers: int) -> None:
        """Until the next such moment, which is at once where nothing was told for that long; cancelled, nothing is."""
        pause = max(BREATH, watchers / MOST_BATCHES)
        if trio.current_time() < self._moment + pause:
            await trio.sleep_until(self._moment + pause)
        if trio.current_time() >= self._moment + pause:
            self._moment, self._end = trio.current_time(), self._stream.mark()
            self._made.clear()

    def end(self) -> int:
        """The place in the stream's ring up to which watchers are told at this moment."""
        return self._end

    def lines(self, records: list[Record], place: tuple[int, int] | None) -> bytes:
        """The records as they are sent; what stands between two places of the ring is made once for everybody."""
        found = self._made.get(place) if place is not None else None
        if found is None:
            found = b"".join(line(record, self._run_id) for record in records)
            if place is not None:
                self._made[place] = found
        return found


class _Client:
    """One connection; its requests are answered in order, events come in between."""

    def __init__(self, server: _Server, connection: trio.SocketStream) -> None:
        self._server = server
        self._connection = connection
        self._buffer = LineBuffer()
        self._sending = trio.Lock()
        self._known = False
        self._watches = False
        self._mistakes = 0

    async def serve(self) -> None:
        async with serving() as nursery:
            while True:
                with trio.move_on_after(math.inf if self._known else HELLO):
                    data = await self._next_line()
                    if data is None or not await self._answer(data, nursery):
                        return
                    continue
                return

    async def turn_away(self, why: str) -> None:
        """Say why once it has asked something, or says nothing: hung up on while it asks, it might not see it."""
        with trio.move_on_after(GRACE):
            await self._next_line()
        await self.refuse(None, why)

    async def refuse(self, number: Any, why: str, *, usage: bool = False) -> None:
        await self._send({"re": number, "ok": False, "error": why, "usage": usage})

    async def _answer(self, data: bytes, nursery: trio.Nursery) -> bool:
        """Deal with one request; False ends the connection."""
        try:
            request: Any = json.loads(data)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            await self.refuse(None, "a request is one JSON object on a line")
            return self._mistake()
        request = cast("dict[str, Any]", request)
        number = request.pop("re", None)
        if not self._server.may(request.pop("token", None)):
            await self.refuse(number, "the token is not the run's")
            return False
        self._known = True
        if request.get("op") == "subscribe":
            return await self._subscribe(number, request, nursery)
        try:
            command = command_from_json(request)
        except UsageError as error:
            await self.refuse(number, str(error), usage=True)
            return self._mistake()
        try:
            result = await self._server.commands.run(command)
        except ElencoError as error:
            await self.refuse(number, str(error), usage=isinstance(error, UsageError))
        else:
            await self._send({"re": number, "ok": True, "result": result})
        return True

    async def _subscribe(self, number: Any, request: Mapping[str, Any], nursery: trio.Nursery) -> bool:
        from_seq = request.get("from", 1)
        if self._watches or not (from_seq is None or (isinstance(from_seq, int) and not isinstance(from_seq, bool))):
            await self.refuse(number, "one subscription a connection, from a seq or null", usage=True)
            return self._mistake()
        self._watches = True
        await self._send({"re": number, "ok": True, "result": {}})
        nursery.start_soon(self._watch, from_seq)
        return True

    async def _watch(self, from_seq: int | None) -> None:
        self._server.watching(1)
        try:
            async with self._server.stream.subscribe(from_seq) as reader:
                pace = self._server.pace
                while await reader.ready():
                    await pace.tick(self._server.watchers)
                    start = reader.position
                    records = await reader.batch(pace.end)
                    place = (start, reader.position) if reader.from_ring else None
                    await self._send_bytes(pace.lines(records, place))
            # The end of the stream is the end of the connection.
            await self._connection.aclose()
        except trio.BrokenResourceError:
            await self._connection.aclose()
        except ElencoError as error:
            await self.refuse(None, str(error))
            await self._connection.aclose()
        finally:
            self._server.watching(-1)

    def _mistake(self) -> bool:
        self._mistakes += 1
        return self._mistakes < _MISTAKES

    async def _send(self, answer: JsonObject) -> None:
        await self._send_bytes(encode_json(answer).encode("ascii") + b"\n")

    async def _send_bytes(self, data: bytes) -> None:
        async with self._sending:
            await self._connection.send_all(data)

    async def _next_line(self) -> bytes | None:
        while (found := self._buffer.take()) is None:
            if len(self._buffer.data) > LONGEST_LINE:
                await self.refuse(None, f"a line has at most {LONGEST_LINE} bytes")
                return None
            data = await self._connection.receive_some()
            if not data:
                return None
            self._buffer.feed(data)
        return found


def _peer(connection: trio.SocketStream) -> int | None:
    """The user at the other end, None where the system does not tell: there the folder's mode alone must do."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    found: bytes = connection.socket.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])
