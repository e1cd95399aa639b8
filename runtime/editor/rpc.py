"""JSON-RPC 2.0 between two programs, one object a line, each side asking and answering."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs
import trio

from runtime.errors import ElencoError, UsageError
from runtime.messages import JsonObject

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
LONGEST_LINE = 64 << 20
SETTLE = 0.5
"""Seconds for answers under way when the other side has closed its half: it may still read."""
_CHUNK = 65_536

Answer: TypeAlias = Callable[[JsonObject], Awaitable[object]]
Hear: TypeAlias = Callable[[JsonObject], None]


class RpcError(Exception):
    """An error answer, given or received."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class PeerGone(RpcError):
    """The other side has left: nothing is answered any more."""

    def __init__(self) -> None:
        super().__init__(INTERNAL, "the other side has left")


@attrs.define(eq=False)
class _Waiting:
    event: trio.Event = attrs.Factory(trio.Event)
    result: Any = None
    error: RpcError | None = None


class Peer:
    """The other side. `answers` are what it may ask, each in a task of its own; `hears` what it may tell."""

    def __init__(
        self,
        send: trio.abc.SendStream,
        receive: trio.abc.ReceiveStream,
        answers: Mapping[str, Answer],
        hears: Mapping[str, Hear],
    ) -> None:
        self._send = send
        self._receive = receive
        self._answers = answers
        self._hears = hears
        self._waiting: dict[int, _Waiting] = {}
        self._asked = 0
        self._sending = trio.Lock()
        self._gone = False
        self._buffer = bytearray()
        self._looked = 0

    async def serve(self) -> None:
        """Answer until the other side leaves; whatever is still under way SETTLE seconds later is cancelled.

        A cancelled call cancels what is under way.
        """
        async with trio.open_nursery() as nursery:
            while (line := await self._line()) is not None:
                if line.strip():
                    self._take(line, nursery)
            self._gone = True
            for waiting in self._waiting.values():
                waiting.error = PeerGone()
                waiting.event.set()
            nursery.cancel_scope.deadline = trio.current_time() + SETTLE

    async def request(self, method: str, params: JsonObject) -> Any:
        """Ask, and wait for the result. Raises RpcError. A cancelled call drops the late answer."""
        if self._gone:
            raise PeerGone()
        self._asked += 1
        id, waiting = self._asked, _Waiting()
        self._waiting[id] = waiting
        try:
            await self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            await waiting.event.wait()
        finally:
            del self._waiting[id]
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    async def notify(self, method: str, params: JsonObject) -> None:
        """Tell. Nothing happens when the other side has left. A cancelled call may have told it in part."""
        await self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def _line(self) -> bytes | None:
        """The next line, None once the other side has left, or sends one without an end."""
        while (end := self._buffer.find(b"\n", self._looked)) < 0:
            self._looked = len(self._buffer)
            if self._looked > LONGEST_LINE:
                return None
            try:
                chunk = await self._receive.receive_some(_CHUNK)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                return None
            if not chunk:
                return None
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._looked = 0
        return line

    def _take(self, line: bytes, nursery: trio.Nursery) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            nursery.start_soon(self._fail, None, RpcError(PARSE_ERROR, "that line is no JSON"))
            return
        if not isinstance(message, dict):
            nursery.start_soon(self._fail, None, RpcError(INVALID_REQUEST, "a message is a JSON object"))
            return
        found = cast("dict[str, Any]", message)
        method, id = found.get("method"), found.get("id")
        params: Any = found.get("params")
        given = cast("dict[str, Any]", params if params is not None else {})
        if method is None and id is not None:
            self._settle(id, found)
        elif not isinstance(method, str):
            nursery.start_soon(self._fail, id, RpcError(INVALID_REQUEST, "a request names its method"))
        elif not isinstance(given, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            if id is not None:
                nursery.start_soon(self._fail, id, RpcError(INVALID_PARAMS, "params are an object"))
        elif "id" in found:
            nursery.start_soon(self._answer, id, method, given)
        elif (hear := self._hears.get(method)) is not None:
            hear(given)

    def _settle(self, id: object, message: Mapping[str, Any]) -> None:
        waiting = self._waiting.get(id) if isinstance(id, int) else None
        if waiting is None:
            return  # nobody waits for it any more
        error: Any = message.get("error")
        if isinstance(error, dict):
            told = cast("dict[str, Any]", error)
            code = told.get("code")
            waiting.error = RpcError(
                code if isinstance(code, int) else INTERNAL, str(told.get("message") or "no reason")
            )
        else:
            waiting.result = message.get("result")
        waiting.event.set()

    async def _answer(self, id: object, method: str, params: JsonObject) -> None:
        answer = self._answers.get(method)
        if answer is None:
            await self._fail(id, RpcError(NO_METHOD, f"there is no method {method}"))
            return
        try:
            result = await answer(params)
        except RpcError as error:
            await self._fail(id, error)
        except UsageError as error:
            await self._fail(id, RpcError(INVALID_PARAMS, str(error)))
        except ElencoError as error:
            await self._fail(id, RpcError(INTERNAL, str(error)))
        else:
            await self._write({"jsonrpc": "2.0", "id": id, "result": result})

    async def _fail(self, id: object, error: RpcError) -> None:
        told = {"code": error.code, "message": str(error)}
        await self._write({"jsonrpc": "2.0", "id": id, "error": told})

    async def _write(self, message: JsonObject) -> None:
        data = json.dumps(message).encode() + b"\n"  # in ASCII: half a surrogate pair can travel too
        async with self._sending:
            try:
                await self._send.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                self._gone = True
