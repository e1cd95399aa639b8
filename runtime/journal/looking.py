"""A SQLite database opened only to look at it, also where nothing can be written: a full disk, a read-only folder.

Readers of a write-ahead log share an index of it in a file beside it. Where that file is missing and cannot be made,
a database that nobody has open is read without it: as one that does not change when its log is empty, else with the
index in our own memory. Nothing that was acknowledged is passed over either way.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

_CANNOT_SHARE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
_MAGIC = b"SQLite format 3\0"
_HEAD = 100
"""Bytes of a database's head, as its format has it."""


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


def flaw(path: Path) -> str:
    """What is wrong with a database by its head and its size, "" if nothing shows. Blocks, and opens no database.

    Cheap enough for a list of thousands: it finds a file that is gone, emptied, cut short or something else by now.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            head, size = file.read(_HEAD), os.fstat(file.fileno()).st_size
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    if not head:
        return f"{path.name} is empty"
    if not head.startswith(_MAGIC) or len(head) < _HEAD:
        return f"{path.name} is no database any more"
    page = int.from_bytes(head[16:18], "big")
    whole = int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
    # What its log still holds may lie beyond its end; and only a head of one and the same writer tells the size.
    if size < whole and head[24:28] == head[92:96] and not _has_log(path):
        return f"{path.name} is cut short: {size} of {whole} bytes"
    return ""


def cannot_share(error: BaseException | None) -> bool:
    """Whether a database could not be opened because the index of its log cannot be made, as far as one can tell."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _CANNOT_SHARE


def look_alone(path: Path) -> sqlite3.Connection:
    """A connection that shares nothing: for a database that nobody writes meanwhile. Blocks. Raises sqlite3.Error."""
    if _has_log(path):
        return _opened(path, "mode=ro&vfs=unix-none", alone=True)
    return _opened(path, "mode=ro&immutable=1")


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


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
