"""The runs of this machine: the list, and one of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import attrs

from runtime.journal import index
from runtime.journal.folder import find_run
from runtime.journal.read import RunInfo, info, runs

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .site import Desk

_HERE_ONLY = ("socket", "pid")


def routes(desk: Desk) -> list[Route]:
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def about(request: Request) -> Response:
        del request
        return JSONResponse({"state": str(desk.state.path)})

    async def all_runs(request: Request) -> Response:
        del request
        found = await asyncio.to_thread(runs, desk.state)
        return JSONResponse({"runs": [run_to_json(each) for each in found]})

    async def one_run(request: Request) -> Response:
        folder = find_run(desk.state, request.path_params["run"])
        row = await asyncio.to_thread(index.row, desk.state, folder.id)
        return JSONResponse(run_to_json(await asyncio.to_thread(info, desk.state, folder.id, row)))

    return [Route("/api/about", about), Route("/api/runs", all_runs), Route("/api/runs/{run}", one_run)]


def run_to_json(each: RunInfo) -> dict[str, Any]:
    """A run as the page reads it: its row without what is of this machine only, and what it does now."""
    row = {name: value for name, value in attrs.asdict(each.row).items() if name not in _HERE_ONLY}
    return {
        **row,
        "state": each.status,
        "owned": each.owned,
        "waits_for": list(each.waits_for),
        "problem": each.problem,
    }
