"""`elenco mcp`: the servers that are named here, their tools and prompts, a call by hand, signing in."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from runtime.errors import ElencoError, UsageError, did_you_mean
from runtime.journal.elsewhere import in_state
from runtime.mcps.entry import Entry
from runtime.mcps.settings import JSON_FILE, servers_of
from runtime.outline import settings_of
from runtime.workplace import check_workspace

from .table import columns
from .visible import one_line, visible

if TYPE_CHECKING:
    from runtime.mcps.fleet import Fleet
    from runtime.mcps.link import Link
    from runtime.mcps.sign_in import Browser

SETTINGS = "elenco.yaml"
PATIENCE = 330.0
"""Seconds for a connection during which a person signs in."""

Action: TypeAlias = Callable[[argparse.Namespace, Mapping[str, Entry]], int]


def run(arguments: argparse.Namespace) -> int:
    """Do one of ACTIONS. Raises UsageError, DefinitionError; a server that cannot be reached is exit code 1."""
    word = arguments.words[0] if arguments.words else "list"
    action = ACTIONS.get(word)
    if action is None:
        raise UsageError(f"unknown: elenco mcp {one_line(word, 40)}{did_you_mean(word, ACTIONS)}  (elenco mcp --help)")
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    servers = servers_of(workspace, *settings_of(workspace))
    for fault in servers.warnings if word == "list" else ():
        print(fault, file=sys.stderr)
    return action(arguments, servers.entries)


def _list(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    _words(arguments, 1, "elenco mcp")
    if arguments.json:
        used = _used_by(Path(arguments.workspace or "."))
        for entry in servers.values():
            print(
                json.dumps(
                    {
                        "name": entry.name,
                        "type": entry.transport,
                        "disabled": entry.disabled,
                        "agents": list(used.get(entry.name, ())),
                        "at": entry.place,
                        "how": entry.reached,
                    }
                )
            )
        return 0
    if not servers:
        print("no MCP server is named here: mcpServers in elenco.yaml, .mcp.json or the user's config.yaml name them")
        return 0
    used = _used_by(Path(arguments.workspace or "."))
    rows = [
        (
            one_line(entry.name, 30),
            "disabled" if entry.disabled else entry.transport,
            ", ".join(used.get(entry.name, ())) or "-",
            one_line(entry.place, 60),
            one_line(entry.reached, 90),
        )
        for entry in servers.values()
    ]
    print(columns([("SERVER", "TYPE", "AGENTS", "NAMED IN", "HOW"), *rows], last_width=90))
    print("its tools: elenco mcp tools NAME   an agent gets them by `mcps: [NAME]` in its file", file=sys.stderr)
    return 0


def _used_by(workspace: Path) -> Mapping[str, list[str]]:
    from runtime.cast import find

    used: dict[str, list[str]] = {}
    for member in find(workspace).members.values():
        for name in member.definition.mcps if member.definition is not None else ():
            used.setdefault(name, []).append(member.name)
    return used


def _tools(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    names = arguments.words[1:] or [name for name, entry in servers.items() if not entry.disabled]

    async def show(fleet: Fleet) -> int:
        await fleet.ready(names)
        rows: list[tuple[str, ...]] = []
        for name in names:
            link = fleet.links[name]
            if why := link.outage():
                print(f"error: {visible(why)}", file=sys.stderr)
            for tool, offer in zip(fleet.tools_of([name]), link.offers, strict=False):
                if arguments.json:
                    print(
                        json.dumps(
                            {
                                "server": name,
                                "tool": offer.name,
                                "name": tool.name,
                                "effects": tool.effects,
                                "description": offer.description,
                                "parameters": offer.parameters,
                            }
                        )
                    )
                rows.append((tool.name, tool.effects, one_line(offer.description.strip().split("\n", 1)[0], 200)))
        if rows and not arguments.json:
            print(columns([("TOOL", "EFFECTS", "WHAT IT DOES"), *rows], last_width=100))
        return int(any(fleet.links[name].outage() for name in names))

    return with_servers(arguments, {name: _entry(servers, name) for name in names}, show)


def _test(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    entry = _entry(servers, _words(arguments, 2, "elenco mcp test NAME")[1])

    async def show(fleet: Fleet) -> int:
        import trio

        started = trio.current_time()
        link = await _reached(fleet, entry.name)
        client = link.client()
        about = client.server_info
        found = {
            "server": entry.name,
            "is": f"{about.name} {about.version}" if about is not None else "",
            "protocol": client.protocol_version,
            "tools": [offer.name for offer in link.offers],
            "seconds": round(trio.current_time() - started, 3),
        }
        if arguments.json:
            print(json.dumps(found))
        else:
            what = f" {visible(str(found['is']))}," if found["is"] else ""
            names = ", ".join(offer.name for offer in link.offers)
            tools = f"{len(link.offers)} tools: {visible(names)}" if names else "no tools"
            print(f"{entry.name}:{what} protocol {found['protocol']}, {found['seconds']:.1f} s, {tools}")
        return 0

    return with_servers(arguments, {entry.name: entry}, show)


def _call(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    usage = 'elenco mcp call NAME TOOL \'{"key": "value"}\''
    _, name, tool, *rest = _words(arguments, 4 if len(arguments.words) > 3 else 3, usage)
    entry = _entry(servers, name)
    given = _json_object(rest[0] if rest else "{}", usage)

    async def show(fleet: Fleet) -> int:
        from runtime.messages import ToolCall
        from runtime.policy.paths import Workspace
        from runtime.tools import ToolBox, ToolContext

        link = await _reached(fleet, name)
        tools = {offer.name: each for offer, each in zip(link.offers, fleet.tools_of([name]), strict=False)}
        found = tools.get(tool) or next((each for each in tools.values() if each.name == tool), None)
        if found is None:
            raise UsageError(f"{name} has no tool '{tool}'{did_you_mean(tool, tools)}  (elenco mcp tools {name})")
        workspace = Workspace(Path(arguments.workspace or "."))
        try:
            call = ToolCall("c1", found.name, given)
            result = await ToolBox([found]).run(call, ToolContext(workspace, "c1", output=_tell))
        finally:
            workspace.close()
        if arguments.json:
            print(json.dumps({"result": result.content, "is_error": result.is_error, "images": len(result.images)}))
        else:
            print(visible(result.content))
            for image in result.images:
                print(f"[an image of type {image.media_type}]")
        return int(result.is_error)

    return with_servers(arguments, {name: entry}, show)


def _tell(text: str) -> None:
    print(visible(text.rstrip()), file=sys.stderr)


def _json_object(written: str, usage: str) -> dict[str, Any]:
    try:
        given: Any = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the arguments are no JSON: {error}: {usage}") from None
    if not isinstance(given, dict):
        raise UsageError(f"the arguments must be one JSON object: {usage}")
    return cast("dict[str, Any]", given)


def _login(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    from runtime.journal.folder import open_state
    from runtime.mcps.sign_in import forget

    entry = _over_http(servers, _words(arguments, 2, "elenco mcp login NAME")[1])
    state = open_state(arguments.state).path
    forget(entry, state)
    entry = attrs.evolve(entry, startup_timeout=PATIENCE)

    async def show(fleet: Fleet) -> int:
        await _reached(fleet, entry.name)
        print(f"signed in to {entry.name}; runs use it from now on", file=sys.stderr)
        return 0

    async def browser(url: str) -> str | None:
        import trio

        await trio.lowlevel.checkpoint()
        print(f"open this address to sign in to {entry.name}; it leads back here:\n{visible(url)}", file=sys.stderr)
        return None

    return with_servers(arguments, {entry.name: entry}, show, browser)


def _logout(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    from runtime.journal.folder import open_state
    from runtime.mcps.sign_in import forget

    entry = _over_http(servers, _words(arguments, 2, "elenco mcp logout NAME")[1])
    was = forget(entry, open_state(arguments.state).path)
    print(f"{entry.name}: {'forgot the sign-in' if was else 'nobody was signed in'}", file=sys.stderr)
    return 0


def _enable(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    del servers
    return _switch(arguments, on=True)


def _disable(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    del servers
    return _switch(arguments, on=False)


def _switch(arguments: argparse.Namespace, *, on: bool) -> int:
    import secrets

    import trio

    from runtime.journal.folder import open_state
    from runtime.watch.commands import SwitchServer
    from runtime.watch.unattended import deliver

    from .which import find, refuse_unbegun

    word = "enable" if on else "disable"
    usage = f"elenco mcp {word} NAME --run RUN"
    _, server = _words(arguments, 2, usage)
    if arguments.run is None:
        raise UsageError(f"write {usage}; for a new run: elenco run {'--mcp' if on else '--no-mcp'} {server} …")
    folder = find(open_state(arguments.state), arguments.run)
    refuse_unbegun(folder)
    command = SwitchServer(server=server, on=on, by="you")
    answer = trio.run(deliver, folder, command, lambda: secrets.token_hex(3))
    then = f"   then: elenco resume {folder.id}{in_state()}"
    later = then if "recorded" in answer else "; agents see it at their next step"
    print(f"{server} is {word}d in run {folder.id}{later}", file=sys.stderr)
    return 0


def _conform(arguments: argparse.Namespace, servers: Mapping[str, Entry]) -> int:
    from .conform import Agreeable, calls_for, entry_for, visit

    del servers
    entry = entry_for(_words(arguments, 2, "elenco mcp conform URL")[1])

    async def show(fleet: Fleet) -> int:
        from runtime.policy.paths import Workspace
        from runtime.tools import ToolContext, ToolError

        workspace = Workspace(Path("."))
        fleet.peer = lambda actor, call: Agreeable()
        link = await _reached(fleet, entry.name)
        offers = {offer.name: offer for offer in link.offers}
        for name, given in calls_for(link.offers):
            if name in offers:
                try:
                    output = await link.call(offers[name], given, ToolContext(workspace))
                    print(f"{name}: {one_line(output.text, 200)}", file=sys.stderr)
                except ToolError as error:
                    print(f"{name}: {one_line(str(error), 200)}", file=sys.stderr)
        workspace.close()
        return 0

    return with_servers(arguments, {entry.name: entry}, show, visit, kept=False)


def _over_http(servers: Mapping[str, Entry], name: str) -> Entry:
    entry = _entry(servers, name)
    if entry.transport not in ("http", "sse"):
        raise UsageError(f"{name} is reached over {entry.transport}: there is nothing to sign in to")
    return entry


ACTIONS: Mapping[str, Action] = {
    "list": _list,
    "tools": _tools,
    "test": _test,
    "call": _call,
    "login": _login,
    "logout": _logout,
    "enable": _enable,
    "disable": _disable,
    "conform": _conform,
}


def _words(arguments: argparse.Namespace, count: int, usage: str) -> list[str]:
    words: list[str] = arguments.words
    if len(words) > count or (len(words) < count and count > 1):
        raise UsageError(f"write {usage}")
    return words


def _entry(servers: Mapping[str, Entry], name: str) -> Entry:
    entry = servers.get(name)
    if entry is None:
        raise UsageError(f"no MCP server is called '{one_line(name, 40)}'{did_you_mean(name, servers)}  (elenco mcp)")
    return entry


async def _reached(fleet: Fleet, name: str) -> Link:
    """The link of a server that is there. Raises ElencoError."""
    await fleet.ready([name])
    link = fleet.links[name]
    if why := link.outage():
        raise ElencoError(why)
    return link


def with_servers(
    arguments: argparse.Namespace,
    servers: Mapping[str, Entry],
    work: Callable[[Fleet], Awaitable[int]],
    browser: Browser | None = None,
    *,
    kept: bool = True,
) -> int:
    """Do some work with servers at hand, outside of any run."""
    import trio

    _check_trust(Path(arguments.workspace or "."), servers)
    folder = os.path.realpath(arguments.workspace or ".")
    state = None
    if kept and any(entry.transport in ("http", "sse") for entry in servers.values()):
        from runtime.journal.folder import open_state

        state = open_state(arguments.state).path

    async def main() -> int:
        async with opened(folder, servers, state, browser) as fleet:
            return await work(fleet)

    try:
        return trio.run(main)
    except BaseExceptionGroup as group:
        from runtime.errors import first_of

        if (error := first_of(group, ElencoError)) is not None:
            raise error from None
        raise


def _check_trust(workspace: Path, servers: Mapping[str, Entry]) -> None:
    """Raises UsageError where the workspace names a server and nobody has said that it counts."""
    from runtime.trust import is_trusted

    named = [entry for entry in servers.values() if entry.path in (SETTINGS, JSON_FILE)]
    if named and not is_trusted(workspace):
        names = ", ".join(entry.name for entry in named)
        raise UsageError(
            f"{names} would be started as {named[0].path} says, which you do not trust yet  (elenco trust)"
        )


@asynccontextmanager
async def opened(
    folder: str, servers: Mapping[str, Entry], state: Path | None, browser: Browser | None
) -> AsyncGenerator[Fleet]:
    """A fleet of its own for one command."""
    from runtime.events import Event, Warned
    from runtime.mcps.fleet import Fleet
    from runtime.mcps.session import Surroundings
    from runtime.reaper import open_reaper

    def told(event: Event) -> None:
        if isinstance(event, Warned):
            print(visible(event.text), file=sys.stderr)

    async with open_reaper() as reaper:
        fleet = Fleet(servers, Surroundings(reaper, folder, state, browser), told, reserved=reserved())
        async with fleet.open():
            yield fleet


def reserved() -> frozenset[str]:
    """The names of built-in tools, which tools of servers do not take."""
    from runtime.known import TOOL_NAMES

    return frozenset((*TOOL_NAMES, "read_result", "await_agent", "use_skill"))
