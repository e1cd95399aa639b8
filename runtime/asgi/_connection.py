"""One connection: request after request, as long as both sides keep to HTTP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

import h11
import trio

from runtime.errors import first_of

from ._bounds import Bounds
from ._exchange import CHUNK, App, Exchange, Gone, Refused, Scope

LOG = logging.getLogger(__name__)


async def converse(app: App, stream: trio.SocketStream, bounds: Bounds, state: Mapping[str, Any]) -> None:
    """Answer the requests of a connection until its client leaves, is too slow or speaks no HTTP, then close it.

    A crash of the application is logged and costs this connection alone. A cancelled call closes it at once.
    """
    machine = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.most_head)
    async with stream:
        patience = bounds.head
        while True:
            exchange = Exchange(stream, machine, bounds)
            try:
                request = await _head(stream, machine, patience, bounds)
                if request is None:
                    return
                exchange.bodiless = request.method == b"HEAD"
                await _answer(app, exchange, request, _scope(request, stream, state))
            except h11.RemoteProtocolError as error:
                await _refuse(exchange, error.error_status_hint)
            if not exchange.sent or not await exchange.rest() or machine.our_state is not h11.DONE:
                await _linger(stream, exchange)
                return
            machine.start_next_cycle()
            patience = bounds.idle


async def _head(
    stream: trio.SocketStream, machine: h11.Connection, patience: float, bounds: Bounds
) -> h11.Request | None:
    """The next request, None where there will be none. Raises h11.RemoteProtocolError."""
    begun = bool(machine.trailing_data[0])
    with trio.move_on_after(bounds.head if begun else patience) as scope:
        while True:
            event = machine.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            try:
                data = await stream.receive_some(CHUNK)
            except trio.BrokenResourceError:
                return None
            if not begun:
                begun = True
                scope.deadline = trio.current_time() + bounds.head
            machine.receive_data(data)
    return None


async def _answer(app: App, exchange: Exchange, request: h11.Request, scope: Scope) -> None:
    said = dict(request.headers).get(b"content-length", b"0")
    if int(said) > exchange.bounds.most_body:
        await _refuse(exchange, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    try:
        await app(scope, exchange.receive, exchange.send)
    except Exception as error:  # noqa: BLE001  # an application's crash costs its own client alone
        refused = first_of(error, Refused)
        if refused is not None:
            status = HTTPStatus(refused.status)
        elif first_of(error, Gone) is None:
            LOG.error("%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error)
    if not exchange.started:
        await _refuse(exchange, status)


async def _refuse(exchange: Exchange, status: int) -> None:
    try:
        await exchange.refuse(status)
    except (Gone, h11.LocalProtocolError):
        return


async def _linger(stream: trio.SocketStream, exchange: Exchange) -> None:
    """Close a connection so that its client gets what was sent: unread bytes would break it off."""
    if exchange.gone or not exchange.sent:
        return
    try:
        with trio.move_on_after(exchange.bounds.linger):
            await stream.send_eof()
            while await stream.receive_some(CHUNK):
                pass
    except trio.BrokenResourceError:
        return


def _scope(request: h11.Request, stream: trio.SocketStream, state: Mapping[str, Any]) -> Scope:
    target = request.target
    if not target.startswith((b"/", b"*")):  # a proxy's form, with scheme and host before the path
        parts = urlsplit(target)
        target = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
    path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": request.http_version.decode(),
        "method": request.method.decode(),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": _address(stream.socket.getpeername),
        "server": _address(stream.socket.getsockname),
        "state": dict(state),
    }


def _address(of: Callable[[], Any]) -> tuple[str, int] | None:
    """Host and port of an end of the connection; None for a socket of another kind, or one that is gone."""
    try:
        host, port, *_ = of()
    except (OSError, ValueError):
        return None
    return host, port
