"""The site as one ASGI application: the door in front, the static shell, and a table of route groups behind.

A route group is a module `routes_*` with a function `routes(desk) -> list[Route]`; it is named in `GROUPS`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from runtime.errors import ElencoError, UsageError
from runtime.journal.folder import State

from . import routes_events, routes_files, routes_playground, routes_runs, routes_usage, shell
from .admission import Door

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@attrs.frozen(eq=False)
class Desk:
    """What the routes work with: the runs of this machine, and `stopping`, set when the server is to end."""

    state: State
    door: Door
    stopping: asyncio.Event


GROUPS: tuple[Callable[[Desk], list[Route]], ...] = (
    routes_runs.routes,
    routes_events.routes,
    routes_files.routes,
    routes_usage.routes,
    routes_playground.routes,
)


def site(desk: Desk, files: shell.Shell) -> ASGIApp:
    """The whole application."""
    return _Guard(_application(desk, files), desk.door, shell.headers(files.policy))


def _application(desk: Desk, files: shell.Shell) -> Starlette:
    from starlette.applications import Starlette
    from starlette.responses import FileResponse
    from starlette.routing import Route

    def served(path: str) -> Route:
        file = files.files[path]

        async def serve(request: Request) -> Response:
            del request
            return FileResponse(file, media_type=shell.media_type(file))

        return Route(path, serve)

    routes = [served(path) for path in files.files]
    routes += [route for group in GROUPS for route in group(desk)]
    return Starlette(routes=routes, exception_handlers={ElencoError: _refused})


async def _refused(request: Request, error: Exception) -> Response:
    """An error a person can act on, as JSON."""
    from starlette.responses import JSONResponse

    del request
    return JSONResponse({"error": str(error)}, 400 if isinstance(error, UsageError) else 409)


@attrs.frozen(eq=False)
class _Guard:
    """Looks at every request's head before anything else does."""

    app: ASGIApp
    door: Door
    headers: list[tuple[bytes, bytes]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        refusal = self.door.refusal(scope["method"], scope["path"], _headers(scope))
        if refusal is None:
            await self.app(scope, receive, send_with_headers)
            return
        body = json.dumps({"error": refusal.why}).encode()
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send_with_headers({"type": "http.response.start", "status": refusal.status, "headers": head})
        await send({"type": "http.response.body", "body": body})


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """By lower-case name; one that comes twice is joined, so that no second value slips by."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
