"""`elenco limits`: what a run has used of its limits, and new ones while it works, or for when it goes on."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from typing import Any

from runtime.errors import UsageError, did_you_mean
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import open_state
from runtime.limits.limits import LIMIT_NAMES, amount_text
from runtime.messages import JsonObject

from .table import columns
from .which import find, refuse_unbegun

HEAD = ("ACTOR", "LIMIT", "USED", "OF", "SET BY")


def run(arguments: argparse.Namespace) -> int:
    """Change limits, or show them. Raises UsageError, JournalError, ElencoError."""
    changes: dict[str, str] = {
        name: value for name in LIMIT_NAMES if (value := getattr(arguments, name, None)) is not None
    }
    folder = find(open_state(arguments.state, to_look=not changes), arguments.run)
    refuse_unbegun(folder)
    import trio

    from runtime.watch.commands import ChangeLimits, Status
    from runtime.watch.unattended import deliver

    command = ChangeLimits(limits=changes, actor=arguments.actor, by="you") if changes else Status()
    answer = trio.run(deliver, folder, command, lambda: secrets.token_hex(3))
    if changes:
        now = ", ".join(
            f"{name} {amount_text(name, answer['limits'][name])}" for name in LIMIT_NAMES if name in changes
        )
        later = f"   then: elenco resume {folder.id}{in_state()}" if "recorded" in answer else ""
        if arguments.json:
            print(json.dumps({"actor": answer["actor"], "limits": answer["limits"], "recorded": "recorded" in answer}))
        print(f"{arguments.actor or 'the root agent'}: {now}{later}", file=sys.stderr)
        return 0
    budgets = _budgets(answer, arguments.actor)
    if arguments.json:
        print(json.dumps(budgets))
    else:
        print(columns([HEAD, *map(_row, budgets)]))
    return 0


def _budgets(state: JsonObject, actor: str | None) -> list[dict[str, Any]]:
    """Every actor's own limits, or one actor's own and inherited ones."""
    actors: dict[str, Any] = {each["path"]: each for each in state["actors"]}
    if actor is None:
        return [each for path, found in actors.items() for each in found["budgets"] if each["scope"] == path]
    if actor not in actors:
        raise UsageError(f"no actor '{actor}'{did_you_mean(actor, actors)}; it has {', '.join(actors) or 'none yet'}")
    return list(actors[actor]["budgets"])


def _row(each: dict[str, Any]) -> tuple[str, str, str, str, str]:
    name, used = each["limit"], each["used"]
    spent = "unknown" if used is None else amount_text(name, used)
    return each["scope"], name, spent, amount_text(name, each["of"]), each["source"]
