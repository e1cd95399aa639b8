"""The index of all runs: one row a run, written when it starts and when it ends. All of it blocks.

It is a convenience: a run without a row is found by its folder and read from its journal.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from runtime.errors import JournalError, UsageError

from .folder import State, find_run
from .lock import RunLock

_VERSION = 1
_COLUMNS = (
    "id TEXT PRIMARY KEY, name TEXT NOT NULL, agent TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL, "
    "workspace TEXT NOT NULL, socket TEXT NOT NULL, pid INTEGER NOT NULL, started REAL NOT NULL, ended REAL, "
    "status TEXT NOT NULL, reason TEXT NOT NULL, steps INTEGER NOT NULL, max_steps INTEGER, tokens INTEGER NOT NULL, "
    "cost_usd REAL"
)


@attrs.frozen(kw_only=True)
class RunRow:
    """One run. Times are seconds since the epoch; `status` and `reason` are the report's, empty until the end."""

    id: str
    agent: str
    task: str
    model: str
    workspace: str
    started: float
    name: str = ""
    socket: str = ""
    pid: int = 0
    ended: float | None = None
    status: str = ""
    reason: str = ""
    steps: int = 0
    max_steps: int | None = None
    tokens: int = 0
    cost_usd: float | None = None


_FIELDS = tuple(field.name for field in attrs.fields(RunRow))


def run_started(state: State, row: RunRow) -> None:
    """Write the row of a run that begins, or goes on: its name stays. Raises JournalError."""
    with _open(state) as connection:
        names = ",".join(_FIELDS)
        marks = ",".join("?" for _ in _FIELDS)
        updates = ",".join(f"{name} = excluded.{name}" for name in _FIELDS if name not in ("id", "name", "started"))
        connection.execute(
            f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {updates}",
            attrs.astuple(row),
        )


def run_ended(state: State, run_id: str, *, ended: float, report: Mapping[str, Any] | None) -> None:
    """Note how a run ended; no report means that this process leaves it as it stands (it waits for a human)."""
    with _open(state) as connection:
        if report is None:
            connection.execute("UPDATE runs SET socket = '', pid = 0 WHERE id = ?", (run_id,))
            return
        usage = report.get("usage", {})
        connection.execute(
            "UPDATE runs SET socket = '', pid = 0, ended = ?, status = ?, reason = ?, steps = ?, tokens = ?, "
            "cost_usd = ? WHERE id = ?",
            (
                ended,
                report["status"],
                report.get("reason") or "",
                report.get("steps", 0),
                usage.get("input", 0) + usage.get("output", 0),
                report.get("cost_usd"),
                run_id,
            ),
        )


def rows(state: State) -> dict[str, RunRow]:
    """Every row, by run id. Raises JournalError."""
    if not state.index.exists():
        return {}
    with _open(state) as connection:
        found = connection.execute(f"SELECT {','.join(_FIELDS)} FROM runs ORDER BY started").fetchall()
    return {row[0]: RunRow(**dict(zip(_FIELDS, row, strict=True))) for row in found}


def row(state: State, run_id: str) -> RunRow | None:
    """The row of one run."""
    return rows(state).get(run_id)


def rename(state: State, run_id: str, name: str) -> None:
    """Give a run a name to find it by. Raises UsageError when there is no such run."""
    find_run(state, run_id)
    with _open(state) as connection:
        if not connection.execute("UPDATE runs SET name = ? WHERE id = ?", (name, run_id)).rowcount:
            raise UsageError(f"run {run_id} has no row in {state.index} that could bear a name")


def delete(state: State, run_id: str) -> None:
    """Remove a run and everything kept of it. Raises UsageError for an unknown run, JournalError while it is owned."""
    folder = find_run(state, run_id)
    lock = RunLock.take(folder.lock)
    try:
        # Out of sight at once, so that a crash half-way leaves no run that looks whole.
        gone = folder.path.with_name(f".{run_id}.{os.getpid()}")
        folder.path.rename(gone)
    finally:
        lock.release()
    shutil.rmtree(gone, ignore_errors=True)
    with _open(state) as connection:
        connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))


@contextmanager
def _open(state: State) -> Generator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(state.index, timeout=10, isolation_level=None)
    except sqlite3.Error as error:
        raise _failed(state, error) from error
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            raise JournalError(
                f"{state.index} has schema version {version}; this Elenco knows versions up to {_VERSION}: "
                "update Elenco"
            )
        if version < _VERSION:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(
                f"BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS runs ({_COLUMNS}); "
                f"PRAGMA user_version = {_VERSION}; COMMIT"
            )
        yield connection
    except sqlite3.Error as error:
        raise _failed(state, error) from error
    finally:
        connection.close()


def _failed(state: State, error: Exception) -> JournalError:
    return JournalError(f"cannot use the index of runs {state.index}: {error}")
