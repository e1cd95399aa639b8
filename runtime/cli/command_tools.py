"""`elenco tools`: the tools there are, or what one agent really gets and what becomes of its calls."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from runtime.errors import UsageError
from runtime.known import OFFLINE, TOOL_NAMES, ModelFlags
from runtime.outline import RunOptions, outline, refuse_faulty
from runtime.plugins import plugins
from runtime.workplace import check_workspace

from .table import columns
from .visible import one_line


def run(arguments: argparse.Namespace) -> int:
    """Print the list. Raises UsageError, DefinitionError."""
    check_workspace(Path(arguments.workspace or "."))
    options = RunOptions(
        agent=arguments.agent or "coordinator",
        task="-",
        model=ModelFlags(OFFLINE),  # no key is needed to look at tools
        workspace=Path(arguments.workspace or "."),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        mode=arguments.mode or "default",
    )
    if arguments.agent is None:
        for flag in ("allow", "ask", "deny", "yes", "mode"):
            if getattr(arguments, flag):
                raise UsageError(f"--{flag} needs an agent whose calls it is about: elenco tools --agent NAME")
        return _all(arguments.json)
    seen = outline(options, tools=TOOL_NAMES)
    from runtime.tools.registry import built_in

    from .granted import below, data_of, granted_to, rows_of

    root, cast = seen.root, seen.cast
    refuse_faulty(cast, root, tools=[tool.name for tool in (*built_in(), *plugins().tools)])
    chains = [(root,), *below(root, cast)]
    told = [(chain, list(granted_to(chain[-1], cast, seen.rules, options, chain[:-1]))) for chain in chains]
    if arguments.json:
        for chain, granted in told:
            path = {} if len(chain) == 1 else {"actor": "/".join(each.name for each in chain)}
            for each in granted:
                print(json.dumps({**data_of(each), **path}))
        return 0
    for chain, granted in told:
        who = chain[-1]
        what = "no other is offered to its model" if len(chain) == 1 else "under all that bind those above it"
        name = " > ".join(each.name for each in chain)
        print(f"{'' if len(chain) == 1 else chr(10)}{name}   {one_line(who.path, 80)}   {len(granted)} tools, {what}\n")
        rows = [("TOOL", "EFFECTS", "A CALL", "BECAUSE"), *(row for each in granted for row in rows_of(each))]
        print(columns(rows, 90))
    if seen.notice:
        print(f"! {seen.notice}", file=sys.stderr)
    print("a child stays under every ask and deny of those above it; deny > ask > allow", file=sys.stderr)
    return 0


def _all(as_json: bool) -> int:
    from runtime.policy.decision import decide
    from runtime.policy.rules import Permissions
    from runtime.tools.registry import built_in

    from .granted import sample, verb

    tools = (*built_in(), *plugins().tools)
    if as_json:
        for tool in tools:
            print(json.dumps({"name": tool.name, "effects": tool.effects, "description": tool.description}))
        return 0
    first = [
        (tool.name, tool.effects, verb(decide(sample(tool), Permissions())), _headline(tool.description))
        for tool in tools
    ]
    more = [
        ("delegate_to_AGENT", "idempotent", "runs", "Give a declared subagent a task and wait for its report."),
        ("start_AGENT", "idempotent", "runs", "The same in the background; await_agent waits for it."),
        (
            "message_AGENT",
            "idempotent",
            "runs",
            "Tell an agent at work beside it something (talks_to).",
        ),
        ("use_skill", "none", "runs", "Load a skill that the agent's file names."),
        ("read_result", "none", "runs", "Read more of a result that was too long to show in full."),
    ]
    print(columns([("TOOL", "EFFECTS", "A CALL", "WHAT IT DOES"), *first, *more], last_width=90))
    print("what an agent really gets: elenco tools --agent NAME", file=sys.stderr)
    return 0


def _headline(description: str) -> str:
    return one_line(description.split("\n\n", 1)[0], 200)
