"""`elenco runs --prune`: what has outlived its time, listed, and with --yes removed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from runtime.errors import JournalError, UsageError
from runtime.journal import index
from runtime.journal.copies import sweep
from runtime.journal.folder import State
from runtime.journal.read import RunInfo, runs
from runtime.journal.retention import DAYS, outlived

from .advice import ago
from .command_runs import state_text
from .table import columns
from .visible import one_line


def prune(arguments: argparse.Namespace, state: State) -> int:
    """List what goes, and remove it if that was asked for. Raises UsageError, JournalError."""
    if arguments.keep is not None and arguments.keep < 0:
        raise UsageError("--keep: a number of runs, 0 or more")
    if arguments.older_than is not None and not arguments.older_than >= 0:
        raise UsageError("--older-than: a number of days, 0 or more")
    if arguments.yes:
        sweep(state)
    now = time.time()
    gone = outlived(runs(state), now, older_than=arguments.older_than, keep=arguments.keep)
    if not gone:
        rule = f"older than {DAYS:g} days" if arguments.keep is None and arguments.older_than is None else "to remove"
        print(f"no runs {rule}", file=sys.stderr)
        return 0
    if arguments.json:
        for each in gone:
            told = {"id": each.row.id, "state": each.status, "bytes": _size(state, each), "task": each.row.task}
            print(json.dumps(told))
    else:
        rows = (_row(state, each, now) for each in gone)
        print(columns([("RUN", "STATE", "WHEN", "SIZE", "TASK"), *rows], last_width=48))
    if not arguments.yes:
        print(f"nothing was removed: add --yes to remove {_count(gone)}", file=sys.stderr)
        return 0
    kept = 0
    for each in gone:
        try:
            index.delete(state, each.row.id)
        except JournalError as error:
            kept += 1
            print(f"kept {each.row.id}: {error}", file=sys.stderr)
    print(f"removed {_count(gone[kept:])}", file=sys.stderr)
    return 1 if kept else 0


def _size(state: State, each: RunInfo) -> int:
    return sum(path.stat().st_size for path in _files(state.run(each.row.id).path))


def _row(state: State, each: RunInfo, now: float) -> tuple[str, ...]:
    row = each.row
    size = _size(state, each)
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, size // 1000)} kB"
    return (row.name or row.id, state_text(each), ago(row.ended or row.started, now), shown, one_line(row.task, 200))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _count(found: list[RunInfo]) -> str:
    return f"{len(found)} run{'s' if len(found) != 1 else ''}"
