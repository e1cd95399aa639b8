"""MCP over HTTP: a client of bounded appetite, with the entry's headers and sign-in, for the SDK's own transports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import trio

from .entry import Entry
from .frames import LONGEST_LINE

if TYPE_CHECKING:
    import httpx2

    from .session import Surroundings
    from .transports import Streams

CONNECT = 30.0
"""Seconds to reach a server and to send it something; how long it may take to answer is for the call to say."""


@asynccontextmanager
async def http(entry: Entry, around: Surroundings) -> AsyncGenerator[Streams]:
    """Streamable HTTP. The session on the server is ended with the block, as far as the time for closing allows."""
    from mcp.client.streamable_http import streamable_http_client

    async with _client(entry, around) as client:
        async with streamable_http_client(entry.url, http_client=client, max_sse_event_size=LONGEST_LINE) as streams:
            yield cast("Streams", streams)


@asynccontextmanager
async def sse(entry: Entry, around: Surroundings) -> AsyncGenerator[Streams]:
    """The older transport: one stream of events to us, a request for each message to the server.

    The SDK's own takes no event above 1 MiB and dies of a larger one.
    """
    import anyio
    import httpx2
    from mcp import types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    endpoint: list[httpx2.URL] = []
    known = trio.Event()

    async def read(response: httpx2.Response) -> None:
        async with to_session:
            async for event in httpx2.EventSource(response, LONGEST_LINE):
                if event.event == "endpoint":
                    endpoint.append(_same_origin(response.request.url, event.data))
                    known.set()
                elif event.event == "message" and event.data:
                    try:
                        message = types.jsonrpc_message_adapter.validate_json(event.data, by_name=False)
                    except ValidationError:
                        continue
                    await to_session.send(SessionMessage(message))
        raise OSError(None, "it closed the stream of its messages")

    async def write(client: httpx2.AsyncClient) -> None:
        async with from_session:
            async for message in from_session:
                body = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                response = await client.post(endpoint[0], json=body)
                response.raise_for_status()

    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    async with _client(entry, around) as client:
        async with client.stream("GET", entry.url, headers=headers) as response, trio.open_nursery() as nursery:
            response.raise_for_status()
            to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
            try:
                nursery.start_soon(read, response)
                await known.wait()
                nursery.start_soon(write, client)
                yield from_server, to_server
            finally:
                from_server.close()
                to_server.close()
                from_session.close()
                nursery.cancel_scope.cancel()


def _same_origin(asked: httpx2.URL, endpoint: str) -> httpx2.URL:
    found = asked.join(endpoint)
    if (found.scheme, found.host, found.port) != (asked.scheme, asked.host, asked.port):
        raise OSError(None, f"it wants its messages at another server: {found}")
    return found


def _client(entry: Entry, around: Surroundings) -> httpx2.AsyncClient:
    import httpx2

    async def bound(response: httpx2.Response) -> None:
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _bounded(cast("httpx2.AsyncByteStream", response.stream))

    from .sign_in import sign_in

    return httpx2.AsyncClient(
        headers=dict(entry.headers),
        auth=sign_in(entry, around.state, around.browser),
        timeout=httpx2.Timeout(CONNECT, read=None),
        event_hooks={"response": [bound]},
    )


def _bounded(inner: httpx2.AsyncByteStream) -> httpx2.AsyncByteStream:
    """A body that ends in an error when it is longer than a line over pipes may be."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in inner:
                size += len(piece)
                if size > LONGEST_LINE:
                    raise httpx2.StreamError(f"the answer is longer than the {LONGEST_LINE} bytes that are taken")
                yield piece

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
