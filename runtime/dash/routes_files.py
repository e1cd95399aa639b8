"""What is kept of a run as files to take away: its events, a page to read, and the full text of a long result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from runtime.errors import UsageError, did_you_mean
from runtime.journal.blobs import Blobs
from runtime.journal.folder import RunFolder, find_run
from runtime.journal.lock import is_owned
from runtime.journal.read import RunReader, load

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .site import Desk

_LONGEST_SHOWN = 4 << 20


@attrs.frozen
class _Export:
    media_type: str
    write: Callable[[RunFolder], bytes]


def routes(desk: Desk) -> list[Route]:
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    async def export(request: Request) -> Response:
        folder = find_run(desk.state, request.path_params["run"])
        name = request.query_params.get("format", "jsonl")
        if (found := _EXPORTS.get(name)) is None:
            raise UsageError(f"unknown format '{name[:20]}'{did_you_mean(name, _EXPORTS)}")
        body = await asyncio.to_thread(found.write, folder)
        return Response(body, media_type=found.media_type, headers={"content-disposition": "attachment"})

    async def blob(request: Request) -> Response:
        folder = find_run(desk.state, request.path_params["run"])
        data = await asyncio.to_thread(Blobs(folder.blobs).get, request.path_params["digest"])
        return PlainTextResponse(data[:_LONGEST_SHOWN].decode("utf-8", "replace"))

    return [Route("/api/runs/{run}/export", export), Route("/api/runs/{run}/blobs/{digest}", blob)]


def _events(folder: RunFolder) -> bytes:
    from runtime.watch.lines import line

    with RunReader(folder) as reader:
        return b"".join(line(record, folder.id) for record in reader.records())


def _page(folder: RunFolder) -> bytes:
    from runtime.cli.page import page

    state = load(folder)
    if state.started is None:
        raise UsageError(f"run {folder.id} has no event on record")
    return ("\n".join(page(state, folder.id, full=True, owned=is_owned(folder.lock))) + "\n").encode("utf-8", "replace")


_EXPORTS: Mapping[str, _Export] = {
    "jsonl": _Export("application/x-ndjson", _events),
    "md": _Export("text/markdown", _page),
}
