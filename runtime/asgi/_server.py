"""Serve an ASGI application: its lifespan around the connections, as many of these as it may have at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from ._bounds import Bounds
from ._connection import converse
from ._exchange import App, Message

CLOSING = 5.0
"""Seconds an application has to close down."""
FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n"


async def serve(app: App, listeners: Sequence[trio.SocketListener], bounds: Bounds | None = None) -> None:
    """Serve until cancelled, which closes listeners and connections at once, whatever their clients do.

    The application's lifespan is begun before the first connection and ended after the last one, with five seconds to
    close down. Raises what the application's lifespan raises, and RuntimeError where it says that it cannot begin.
    """
    kept = bounds or Bounds()
    live = 0

    async def connected(stream: trio.SocketStream) -> None:
        nonlocal live
        if live >= kept.connections:
            await _turn_away(stream)
            return
        live += 1
        try:
            await converse(app, stream, kept, state)
        finally:
            live -= 1

    async with _lifespan(app) as state:
        await trio.serve_listeners(connected, list(listeners))


async def _turn_away(stream: trio.SocketStream) -> None:
    async with stream:
        with trio.move_on_after(1):
            try:
                await stream.send_all(FULL)
            except trio.BrokenResourceError:
                return


@attrs.define(eq=False)
class _Lifespan:
    """What an application is asked and answers about its beginning and its end."""

    state: dict[str, Any] = attrs.Factory(dict[str, Any])
    fault: str = ""
    _asked: bool = False
    begun: trio.Event = attrs.Factory(trio.Event)
    ending: trio.Event = attrs.Factory(trio.Event)

    async def run(self, app: App) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await app(scope, self.receive, self.send)
        finally:
            self.begun.set()

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "lifespan.startup"}
        await self.ending.wait()
        return {"type": "lifespan.shutdown"}

    async def send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            self.fault = str(message.get("message") or "the application did not begin")
        self.begun.set()


@asynccontextmanager
async def _lifespan(app: App) -> AsyncGenerator[dict[str, Any]]:
    lifespan = _Lifespan()
    # A cancel reaches the connections; what they use is closed after them, in its own way.
    shielded = trio.CancelScope(shield=True)

    async def run() -> None:
        with shielded:
            await lifespan.run(app)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await lifespan.begun.wait()
            if lifespan.fault:
                raise RuntimeError(lifespan.fault)
            yield lifespan.state
        finally:
            lifespan.ending.set()
            shielded.deadline = trio.current_time() + CLOSING
