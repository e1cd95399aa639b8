"""The index of all runs: one row a run, written when it starts and when it ends. All of it blocks.

It is a convenience, a cache of the journals: a run without a row is found by its folder and read from its journal. So
where it cannot be used, a line on standard error says so and everything else goes on; one that is damaged is moved
aside and made anew from the journals.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import attrs

from runtime.errors import JournalError

from .folder import RunFolder, State, find_run, no_space, run_ids
from .lock import RunLock
from .looking import look_at

T = TypeVar("T")

_VERSION = 2
_COLUMNS = (
    "id TEXT PRIMARY KEY, name TEXT NOT NULL, agent TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL, "
    "workspace TEXT NOT NULL, socket TEXT NOT NULL, pid INTEGER NOT NULL, started REAL NOT NULL, ended REAL, "
    "status TEXT NOT NULL, reason TEXT NOT NULL, steps INTEGER NOT NULL, max_steps INTEGER, tokens INTEGER NOT NULL, "
    "cost_usd REAL, estimated INTEGER NOT NULL DEFAULT 0"
)


@attrs.frozen(kw_only=True)
class RunRow:
    """One run. Times are seconds since the epoch; `status` and `reason` are the report's, empty until the end.

    `estimated`: tokens and cost are partly our own count, since a provider reported none.
    """

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
    estimated: bool = False


_FIELDS = tuple(field.name for field in attrs.fields(RunRow))


class _Damaged(JournalError):
    """The file is no index, or no longer a sound one."""


def run_started(state: State, row: RunRow) -> None:
    """Write the row of a run that begins, or goes on: its name stays. Where that fails, a warning says so."""
    _cached(state, lambda connection: _insert(connection, row), None)


def run_ended(state: State, run_id: str, *, ended: float, report: Mapping[str, Any] | None) -> None:
    """Note how a run ended; no report means that this process leaves it as it stands (it waits for a human).

    Where that fails, a warning says so: the run's journal tells the same.
    """
    if report is None:
        _cached(state, lambda connection: _execute(connection, "socket = '', pid = 0", (run_id,)), 0)
        return
    usage = report.get("usage", {})
    values = (
        ended,
        report["status"],
        report.get("reason") or "",
        report.get("steps", 0),
        usage.get("input", 0) + usage.get("output", 0),
        report.get("cost_usd"),
        bool(usage.get("estimated")),
        run_id,
    )
    changes = (
        "socket = '', pid = 0, ended = ?, status = ?, reason = ?, steps = ?, tokens = ?, cost_usd = ?, estimated = ?"
    )
    _cached(state, lambda connection: _execute(connection, changes, values), 0)


def rows(state: State) -> dict[str, RunRow]:
    """Every row, by run id; none, with a warning, where the index cannot be read."""
    if not state.index.exists():
        return {}
    try:
        connection = look_at(state.index)
    except sqlite3.Error:
        return _cached(state, _select, {})
    try:
        if int(connection.execute("PRAGMA user_version").fetchone()[0]) == _VERSION:
            return _select(connection)
    except sqlite3.Error:
        pass
    finally:
        connection.close()
    return _cached(state, _select, {})


def row(state: State, run_id: str) -> RunRow | None:
    """The row of one run."""
    return rows(state).get(run_id)


def rename(state: State, run_id: str, name: str) -> None:
    """Give a run a name to find it by. Raises UsageError when there is no such run, JournalError for the index."""
    find_run(state, run_id)

    def write(connection: sqlite3.Connection) -> None:
        if not _execute(connection, "name = ?", (name, run_id)):
            _insert(connection, attrs.evolve(_from_journal(state, run_id), name=name))

    _use(state, write)


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
    if row(state, run_id) is not None:
        _cached(state, lambda connection: connection.execute("DELETE FROM runs WHERE id = ?", (run_id,)).rowcount, 0)


def discard_unbegun(state: State, folder: RunFolder) -> None:
    """Remove the folder of a new run that was refused before anything was on record, say for want of space. Blocks.

    Nothing happens to a run that has begun, or that cannot be read. For whoever has made the folder just now.
    """
    from .read import RunReader  # It stands on this module.

    with suppress(JournalError, OSError):
        if folder.journal.exists() and folder.journal.stat().st_size:
            with RunReader(folder) as reader:
                if reader.last_seq():
                    return
        delete(state, folder.id)


@contextmanager
def beginning(state: State, folder: RunFolder) -> Generator[None]:
    """A block that begins the run of a folder made just now; where it fails before the run began, the folder goes."""
    try:
        yield
    except BaseException:
        discard_unbegun(state, folder)
        raise


def _insert(connection: sqlite3.Connection, row: RunRow) -> None:
    names = ",".join(_FIELDS)
    marks = ",".join("?" for _ in _FIELDS)
    updates = ",".join(f"{name} = excluded.{name}" for name in _FIELDS if name not in ("id", "name", "started"))
    connection.execute(
        f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {updates}", attrs.astuple(row)
    )


def _execute(connection: sqlite3.Connection, changes: str, values: tuple[object, ...]) -> int:
    return connection.execute(f"UPDATE runs SET {changes} WHERE id = ?", values).rowcount


def _select(connection: sqlite3.Connection) -> dict[str, RunRow]:
    found = connection.execute(f"SELECT {','.join(_FIELDS)} FROM runs ORDER BY started").fetchall()
    rows = (RunRow(**dict(zip(_FIELDS, row, strict=True))) for row in found)
    return {row.id: attrs.evolve(row, estimated=bool(row.estimated)) for row in rows}


def _from_journal(state: State, run_id: str) -> RunRow:
    from .read import info  # It stands on this module.

    return info(state, run_id).row


def _cached(state: State, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
    """Do it in the index, or say why not."""
    try:
        return _use(state, action)
    except JournalError as error:
        _warn(f"{error}; what a run did stands in its own journal")
        return otherwise


def _use(state: State, action: Callable[[sqlite3.Connection], T]) -> T:
    try:
        with _open(state) as connection:
            return action(connection)
    except _Damaged as error:
        _mend(state, error)
    with _open(state) as connection:
        return action(connection)


def _mend(state: State, why: _Damaged) -> None:
    """Move a damaged index aside and make a new one from the runs' journals."""
    number = 1
    while (aside := state.index.with_name(f"index.damaged-{number}.db")).exists():
        number += 1
    try:
        for ending in ("-wal", "-shm"):
            state.index.with_name(state.index.name + ending).unlink(missing_ok=True)
        with suppress(FileNotFoundError):  # Another process was faster.
            state.index.rename(aside)
    except OSError as error:
        raise JournalError(f"{why}; it cannot be moved aside: {error.strerror}") from error
    found = [_from_journal(state, run_id) for run_id in run_ids(state)]
    with _open(state) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for each in found:
            _insert(connection, each)
        connection.execute("COMMIT")
    _warn(
        f"{why}; it was moved to {aside.name} and made anew from the journals of {len(found)} "
        f"{'run' if len(found) == 1 else 'runs'}, without the names they were given"
    )


_warned: set[str] = set()


def _warn(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        with suppress(OSError, ValueError):
            print(f"warning: {text}", file=sys.stderr)


@contextmanager
def _open(state: State) -> Generator[sqlite3.Connection]:
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(state.index, timeout=10, isolation_level=None)
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            raise JournalError(
                f"{state.index} has schema version {version}; this Elenco knows versions up to {_VERSION}: "
                "update Elenco"
            )
        if version < _VERSION:
            connection.execute("PRAGMA journal_mode = WAL")
            _migrate(connection)
        yield connection
    except sqlite3.Error as error:
        raise _failed(state, error) from error
    finally:
        if connection is not None:
            connection.close()


def _migrate(connection: sqlite3.Connection) -> None:
    """Make the table, or add what an earlier version's has not. Asked again under the lock: two may come at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version == 0:
            connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({_COLUMNS})")
        elif version == 1:
            connection.execute("ALTER TABLE runs ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise


def _failed(state: State, error: sqlite3.Error) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    text = f"cannot use the index of runs {state.index}: {error}"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or str(error).startswith("no such "):
        return _Damaged(text)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and (full := no_space(state.path)):
        return JournalError(f"cannot use the index of runs {state.index}: {full}")
    return JournalError(text)
