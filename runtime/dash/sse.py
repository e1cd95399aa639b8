"""Server-sent events as an ASGI response that pulls: while the client does not read, nothing is taken for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PING = 15.0
"""Seconds of silence after which a comment shows that the server is there."""


@attrs.frozen(eq=False)
class EventStream:
    """Sends what `next` gives, block after block, until it gives None, the client goes or `stopping` is set.

    `close` is called in any case, when no `next` is under way.
    """

    next: Callable[[], Awaitable[bytes | None]]
    close: Callable[[], Awaitable[None]]
    stopping: asyncio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        sending = asyncio.create_task(self._send(send))
        ends = [asyncio.create_task(_gone(receive)), asyncio.create_task(self.stopping.wait())]
        try:
            await asyncio.wait([sending, *ends], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, *ends):
                task.cancel()
            await asyncio.wait([sending, *ends])
            await self.close()
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        head = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        waiting = asyncio.ensure_future(self.next())
        try:
            while True:
                done, _ = await asyncio.wait([waiting], timeout=PING)
                block = waiting.result() if done else b": still here\n\n"
                await send({"type": "http.response.body", "body": block or b"", "more_body": block is not None})
                if block is None:
                    return
                if done:
                    waiting = asyncio.ensure_future(self.next())
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def events(lines: list[bytes], name: str = "") -> bytes:
    """Lines, each with its newline, as an event each: what is cut off by a lost connection is one at most."""
    head = f"event: {name}\ndata: ".encode() if name else b"data: "
    return b"".join(head + line + b"\n" for line in lines)
