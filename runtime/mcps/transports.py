"""MCP over pipes and sockets on plain Trio: a process or a TCP connection as the two streams of an SDK session.

The SDK's own stdio transport cannot be used: it hangs on bytes that are no UTF-8, has no bound for a line, is quadratic
in its length, does not tell of a server that dies while idle, and leaves behind what a server has started.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from runtime.reaper import Process, Reaper

from .entry import Entry, tcp_address
from .frames import LONGEST_LINE, Frames, Overlong

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams: TypeAlias = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
    ]

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a server's process gets of our environment; keys must be given on purpose."""
LAST_LINES = 50
LONGEST_SHOWN = 400
GOODBYE = 1.0
"""Seconds a server has to end by itself when its input closes, and then again when it is asked to."""
_PIECE = 65536


class Unusable(Exception):
    """A server that no further try would reach; the text says why."""


@attrs.define(eq=False)
class Witness:
    """What is seen of a connection from outside: its end, a process's last words, tools that are none."""

    gone: trio.Event = attrs.Factory(trio.Event)
    why: str = ""
    words: deque[str] = attrs.Factory(lambda: deque[str](maxlen=LAST_LINES))
    left_out: list[str] = attrs.Factory(list[str])
    garbage: int = 0

    def end(self, why: str) -> None:
        """The connection is over; the first reason counts."""
        if not self.gone.is_set():
            self.why = why
            self.gone.set()

    @property
    def tail(self) -> str:
        """The last lines of its standard error, "" where there are none."""
        return "\n".join(self.words)


def environment_for(entry: Entry, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server's process."""
    return {**{key: environment[key] for key in INHERITED if key in environment}, **entry.env}


@asynccontextmanager
async def stdio(entry: Entry, reaper: Reaper, folder: str, witness: Witness) -> AsyncGenerator[Streams]:
    """A server's process while the block lasts; then nothing of it, and of what it has started, is left.

    Raises Unusable where it cannot be started.
    """
    try:
        process = await reaper.start(
            [entry.command, *entry.args],
            cwd=os.path.join(folder, entry.cwd),
            env=environment_for(entry, os.environ),
            stdin=subprocess.PIPE,
        )
    except OSError as error:
        raise Unusable(f"cannot start {entry.command}: {error.strerror or error}") from None
    assert process.stdin is not None
    assert process.stdout is not None
    left = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_listen, process, witness)
        nursery.start_soon(_await_end, process, witness)
        try:
            async with lines(process.stdin, process.stdout, witness) as streams:
                yield streams
            left = True
        finally:
            await _end(process, witness, patience=0.0 if left else 0.3)


async def _end(process: Process, witness: Witness, patience: float) -> None:
    """Let it end by itself: its input closes, and it has a moment; then end it. Shielded, and bounded.

    Where something went wrong, an end of its own, which may be the cause, is waited for with `patience`.
    """
    with trio.CancelScope(shield=True):
        with trio.move_on_after(patience):
            await witness.gone.wait()
        witness.end("")  # from here on, its end is our doing
        with trio.move_on_after(GOODBYE):
            if process.stdin is not None:
                await process.stdin.aclose()
            await process.wait()
        await process.end(GOODBYE)


async def _listen(process: Process, witness: Witness) -> None:
    """Read its standard error to the end, so that it never has to wait for us, and keep the last lines.

    Not to be cancelled: it ends with the process, whose last words are the reason for its end.
    """
    assert process.stderr is not None
    frames = Frames(_PIECE)
    with trio.CancelScope(shield=True):
        try:
            async for piece in process.stderr:
                for line in frames.feed(bytes(piece)):
                    text = (line.head if isinstance(line, Overlong) else line).decode(errors="replace")
                    witness.words.append(text[:LONGEST_SHOWN])
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return


async def _await_end(process: Process, witness: Witness) -> None:
    """Tell how the process ends. Not to be cancelled: it is always ended."""
    with trio.CancelScope(shield=True):
        code = await process.wait()
        await trio.sleep(0.05)  # its last words may still be on their way
        witness.end(f"it ended by signal {-code}" if code < 0 else f"it ended with exit code {code}")


@asynccontextmanager
async def tcp(entry: Entry, witness: Witness) -> AsyncGenerator[Streams]:
    """A connection to a server that listens; lines as over pipes. Raises OSError where nobody answers."""
    host, port = tcp_address(entry.url)
    stream = await trio.open_tcp_stream(host, port)
    try:
        async with lines(stream, stream, witness) as streams:
            yield streams
    finally:
        await trio.aclose_forcefully(stream)


@asynccontextmanager
async def lines(
    send: trio.abc.SendStream, receive: trio.abc.ReceiveStream, witness: Witness
) -> AsyncGenerator[Streams]:
    """JSON-RPC messages, one a line, as the streams of an SDK session.

    The end of what is received closes the session's side, so that every call that waits is told. A message that is
    longer than `LONGEST_LINE` is answered with an error in its server's place; what is no message is counted, not told.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        frames = Frames()
        async with to_session:
            try:
                async for piece in receive:
                    for line in frames.feed(bytes(piece)):
                        message = _message(line)
                        if message is None:
                            witness.garbage += 1
                        else:
                            await to_session.send(message)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                pass
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the session has left
        await _closed(witness)

    async def write() -> None:
        async with from_session:
            async for message in from_session:
                try:
                    await send.send_all(_encoded(message))
                except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                    await to_session.aclose()
                    await _closed(witness)
                    return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(write)
        try:
            yield from_server, to_server
        finally:
            from_server.close()
            to_server.close()
            nursery.cancel_scope.cancel()


async def _closed(witness: Witness) -> None:
    """The stream is over; a process that ends tells more of it, a moment later."""
    with trio.move_on_after(0.5):
        await witness.gone.wait()
    witness.end("it closed the connection")


def _message(line: bytes | Overlong) -> SessionMessage | None:
    """The message of a line, None for what is none."""
    from mcp import types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    if isinstance(line, Overlong):
        text = f"the answer is {line.size} bytes long; at most {LONGEST_LINE} are taken"
        return _failed(line, text)
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(_as_utf8(line), by_name=False))
    except ValidationError:
        return _failed(Overlong(line[:4096], len(line)), "the answer is malformed") if b'"jsonrpc"' in line else None


def _failed(line: Overlong, text: str) -> SessionMessage | None:
    """An error in the place of an answer that cannot be taken, where it can be told whose it was."""
    from mcp import types
    from mcp.shared.message import SessionMessage

    if line.id is None:
        return None
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=text)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=line.id, error=error))


def _as_utf8(line: bytes) -> bytes:
    """The line, each byte that is no UTF-8 taken by the sign for it."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace").encode()
    return line


def _encoded(message: SessionMessage) -> bytes:
    return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
