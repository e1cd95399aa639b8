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
from contextlib import asynccontextmanager, suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from runtime.errors import ElencoError, UsageError
from runtime.journal.folder import RunFolder
from runtime.journal.nursery import serving
from runtime.journal.rows import encode_json
from runtime.messages import JsonObject

from .commands import Commands, command_from_json
from .exchange import LineBuffer
from .pace import Pace
from .runtime_folder import runtime_folder, sweep
from .stream import LogStream

LONGEST_LINE = 1 << 20
MOST_CONNECTIONS = 256
HELLO = 5.0
"""Seconds a client has for its first request."""
GRACE = 0.5
"""Seconds that watchers have, when the run has ended, to take what is left; and who is turned away, to ask."""
BUFFER = 1 << 15
"""Bytes that wait in the system for a client that does not read; after that it costs nothing."""
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

    Raises ElencoError when no socket can be made, or its place cannot be told beside the journal.
    """
    place = runtime_folder(env)
    sweep(place)
    control = Control(place / f"{folder.id}-{secrets.token_hex(3)}.sock", secrets.token_urlsafe(32))
    server = _Server(stream, commands, folder.id, control.token)
    try:
        listener = _listen(control.socket)
        try:
            _write_private(folder.control, json.dumps({"socket": str(control.socket), "token": control.token}))
        except ElencoError:
            listener.socket.close()
            raise
        async with serving() as nursery:
            nursery.start_soon(server.listen, listener, nursery)
            nursery.start_soon(server.pace.run)
            try:
                yield control
            finally:
                server.listening.cancel()
                stream.close()
                server.cut_off()
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
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        draft.rename(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise ElencoError(f"cannot write {path}: {error.strerror}") from error


class _Server:
    def __init__(self, stream: LogStream, commands: Commands, run_id: str, token: str) -> None:
        self.stream = stream
        self.commands = commands
        self.run_id = run_id
        self.listening = trio.CancelScope()
        self._token = token.encode()
        self.pace = Pace(stream, run_id)
        self.catching_up = trio.Lock()
        self.watchers: set[_Client] = set()
        self._connections = 0
        self._gone = trio.Event()

    async def listen(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        with self.listening:
            await trio.serve_listeners(self._accept, [listener], handler_nursery=nursery)

    async def watchers_gone(self) -> None:
        while self.watchers:
            await self._gone.wait()

    def cut_off(self) -> None:
        """Do not wait for watchers that have taken nothing for as long as they might now be given."""
        for watcher in self.watchers:
            if watcher.stalled():
                watcher.watching.cancel()

    def may(self, token: object) -> bool:
        return isinstance(token, str) and compare_digest(token.encode("utf-8", "replace"), self._token)

    def left(self, watcher: _Client) -> None:
        self.watchers.discard(watcher)
        if not self.watchers:
            self._gone.set()
            self._gone = trio.Event()

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
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        client = _Client(self, connection)
        if self._connections <= MOST_CONNECTIONS:
            await client.serve()
            return
        with trio.move_on_after(2 * GRACE):
            await client.turn_away(f"{MOST_CONNECTIONS} clients are connected already")


class _Client:
    """One connection; its requests are answered in order, events come in between."""

    def __init__(self, server: _Server, connection: trio.SocketStream) -> None:
        self._server = server
        self._connection = connection
        self._buffer = LineBuffer()
        self._sending = trio.Lock()
        self._rest = b""
        self._took = trio.current_time()
        self.watching = trio.CancelScope()
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
        stream, pace = self._server.stream, self._server.pace
        self._server.watchers.add(self)
        try:
            with self.watching:
                async with stream.subscribe(from_seq) as reader:
                    while True:
                        # One at a time: a page takes the run's loop several milliseconds.
                        async with self._server.catching_up:
                            data = pace.lines(await reader.catch_up())
                        if data:
                            await self._send_bytes(data)
                        elif not stream.closed:
                            await pace.keep_step(reader, self.offer)
                            await self._send_bytes(b"")
                        elif (records := reader.take(stream.mark())) == []:
                            break
                        else:
                            await self._send_bytes(pace.lines(records or []))
            # The end of the stream is the end of the connection.
            await self._connection.aclose()
        except trio.BrokenResourceError:
            await self._connection.aclose()
        except ElencoError as error:
            await self.refuse(None, str(error))
            await self._connection.aclose()
        finally:
            self._server.left(self)

    def offer(self, data: bytes) -> bool:
        """Send what goes at once; False where something is left that goes before whatever is sent next."""
        if self._sending.locked():
            self._rest += data
            return False
        try:
            sent = os.write(self._connection.socket.fileno(), data)
        except OSError:  # full, or broken: the next who sends sees which
            sent = 0
        self._rest = data[sent:]
        return not self._rest

    def stalled(self) -> bool:
        """Whether it has been sent something for a while and takes none of it."""
        return self._sending.locked() and trio.current_time() >= self._took + GRACE

    def _mistake(self) -> bool:
        self._mistakes += 1
        return self._mistakes < _MISTAKES

    async def _send(self, answer: JsonObject) -> None:
        await self._send_bytes(encode_json(answer).encode("ascii") + b"\n")

    async def _send_bytes(self, data: bytes) -> None:
        async with self._sending:
            rest, self._rest = self._rest + data, b""
            for start in range(0, len(rest), BUFFER):
                self._took = trio.current_time()
                await self._connection.send_all(rest[start : start + BUFFER])

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
