"""The tools of servers as an agent's own: named without doubt, under the rules of the run, honest about effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from runtime.policy.subjects import McpSubject
from runtime.tools import Output, Tool, ToolContext
from runtime.wire.names import exposed_name

from .link import Link
from .offer import Offer

MOST_DESCRIPTION = 4000


def tools_of(links: Iterable[Link], reserved: Collection[str]) -> list[Tool]:
    """The tools of these servers, in their order; a name that another one has is not taken twice."""
    found: dict[str, Tool] = {}
    for link in links:
        for offer in link.offers:
            name = exposed_name(link.name, offer.name, reserved)
            if name not in found:
                found[name] = tool_for(link, offer, name)
    return list(found.values())


def tool_for(link: Link, offer: Offer, name: str) -> Tool:
    """One tool of one server, called `name` here."""

    async def run(ctx: ToolContext, /, **arguments: Any) -> Output:
        return await link.call(offer, arguments, ctx)

    effects = offer.effects(trusted=link.entry.trust)
    subject = McpSubject(name, link.name, offer.name, changes=effects != "none")
    about = offer.description.strip() or f"{offer.name} of the MCP server {link.name}."
    return Tool(
        name=name,
        description=about[:MOST_DESCRIPTION],
        parameters=offer.parameters,
        run=run,
        effects=effects,
        timeout=None,  # the call's own deadline stands still while a human is asked
        subject=lambda _: subject,
    )
