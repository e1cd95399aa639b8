"""`elenco agents`: who can be found, from where, and with which tools."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from runtime.cast import Cast, Member, find
from runtime.workplace import check_workspace

from .faults import count_of
from .table import columns
from .visible import one_line

HEAD = ("AGENT", "FROM", "MODEL", "TOOLS", "SUBAGENTS", "DESCRIPTION")


def run(arguments: argparse.Namespace) -> int:
    """Print the cast; what cannot be used is told, not left out. Raises UsageError for a workspace that is none."""
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    cast = find(workspace)
    if arguments.json:
        for member in cast.members.values():
            print(json.dumps(_data(member)))
        return 0
    print(columns([HEAD, *(_row(member) for member in cast.members.values())], last_width=60))
    for text in _remarks(cast):
        print(text, file=sys.stderr)
    return 0


def _row(member: Member) -> tuple[str, ...]:
    definition = member.definition
    if definition is None:
        faults = f"✗ {count_of(len(member.faults), 'fault')}: elenco check"
        return (one_line(member.name, 64), one_line(member.shown, 50), "-", "-", "-", faults)
    return (
        definition.name,
        one_line(member.shown, 50),
        one_line(definition.model or "the run's", 40),
        str(len(definition.tools)),
        ", ".join(definition.subagents) or "-",
        one_line(definition.description, 200),
    )


def _data(member: Member) -> dict[str, object]:
    definition = member.definition
    found: dict[str, object] = {
        "name": member.name,
        "path": str(member.path),
        "from": member.origin,
        "faults": [str(fault) for fault in member.faults],
    }
    if definition is not None:
        found |= {
            "description": definition.description,
            "model": definition.model,
            "tools": list(definition.tools),
            "subagents": list(definition.subagents),
            "talks_to": list(definition.talks_to),
        }
    return found


def _remarks(cast: Cast) -> list[str]:
    found = [
        f"not used: {one_line(member.shown, 400)}, for {one_line(cast.members[member.name].shown, 400)} comes first"
        for member in cast.shadowed
        if member.path.resolve() != cast.members[member.name].path.resolve()
    ]
    found += [f"not used: {one_line(member.shown, 400)} is switched off" for member in cast.disabled]
    return [*found, "next: elenco tools --agent NAME   elenco check   elenco init"]
