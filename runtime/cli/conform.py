"""`elenco mcp conform URL`: what the public conformance runner spawns. It connects, lists, and calls every tool once.

The runner's scenario says in the environment what else it needs: credentials, the calls to make, the protocol.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from runtime.mcps.entry import Entry, Mode, OAuth
from runtime.tools import ToolError

if TYPE_CHECKING:
    from runtime.mcps.offer import Offer
    from runtime.sampling import Sample, SampleRequest

CONTEXT = "MCP_CONFORMANCE_CONTEXT"
VERSION = "MCP_CONFORMANCE_PROTOCOL_VERSION"
METADATA_URL = "https://conformance-test.local/client-metadata.json"
MODERN = "2026-07-28"
ECHO = "schema"
"""A tool with an argument of this name wants the schema of another one, as it was listed."""


def entry_for(url: str) -> Entry:
    """The server of a scenario."""
    context = _context()
    version = os.environ.get(VERSION, "")
    mode: Mode = "auto" if version in ("", MODERN) else "legacy"
    oauth = OAuth(
        client_id=str(context.get("client_id") or ""),
        client_secret=str(context.get("client_secret") or ""),
        client_metadata_url="" if context.get("client_id") else METADATA_URL,
    )
    return Entry("it", "http", url=url, mode=mode, oauth=oauth, timeout=20, startup_timeout=25, sampling="allow")


def calls_for(offers: Sequence[Offer]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The calls a scenario asks for, else one of each tool."""
    wanted: Any = _context().get("toolCalls")
    if isinstance(wanted, list):
        for each in cast("list[dict[str, Any]]", wanted):
            yield str(each.get("name")), dict(each.get("arguments") or {})
        return
    for offer in offers:
        yield offer.name, _sample_arguments(offer, offers)


def _context() -> Mapping[str, Any]:
    try:
        found: Any = json.loads(os.environ.get(CONTEXT) or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _sample_arguments(offer: Offer, offers: Sequence[Offer]) -> dict[str, Any]:
    properties: Mapping[str, Any] = offer.parameters.get("properties") or {}
    samples: Mapping[str, Any] = {
        "string": "text",
        "number": 5,
        "integer": 5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    found: dict[str, Any] = {}
    for name, node in properties.items():
        others = [other for other in offers if other.name != offer.name]
        if name == ECHO and others:
            found[name] = others[0].parameters
        else:
            kind: Any = cast("dict[str, Any]", node).get("type") if isinstance(node, dict) else None
            found[name] = samples.get(kind if isinstance(kind, str) else "string", "text")
    return found


class Agreeable:
    """Behind every call somebody who takes what is offered."""

    async def ask(self, text: str, options: Sequence[str] = ()) -> str:
        """The first option, else nothing: what a form says by itself."""
        del text
        return options[0] if options else ""

    async def sample(self, request: SampleRequest) -> Sample:
        """There is no model."""
        raise ToolError("there is no model here")


async def visit(url: str) -> str | None:
    """Where an authorization server leads to that asks nobody. A cancelled call leaves nothing behind."""
    import httpx

    async with httpx.AsyncClient() as client:
        response = await client.get(url)
    location: str | None = response.headers.get("location")
    return location
