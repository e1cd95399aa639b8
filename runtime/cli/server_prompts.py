"""Prompts of MCP servers in a chat: `/SERVER:PROMPT name=value name=value` becomes what the server makes of it."""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from typing import TYPE_CHECKING

from runtime.errors import ElencoError, UsageError
from runtime.mcps.content import prompt_text
from runtime.outline import RunOptions, outline

from .visible import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.mcps.entry import Entry
    from runtime.mcps.fleet import Fleet

_LINE = re.compile(r"/(?P<server>[^\s:/]+):(?P<prompt>\S+)(?P<rest>\s.*)?", re.DOTALL)


def is_prompt(line: str) -> bool:
    """Whether a line stands for a server's prompt."""
    return _LINE.fullmatch(line) is not None


def filled_in(line: str, options: RunOptions, arguments: argparse.Namespace) -> str:
    """The text a server makes of the line. Raises UsageError, ElencoError: no such server or prompt, or it is down."""
    from .command_mcp import with_servers

    found = _LINE.fullmatch(line)
    assert found is not None
    name, prompt = found["server"], found["prompt"]
    entry = outline(options).servers.get(name)
    if entry is None:
        raise UsageError(f"/{name}:{prompt}: the agent has no MCP server '{name}'  (elenco mcp)")
    given = _given(found["rest"] or "")
    said: list[str] = []

    async def ask(fleet: Fleet) -> int:
        from mcp import MCPError

        await fleet.ready([name])
        link = fleet.links[name]
        if why := link.outage():
            raise ElencoError(why)
        try:
            result = await link.client().get_prompt(prompt, given)
        except MCPError as error:
            raise UsageError(f"/{name}:{prompt}: {error.message}") from None
        said.append(prompt_text(result.model_dump(mode="json", by_alias=True, exclude_none=True)))
        return 0

    with_servers(arguments, {name: entry}, ask)
    return said[0]


def prompts_of(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> list[dict[str, str]]:
    """The prompts that servers offer: how each is typed in a chat, with what, and what it is for. Blocks.

    A server that cannot be reached, or has none, offers none.
    """
    from .command_mcp import with_servers

    found: list[dict[str, str]] = []

    async def ask(fleet: Fleet) -> int:
        from mcp import MCPError

        await fleet.ready(list(servers))
        for name in servers:
            link = fleet.links[name]
            if link.outage():
                continue
            with contextlib.suppress(MCPError):
                for prompt in (await link.client().list_prompts()).prompts:
                    usage = " ".join(f"{each.name}=…" for each in prompt.arguments or ())
                    summary = one_line(prompt.description or f"a prompt of {name}", 80)
                    found.append({"name": f"{name}:{prompt.name}", "usage": one_line(usage, 60), "summary": summary})
        return 0

    with_servers(arguments, servers, ask)
    return found


def _given(rest: str) -> dict[str, str]:
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"{str(error).lower()}: write /SERVER:PROMPT name=value") from None
    wrong = next((word for word in words if "=" not in word), None)
    if wrong is not None:
        raise UsageError(f"'{wrong}': write /SERVER:PROMPT name=value")
    return dict(word.split("=", 1) for word in words)
