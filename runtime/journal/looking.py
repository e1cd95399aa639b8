"""A SQLite database opened only to look at it, also where nothing can be written: a full disk, a read-only folder.

Readers of a write-ahead log share an index of it in a file beside it. Where that file is missing and cannot be made,
a database that nobody has open is read without it: as one that does not change when its log is empty, else with the
index in our own memory. Nothing that was acknowledged is passed over either way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

_CANNOT_SHARE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


def look_at(path: Path, in_use: Callable[[], bool] = lambda: False) -> sqlite3.Connection:
    """A connection that can only read; `in_use` says whether another process writes it. Blocks.

    Raises sqlite3.Error.
    """
    try:
        return _opened(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if not cannot_share(error) or not path.exists() or in_use():
            raise
        return look_alone(path)


def cannot_share(error: BaseException | None) -> bool:
    """Whether a database could not be opened because the index of its log cannot be made, as far as one can tell."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _CANNOT_SHARE


def look_alone(path: Path) -> sqlite3.Connection:
    """A connection that shares nothing: for a database that nobody writes meanwhile. Blocks. Raises sqlite3.Error."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return _opened(path, "mode=ro&vfs=unix-none", alone=True)
    return _opened(path, "mode=ro&immutable=1")


def _opened(path: Path, how: str, *, alone: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False, isolation_level=None, timeout=5
    )
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Only a first read opens the log.
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
