"""An SDK session with one server, over whatever it is reached by: opened, mended where servers err, and closed."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from runtime.reaper import Reaper

from .entry import Entry, Unset
from .offer import Offer, mend
from .resources import RESOURCES
from .transports import Unusable, Witness, stdio, tcp

if TYPE_CHECKING:
    from mcp import Client

    from .answers import Answers
    from .sign_in import Browser
    from .transports import Streams

MOST_PAGES = 100
MODERN = "2026-07-28"


@attrs.frozen
class Surroundings:
    """What connections stand on: who starts processes, the folder they work in, where tokens are kept, if anywhere.

    `browser` takes a person to where a server wants a sign-in; without it only an earlier one counts.
    """

    reaper: Reaper
    folder: str
    state: Path | None = None
    browser: Browser | None = None


@asynccontextmanager
async def connected(entry: Entry, around: Surroundings, witness: Witness, answers: Answers) -> AsyncGenerator[Client]:
    """A session while the block lasts. It is entered and left in one task.

    Raises Unusable, and what transports and the SDK raise, in groups.
    """
    from mcp import Client

    quieten()
    try:
        resolved = entry.resolved(os.environ)
    except Unset as unset:
        raise Unusable(f"{unset} ({entry.place})") from None
    streams = _mended(_streams(resolved, around, witness), witness)
    mode = MODERN if entry.mode == "modern" else entry.mode
    client = Client(
        streams,
        mode=mode,
        read_timeout_seconds=entry.startup_timeout,
        client_info=_us(),
        list_roots_callback=answers.roots,
        sampling_callback=answers.sample if entry.sampling != "deny" else None,
        elicitation_callback=answers.elicit,
        message_handler=answers.hear,
    )
    async with client:
        yield client


@asynccontextmanager
async def _streams(entry: Entry, around: Surroundings, witness: Witness) -> AsyncGenerator[Streams]:
    match entry.transport:
        case "stdio":
            async with stdio(entry, around.reaper, around.folder, witness) as streams:
                yield streams
        case "tcp":
            async with tcp(entry, witness) as streams:
                yield streams
        case "http" | "sse":
            from .http import http, sse

            async with (http if entry.transport == "http" else sse)(entry, around) as streams:
                yield streams


@asynccontextmanager
async def _mended(inner: AbstractAsyncContextManager[Streams], witness: Witness) -> AsyncGenerator[Streams]:
    """The same streams, each answer mended on its way."""
    import anyio
    from mcp import types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    def is_tool(value: object) -> bool:
        try:
            types.Tool.model_validate(value, by_name=False)
        except ValidationError:
            return False
        return True

    async with inner as (receive, send):
        to_session, mended = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def relay() -> None:
            async with to_session:
                try:
                    async for item in receive:
                        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
                            witness.left_out.extend(mend(item.message.result, is_tool))
                        await to_session.send(item)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay)
            try:
                yield mended, send
            finally:
                mended.close()
                nursery.cancel_scope.cancel()


async def offers_of(client: Client) -> tuple[Offer, ...]:
    """All tools of a server, page by page, bounded; one that is listed twice counts once. Raises MCPError."""
    if client.server_capabilities.tools is None and client.session.initialize_result is not None:
        return ()  # of a server that was never asked what it can do, nobody knows
    found: dict[str, Offer] = {}
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        for tool in page.tools:
            found.setdefault(tool.name, Offer.of(as_json(tool)))
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    return tuple(found.values())


def with_resources(client: Client, offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """The tools, and one that reads resources where the server has them and no tool of that name."""
    if client.server_capabilities.resources is None or any(offer.name == RESOURCES.name for offer in offers):
        return offers
    return (*offers, RESOURCES)


def as_json(model: Any) -> dict[str, Any]:
    """A value of the SDK as it travels."""
    return dict(model.model_dump(mode="json", by_alias=True, exclude_none=True))


def leaf(error: BaseException) -> str:
    """What went wrong, out of the groups that nurseries make of it."""
    while inside := cast("tuple[BaseException, ...]", getattr(error, "exceptions", ())):
        error = inside[0]
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        return error.strerror
    return str(error) or type(error).__name__


def _us() -> Any:
    from mcp import types

    from runtime.cli.version import VERSION

    return types.Implementation(name="elenco", version=VERSION)


def quieten() -> None:
    """What the SDK logs is told by events and results; its tracebacks are for nobody."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
            logger.propagate = False
