"""A web of our own: a plain HTTP server on loopback that answers as told, and tools that may reach it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import h11
import pytest
import trio

from runtime.messages import ToolCall, ToolResult
from runtime.policy.paths import Workspace
from runtime.tools import Tool, ToolBox, ToolContext


@attrs.frozen
class Asked:
    """One request as it came in."""

    target: str
    headers: dict[str, str]


@attrs.frozen
class Answer:
    """What to answer; with `endless` the body is repeated until the client has had enough, `stall` sends nothing."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/html; charset=utf-8"),)
    endless: bool = False
    stall: bool = False

    def zipped(self) -> Answer:
        return attrs.evolve(self, body=gzip.compress(self.body), headers=(*self.headers, ("content-encoding", "gzip")))


Route: TypeAlias = Callable[[Asked], Answer]


class Site:
    """The server: `pages` maps a path to an answer, `asked` is what came in."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages: dict[str, Answer | Route] = {}
        self.asked: list[Asked] = []

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def page(self, path: str, body: bytes | str = b"", *, zipped: bool = False, **settings: Any) -> str:
        """Put a page there and give its address."""
        answer = Answer(body.encode() if isinstance(body, str) else body, **settings)
        self.pages[path] = answer.zipped() if zipped else answer
        return self.url(path)

    def moved(self, path: str, to: str, status: int = 302) -> str:
        """A page that is elsewhere."""
        return self.page(path, status=status, headers=(("location", to),))

    async def serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while not isinstance(event := connection.next_event(), h11.Request):
                if event is not h11.NEED_DATA:
                    return
                connection.receive_data(await stream.receive_some())
            headers = {name.decode(): value.decode() for name, value in event.headers}
            asked = Asked(event.target.decode(), headers)
            self.asked.append(asked)
            page = self.pages.get(asked.target.partition("?")[0], Answer(b"<p>not here", 404))
            await self._answer(connection, stream, page if isinstance(page, Answer) else page(asked))
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, connection: h11.Connection, stream: trio.SocketStream, answer: Answer) -> None:
        if answer.stall:
            await trio.sleep_forever()
        length = [] if answer.endless else [("content-length", str(len(answer.body)))]

        async def send(event: h11.Event) -> None:
            await stream.send_all(connection.send(event) or b"")  # pyright: ignore[reportUnknownArgumentType]

        await send(h11.Response(status_code=answer.status, headers=[*answer.headers, *length, ("connection", "close")]))
        await send(h11.Data(data=answer.body))
        while answer.endless:
            await send(h11.Data(data=answer.body))
        await send(h11.EndOfMessage())


@asynccontextmanager
async def site() -> AsyncGenerator[Site]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    served = Site(listener.socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, served.serve, [listener])
        yield served
        nursery.cancel_scope.cancel()


@pytest.fixture
async def web() -> AsyncGenerator[Site]:
    async with site() as served:
        yield served


@attrs.define(eq=False)
class Reader:
    """An actor with web tools; `private` are the hosts that rules name, `allowed` those that need no question."""

    ctx: ToolContext
    private: set[str] = attrs.Factory(lambda: {"127.0.0.1"})
    allowed: set[str] = attrs.Factory(lambda: {"127.0.0.1"})

    def may_fetch(self, host: str) -> bool:
        return host in self.allowed

    def may_fetch_private(self, host: str) -> bool:
        return host in self.private

    async def use(self, tool: Tool, **arguments: Any) -> ToolResult:
        with trio.fail_after(20):
            return await ToolBox([tool]).run(ToolCall("c", tool.name, arguments), self.ctx)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    reader = Reader(ToolContext(Workspace(tmp_path)))
    reader.ctx = attrs.evolve(
        reader.ctx,
        may_fetch=reader.may_fetch,
        may_fetch_private=reader.may_fetch_private,
    )
    return reader
