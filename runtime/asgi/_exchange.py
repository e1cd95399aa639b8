"""One request and its response: what an ASGI application receives and sends, as h11's events over a stream.

The application may receive in one task and send in another. When the client leaves, a waiting `receive` says so, and
`send` raises `Gone`, an OSError, as ASGI 2.4 has it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, TypeAlias

import attrs
import h11
import trio

from ._bounds import Bounds

Scope: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

CHUNK = 64 * 1024
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class Gone(OSError):
    """The client has left or takes nothing more: there is nobody to answer."""


class Refused(Exception):
    """The request cannot be read on: too long, or no HTTP."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the request is refused with {status}")


@attrs.define(eq=False)
class Exchange:
    """One request and its response; `sent` is true once the response is whole."""

    stream: trio.SocketStream
    machine: h11.Connection
    bounds: Bounds
    bodiless: bool = False
    """The request is a HEAD, so that its response has no body."""
    sent: bool = False
    _left: bool = False
    _torn: bool = False
    _taken: int = 0
    _whole: bool = False
    _reading: trio.Lock = attrs.Factory(trio.Lock)
    _writing: trio.Lock = attrs.Factory(trio.Lock)
    _watch: trio.CancelScope = attrs.Factory(trio.CancelScope)

    @property
    def gone(self) -> bool:
        return self._left or self._torn

    @property
    def started(self) -> bool:
        return self.machine.our_state not in (h11.IDLE, h11.SEND_RESPONSE)

    async def receive(self) -> Message:
        """The next piece of the body; after the last one, wait until the client leaves or the response is whole.

        A cancelled call loses nothing. Raises Refused.
        """
        async with self._reading:
            if not self._whole:
                return await self._piece()
            if not self._left and not self.sent:
                with trio.CancelScope() as self._watch:
                    await self._until_left()
            return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response. After a cancelled call nothing more can be sent. Raises Gone."""
        async with self._writing:
            match message["type"]:
                case "http.response.start":
                    headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
                    await self.respond(int(message["status"]), headers)
                case "http.response.body":
                    body = b"" if self.bodiless else bytes(message.get("body", b""))
                    await self.continue_with(body, last=not message.get("more_body", False))
                case other:
                    raise ValueError(f"a response has no {other!r}")

    async def respond(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the response. After a cancelled call nothing more can be sent. Raises Gone."""
        if not any(name.lower() == b"date" for name, _ in headers):
            headers = [*headers, (b"date", formatdate(usegmt=True).encode())]
        await self._write(h11.Response(status_code=status, headers=headers, reason=_PHRASES.get(status, b"")))

    async def continue_with(self, body: bytes, *, last: bool) -> None:
        """Send a piece of the body. After a cancelled call nothing more can be sent.

        Raises Gone, and RuntimeError before the head.
        """
        if not self.started:
            raise RuntimeError("a response begins with its head")
        if body:
            await self._write(h11.Data(data=body))
        if last:
            # A client that leaves with all it wanted, as event streams are left, has missed nothing.
            with suppress(Gone):
                await self._write(h11.EndOfMessage())
            self.sent = True
            self._watch.cancel()

    async def refuse(self, status: int) -> None:
        """Answer with a status alone, after which the connection is closed. Raises Gone.

        After a cancelled call nothing more can be sent.
        """
        said = _PHRASES[status] + b"\n"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(said)), (b"connection", b"close")]
        await self.respond(status, headers)
        await self.continue_with(b"" if self.bodiless else said, last=True)

    async def rest(self) -> bool:
        """Read what the application did not want of the body; whether that was soon done."""
        with trio.move_on_after(self.bounds.linger):
            while not self._whole and not self.gone:
                try:
                    await self._piece()
                except Refused:
                    return False
        return self._whole and not self.gone

    async def _piece(self) -> Message:
        while True:
            try:
                event = self.machine.next_event()
            except h11.RemoteProtocolError as error:
                if self._left:
                    return {"type": "http.disconnect"}
                raise Refused(error.error_status_hint) from None
            if isinstance(event, h11.Data):
                self._taken += len(event.data)
                if self._taken > self.bounds.most_body:
                    raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return {"type": "http.request", "body": bytes(event.data), "more_body": True}
            if isinstance(event, h11.EndOfMessage):
                self._whole = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if self.machine.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            with trio.move_on_after(self.bounds.body) as patience:
                await self._read()
            if patience.cancelled_caught:
                raise Refused(HTTPStatus.REQUEST_TIMEOUT)

    async def _until_left(self) -> None:
        while not self._left and len(self.machine.trailing_data[0]) < self.bounds.most_ahead:
            await self._read()
        if not self._left:
            await trio.sleep_forever()

    async def _read(self) -> None:
        try:
            data = await self.stream.receive_some(CHUNK)
        except trio.BrokenResourceError:
            data = b""
        self._left = not data
        self.machine.receive_data(data)

    async def _write(self, event: h11.Event) -> None:
        if self.gone:
            raise Gone
        data = self.machine.send(event)
        self._torn = True  # until it is whole: what is cancelled on the way cannot be gone on with
        try:
            with trio.fail_after(self.bounds.send):
                await self.stream.send_all(data or b"")
        except (trio.TooSlowError, trio.BrokenResourceError) as error:
            self._left = True
            self._watch.cancel()
            raise Gone from error
        self._torn = False
