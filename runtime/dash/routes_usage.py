"""What all runs have spent, and two runs side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from runtime.errors import UsageError
from runtime.journal.folder import find_run
from runtime.journal.read import RunReader
from runtime.watch.lines import as_json

from .compare import compare
from .portrait import Portrait, portrait
from .usage import Usage

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .site import Desk

_FURTHEST = 14 * 60
"""Minutes; no time zone is further from UTC."""


def routes(desk: Desk) -> list[Route]:
    from starlette.responses import Response
    from starlette.routing import Route

    usage = Usage(desk.state)

    async def spent(request: Request) -> Response:
        found = await asyncio.to_thread(usage.as_json, _offset(request.query_params.get("offset", "0")))
        return Response(as_json(found), media_type="application/json")

    async def both(request: Request) -> Response:
        ids = [request.path_params["one"], request.path_params["two"]]
        one, two = [await asyncio.to_thread(_portrait, desk, run_id) for run_id in ids]
        return Response(as_json(await asyncio.to_thread(compare, one, two)), media_type="application/json")

    return [Route("/api/usage", spent), Route("/api/compare/{one}/{two}", both)]


def _portrait(desk: Desk, run_id: str) -> Portrait:
    with RunReader(find_run(desk.state, run_id)) as reader:
        return portrait(run_id, reader.records())


def _offset(text: str) -> int:
    try:
        offset = int(text)
    except ValueError:
        offset = _FURTHEST + 1
    if abs(offset) > _FURTHEST:
        raise UsageError(f"offset is a number of minutes east of UTC, at most {_FURTHEST}")
    return offset
