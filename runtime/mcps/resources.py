"""Resources of a server as a tool beside its own: read by their URI, or listed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from runtime.messages import JsonObject
from runtime.tools import Output, ToolError

from .content import output_of
from .offer import Offer

if TYPE_CHECKING:
    from mcp import Client

Send: TypeAlias = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[JsonObject]]
"""Makes one request of the server, by its name in messages, as a part of the call. Raises ToolError."""

MOST_PAGES = 20
RESOURCES = Offer(
    "read_resource",
    "Read a resource of this server by its URI; without a URI, list its resources.",
    {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The URI, as the list or a result has it."}},
    },
    read_only=True,
    idempotent=True,
    resources=True,
)


async def read(client: Client, send: Send, uri: str) -> Output:
    """A resource, or the list of what there is. Raises ToolError."""
    if uri:
        found = await send(uri, lambda: client.read_resource(uri))
        return output_of({"content": [{"type": "resource", "resource": each} for each in found.get("contents", ())]})
    resources = await _all(send, "resources", lambda cursor: client.list_resources(cursor=cursor))
    try:
        templates = await _all(send, "resourceTemplates", lambda cursor: client.list_resource_templates(cursor=cursor))
    except ToolError:
        templates = []  # not every server has them
    lines = [*(_line(each, "uri") for each in resources), *(_line(each, "uriTemplate") for each in templates)]
    return output_of({"content": [{"type": "text", "text": "\n".join(lines) or "there are no resources"}]})


async def _all(send: Send, key: str, page: Callable[[str | None], Awaitable[Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    seen: set[str | None] = set()
    cursor: str | None = None
    while cursor not in seen and len(seen) < MOST_PAGES:
        seen.add(cursor)
        result = await send("its resources", partial(page, cursor))
        found.extend(result.get(key, ()))
        cursor = result.get("nextCursor")
    return found


def _line(each: Mapping[str, Any], key: str) -> str:
    about = ", ".join(str(each[name]) for name in ("title", "name", "description", "mimeType") if each.get(name))
    return f"{each.get(key)}   {' '.join(about.split())[:300]}".rstrip()
