"""`elenco runs`: every run of this machine, newest first, and what to type next."""

from __future__ import annotations

import argparse
import json
import sys
import time

import attrs

from runtime.errors import NewerRecord, UsageError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import State, open_state
from runtime.journal.read import NEVER_BEGAN, RunInfo, runs
from runtime.journal.soundness import examine
from runtime.known import OFFLINE
from runtime.limits.limits import count_text

from .advice import ago, decide_command
from .faults import count_of
from .table import columns
from .visible import one_line

HEAD = ("RUN", "STATE", "AGENT", "STEPS", "TOKENS", "COST", "WHEN", "TASK")


def run(arguments: argparse.Namespace) -> int:
    """Print the list; with --check, 1 if a record is damaged. Raises JournalError for an index that cannot be read."""
    if arguments.check and arguments.prune:
        raise UsageError("--check looks and --prune removes: one of them")
    if not arguments.prune:
        _refuse_prune_flags(arguments)
    state = open_state(arguments.state, to_look=not (arguments.prune and arguments.yes))
    if arguments.prune:
        from .prune import prune

        return prune(arguments, state)
    found = runs(state)
    if arguments.check:
        found = [_checked(state, each) for each in found]
    damaged = [each for each in found if _is_damaged(each)]
    newer = [each for each in found if each.status == "newer"]
    code = int(arguments.check and bool(damaged or newer))
    if arguments.json:
        for each in found:
            told = {"state": each.status, "waits_for": list(each.waits_for), "problem": each.problem}
            print(json.dumps({**attrs.asdict(each.row), **told}))
        return code
    if not found:
        print(f'no runs yet: elenco run "What does this project do?"{in_state()}', file=sys.stderr)
        return 0
    now = time.time()
    print(columns([HEAD, *(_row(each, now) for each in found)], last_width=48))
    if arguments.check:
        for each in damaged:
            print(f"{each.row.id}: {one_line(each.problem, 500)}", file=sys.stderr)
        read = len(found) - len(newer)
        print(f"read all of {count_of(read, 'run')}: {len(damaged) or 'none'} damaged", file=sys.stderr)
    if newer:
        print(f"a newer Elenco wrote {', '.join(each.row.id for each in newer)}: update Elenco", file=sys.stderr)
    if arguments.check:
        return code
    each_with = f"   each with{at}" if (at := in_state()) else ""
    print(f"next: elenco {_hint(found)}{each_with}", file=sys.stderr)
    return 0


def _refuse_prune_flags(arguments: argparse.Namespace) -> None:
    given = {"--older-than": arguments.older_than, "--keep": arguments.keep, "--yes": arguments.yes or None}
    for flag in (flag for flag, value in given.items() if value is not None):
        raise UsageError(
            f"{flag} belongs to --prune: elenco runs --prune [--older-than DAYS] [--keep N] lists what would go, "
            "and removes it with --yes"
        )


def _checked(state: State, each: RunInfo) -> RunInfo:
    if each.problem:
        return each
    try:
        problem = examine(state.run(each.row.id))
    except NewerRecord as error:
        return attrs.evolve(each, status="newer", problem=str(error))
    if not problem:
        return each
    return attrs.evolve(each, status="damaged", problem=problem)


def _is_damaged(each: RunInfo) -> bool:
    return each.status == "damaged" and each.problem != NEVER_BEGAN


def state_text(each: RunInfo) -> str:
    """`stopped: loop`, `waiting: a1`, `completed`."""
    if each.problem == NEVER_BEGAN:
        return "never began"
    if each.status == "newer":
        return "of a newer Elenco"
    if each.waits_for:
        return f"waiting: {', '.join(each.waits_for)}"
    if each.problem:
        return f"damaged: {one_line(each.problem, 60)}"
    return f"{each.status}: {each.row.reason}" if each.row.reason else each.status


def _row(each: RunInfo, now: float) -> tuple[str, ...]:
    row = each.row
    offline = row.model == OFFLINE
    mark = "~" if row.estimated else ""
    cost = (
        "unknown" if row.cost_usd is None and row.ended else ("-" if not row.cost_usd else f"{mark}${row.cost_usd:.2f}")
    )
    return (
        f"{row.id} {one_line(row.name, 40)}" if row.name else row.id,
        state_text(each),
        one_line(row.agent, 64),
        f"{row.steps}/{row.max_steps}" if row.max_steps else str(row.steps),
        "-" if offline or not row.tokens else f"{mark}{count_text(row.tokens)}",
        "-" if offline else cost,
        ago(row.ended or row.started, now),
        one_line(row.task, 200),
    )


def _hint(found: list[RunInfo]) -> str:
    waiting = next((each for each in found if each.waits_for), None)
    words: list[str] = []
    if waiting is not None:
        decide = decide_command(waiting.row.id, waiting.waits_for[0]).partition(" | ")[0]
        words.append(decide.removeprefix("elenco ").replace(in_state(), ""))
    left = next((each for each in found if each.status in ("interrupted", "forked")), None)
    if left is not None:
        words.append(f"resume {left.row.id}")
    elif any(each.status in ("waiting", "stopped", "failed", "cancelled") for each in found):
        words.append("resume RUN")
    words += ["runs --check"] if any(map(_is_damaged, found)) else []
    words += ["runs --prune"] if any(each.problem == NEVER_BEGAN for each in found) else []
    words.append("show RUN")
    words += ["tail RUN --follow"] if any(each.owned for each in found) else []
    return " · ".join(words)
