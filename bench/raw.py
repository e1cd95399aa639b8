"""The same agents as a loop written by hand, on Trio with httpx or with h11: what Elenco's cost is held against.

No journal, limits, guard, permissions, retries or events; the whole history is encoded anew at each step.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias

import h11
import httpx
import trio

from .subject import SYSTEM, TASK, Timer, add, function, note

ToolFunction: TypeAlias = Callable[..., Awaitable[str]]
PATH = "/v1/chat/completions"
HEADERS = {"authorization": "Bearer none", "content-type": "application/json", "accept": "text/event-stream"}
ADD = function("add", "Add two numbers.", a="integer", b="integer")
NOTE = function("note", "Take a note.", task="string")


class Wire(Protocol):
    """A way to the server: the data of each event of one streamed answer."""

    def events(self, body: bytes) -> AbstractAsyncContextManager[AsyncIterator[str | bytes]]: ...

    async def aclose(self) -> None: ...


class Httpx:
    """The stock client. More than 20 idle connections would make its pool quadratic."""

    def __init__(self, base: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._client = httpx.AsyncClient(base_url=base, headers=HEADERS, timeout=60, limits=limits)

    @asynccontextmanager
    async def events(self, body: bytes) -> AsyncGenerator[AsyncIterator[str | bytes]]:
        async with self._client.stream("POST", PATH, content=body) as response:
            response.raise_for_status()
            async with aclosing(_data(response)) as found:
                yield found

    async def aclose(self) -> None:
        await self._client.aclose()


async def _data(response: httpx.Response) -> AsyncGenerator[str | bytes]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line[6:]


class H11:
    """h11 on Trio's sockets, with a stack of idle connections."""

    def __init__(self, base: str) -> None:
        self._host, _, port = base.rpartition("/")[2].partition(":")
        self._port = int(port)
        self._idle: list[tuple[trio.SocketStream, Any]] = []

    @asynccontextmanager
    async def events(self, body: bytes) -> AsyncGenerator[AsyncIterator[str | bytes]]:
        if self._idle:
            sock, protocol = self._idle.pop()
        else:
            sock, protocol = await trio.open_tcp_stream(self._host, self._port), h11.Connection(h11.CLIENT)
        headers = {"host": self._host, **HEADERS, "content-length": str(len(body))}
        head = protocol.send(h11.Request(method="POST", target=PATH, headers=list(headers.items())))
        await sock.send_all(head + protocol.send(h11.Data(data=body)) + protocol.send(h11.EndOfMessage()))
        async with aclosing(self._body(sock, protocol)) as pieces:
            yield pieces
        protocol.start_next_cycle()
        self._idle.append((sock, protocol))

    async def aclose(self) -> None:
        for sock, _ in self._idle:
            await sock.aclose()

    async def _body(self, sock: trio.SocketStream, protocol: Any) -> AsyncGenerator[bytes]:
        rest = b""
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                protocol.receive_data(await sock.receive_some(65536))
            elif type(event) is h11.Data:
                *whole, rest = (rest + event.data).split(b"\n\n")
                for each in whole:
                    yield each[6:]
            elif type(event) is h11.EndOfMessage:
                return


async def complete(
    wire: Wire, body: bytes, on_text: Callable[[str], None] | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """One streamed answer: its text and its calls."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    async with wire.events(body) as events:
        async for data in events:
            if data in ("[DONE]", b"[DONE]"):
                continue
            for choice in json.loads(data)["choices"]:
                delta = choice["delta"]
                if text := delta.get("content"):
                    texts.append(text)
                    if on_text is not None:
                        on_text(text)
                for piece in delta.get("tool_calls") or ():
                    called = piece["function"]
                    if piece["index"] == len(calls):
                        named = {"name": called["name"], "arguments": ""}
                        calls.append({"id": piece["id"], "type": "function", "function": named})
                    calls[piece["index"]]["function"]["arguments"] += called.get("arguments") or ""
    return "".join(texts), calls


async def agent(wire: Wire, model: str, schemas: list[dict[str, Any]], tools: dict[str, ToolFunction]) -> str:
    """One agent: ask, run what it calls, give the results back, until it answers."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    while True:
        text, calls = await complete(wire, _body(model, schemas, messages))
        if not calls:
            return text
        messages.append({"role": "assistant", "content": text or None, "tool_calls": calls})
        results: dict[str, str] = {}

        async def run(call: dict[str, Any], into: dict[str, str]) -> None:
            called = call["function"]
            into[call["id"]] = await tools[called["name"]](**json.loads(called["arguments"]))

        if len(calls) == 1:
            await run(calls[0], results)
        else:
            async with trio.open_nursery() as nursery:
                for call in calls:
                    nursery.start_soon(run, call, results)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": results[call["id"]]} for call in calls]


def _body(model: str, schemas: list[dict[str, Any]], messages: list[dict[str, Any]]) -> bytes:
    options = {"include_usage": True}
    request = {"model": model, "stream": True, "stream_options": options, "tools": schemas, "messages": messages}
    return json.dumps(request, separators=(",", ":")).encode()


class RawSubject:
    """The loop as a Subject."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.work = Timer()

    async def loop(self, model: str) -> None:
        with Timer() as self.work:
            await agent(self._wire, model, [ADD], {"add": add})

    async def fan(self, model: str) -> None:
        with Timer() as self.work:
            await agent(self._wire, model, [NOTE], {"note": note})

    async def stream(self, model: str) -> int:
        pieces: list[str] = []
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        await complete(self._wire, _body(model, [ADD], messages), pieces.append)
        return len(pieces)

    async def delegate(self, children: int, child: str, latency: str = "") -> None:
        async def call(task: str) -> str:
            return await agent(self._wire, child, [ADD], {"add": add})

        schema = function("delegate", "Delegate a task.", task="string")
        with Timer() as self.work:
            await agent(self._wire, f"fan-{children}:delegate(task){latency}", [schema], {"delegate": call})

    async def crowd(self, model: str, count: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(partial(self.loop, model))

    async def aclose(self) -> None:
        await self._wire.aclose()
