"""One run's events as server-sent events, and commands to it."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import TYPE_CHECKING, Any, cast

from runtime.errors import ElencoError, UsageError
from runtime.journal.folder import find_run
from runtime.watch.commands import command_from_json

from .follow import Follow, Lines
from .sse import EventStream, events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .site import Desk

ME = "you"


def routes(desk: Desk) -> list[Route]:
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def stream(request: Request) -> Any:
        """From the event `from` on: blocks of lines of the log stream; `reached` when all there was has been given."""
        follow = Follow(find_run(desk.state, request.path_params["run"]), _number(request, "from", 1))
        broken = False

        async def next_block() -> bytes | None:
            nonlocal broken
            if broken:
                return None
            try:
                found = await follow.batch()
            except ElencoError as error:
                broken = True
                return events([json.dumps({"error": str(error)}).encode() + b"\n"], "broken")
            if isinstance(found, Lines):
                return events(found.lines)
            return events([json.dumps({"seq": found.seq, "owned": found.owned}).encode() + b"\n"], "reached")

        return EventStream(next_block, follow.close, desk.stopping)

    async def command(request: Request) -> Response:
        """Have a command carried out by the run's process, or recorded for its next one."""
        folder = find_run(desk.state, request.path_params["run"])
        try:
            body: Any = json.loads(await request.body())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise UsageError("a command is one JSON object")
        given = command_from_json({**cast("dict[str, Any]", body), "by": ME})
        return JSONResponse(await asyncio.to_thread(_deliver, folder, given))

    return [
        # Whatever stands there, nothing too: what is no run is told so in words.
        Route("/api/runs/{run:path}/events", stream),
        Route("/api/runs/{run}/commands", command, methods=["POST"]),
    ]


def _deliver(folder: Any, command: Any) -> Any:
    """The socket's client is Trio's: one command is one short loop of its own in a thread."""
    import trio

    from runtime.watch.unattended import deliver

    return trio.run(deliver, folder, command, lambda: secrets.token_hex(3))


def _number(request: Request, name: str, otherwise: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UsageError(f"{name} is a whole number, not '{text[:20]}'")
    return int(text)
