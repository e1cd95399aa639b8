"""`elenco resume`: go on with a run that was interrupted, waits for a human, or stopped at a limit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runtime.errors import JournalError, UsageError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import open_state
from runtime.journal.lock import is_owned
from runtime.limits.limits import LIMIT_NAMES, LimitName, Limits, amount_text

from .advice import go_on
from .detached import detach, refuse_unread
from .streams import check_output
from .which import find, refuse_unbegun

if TYPE_CHECKING:
    from runtime.journal.state import RunState


def run(arguments: argparse.Namespace) -> int:
    """Take a run over from its record and stay with it to its end, or leave it to a process of its own with --detach.

    Raises ElencoError.
    """
    refuse_unread(arguments)
    if arguments.output:
        check_output(Path(arguments.output))
    state = open_state(arguments.state)
    folder = find(state, arguments.run)
    if is_owned(folder.lock):
        raise JournalError(f"run {folder.id} is live in another process: elenco tail {folder.id} --follow{in_state()}")
    refuse_unbegun(folder)
    from runtime.journal.read import load
    from runtime.resumable import check_resumable, limits_after

    record = load(folder)
    check_resumable(record, folder.id)
    assert record.started is not None
    changes: dict[str, str] = {
        name: value for name in LIMIT_NAMES if (value := getattr(arguments, name, None)) is not None
    }
    limits = limits_after(record, changes)
    from runtime.outline import RunOptions, outline

    options = RunOptions.recorded(
        record.started,
        yes=arguments.yes,
        headless=arguments.no_input or arguments.detach or not sys.stdin.isatty(),
        trusted=not record.imported,
    )
    if not options.workspace.is_dir():
        raise UsageError(
            f"the workspace of run {folder.id}, {options.workspace}, is no folder any more; put it back, or follow the "
            f'run up elsewhere: elenco run --continue {folder.id}{in_state()} --workspace DIR "…"'
        )
    _refuse_used_up(record, folder.id, limits, changes)
    options = attrs.evolve(options, limits=limits).on_model(arguments.model)
    seen = outline(options)
    seen.refuse_unpriced()
    # Only now what takes time to load: a slip has been told by here.
    import trio

    from runtime.app import Resumption, plan

    from .live import Shown, stay

    resumption = Resumption(
        record,
        limits,
        changes,
        refresh=arguments.refresh,
        confirm_unknown=arguments.confirm_unknown,
        model=arguments.model or "",
    )
    ready, shown = plan(options, seen=seen), Shown.of(arguments)
    if not arguments.detach:
        return trio.run(stay, ready, state, folder, shown, resumption)
    return detach(lambda began: trio.run(stay, ready, state, folder, attrs.evolve(shown, began=began), resumption))


def _refuse_used_up(record: RunState, run: str, limits: Limits, changes: Iterable[str]) -> None:
    """Raises UsageError for a new limit of which more is used already: the run could only stop at once."""
    from runtime.journal.budgets import used_beyond

    root = record.actors.get(record.root)
    new: dict[LimitName, float] = {
        name: value for name in LIMIT_NAMES if name in changes and (value := limits.get(name)) is not None
    }
    for name, used in used_beyond(record, root, new) if root is not None else ():
        spent, limit = amount_text(name, used), amount_text(name, limits.get(name) or 0)
        raise UsageError(
            f"--{name.replace('_', '-')}: {limit} is below the {spent} that run {run} has used already; "
            f"+N adds to what it has: {go_on(run, name)}"
        )
