"""`elenco runs`: every run of this machine, newest first, and what to type next."""

from __future__ import annotations

import argparse
import json
import sys
import time

import attrs

from runtime.journal.folder import open_state
from runtime.journal.read import RunInfo, runs
from runtime.known import OFFLINE
from runtime.limits.limits import count_text

from .advice import ago, decide_command
from .table import columns
from .visible import one_line

HEAD = ("RUN", "STATE", "AGENT", "STEPS", "TOKENS", "COST", "WHEN", "TASK")


def run(arguments: argparse.Namespace) -> int:
    """Print the list. Raises JournalError for an index that cannot be read."""
    state = open_state(arguments.state, to_look=not arguments.prune)
    if arguments.prune:
        from .prune import prune

        return prune(arguments, state)
    found = runs(state)
    if arguments.json:
        for each in found:
            print(json.dumps({**attrs.asdict(each.row), "state": each.status, "waits_for": list(each.waits_for)}))
        return 0
    if not found:
        print('no runs yet: elenco run "What does this project do?"', file=sys.stderr)
        return 0
    now = time.time()
    print(columns([HEAD, *(_row(each, now) for each in found)], last_width=48))
    print(f"next: {_hint(found)}", file=sys.stderr)
    return 0


def state_text(each: RunInfo) -> str:
    """`stopped: loop`, `waiting: a1`, `completed`."""
    if each.waits_for:
        return f"waiting: {', '.join(each.waits_for)}"
    if each.problem:
        return f"damaged: {one_line(each.problem, 60)}"
    return f"{each.status}: {each.row.reason}" if each.row.reason else each.status


def _row(each: RunInfo, now: float) -> tuple[str, ...]:
    row = each.row
    offline = row.model == OFFLINE
    cost = "unknown" if row.cost_usd is None and row.ended else ("-" if not row.cost_usd else f"${row.cost_usd:.2f}")
    return (
        f"{row.id} {one_line(row.name, 40)}" if row.name else row.id,
        state_text(each),
        one_line(row.agent, 64),
        f"{row.steps}/{row.max_steps}" if row.max_steps else str(row.steps),
        "-" if offline or not row.tokens else count_text(row.tokens),
        "-" if offline else cost,
        ago(row.ended or row.started, now),
        one_line(row.task, 200),
    )


def _hint(found: list[RunInfo]) -> str:
    waiting = next((each for each in found if each.waits_for), None)
    words: list[str] = []
    if waiting is not None:
        words.append(decide_command(waiting.row.id, waiting.waits_for[0]).partition(" | ")[0])
    interrupted = next((each for each in found if each.status == "interrupted"), None)
    words.append(f"resume {interrupted.row.id}" if interrupted is not None else "resume RUN")
    words += ["show RUN", "tail RUN --follow"]
    return " · ".join(words)
