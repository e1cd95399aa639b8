"""One run's SQLite database: its schema, and the few statements everything else stands on. All of it blocks."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from runtime.errors import DamagedRecord, JournalError, NewerRecord
from runtime.events import Event, Record, body_of

from .blobs import Blobs
from .rows import Row, decode_event, encode_json

BIG = 64 * 1024
"""Bytes of an event's JSON above which it goes to a file."""

LOG_PAGES = 256
"""Pages in the log after which it is copied into the database, and begun again from its start."""
LOG_AHEAD = 1_088 * 1024
"""Bytes of the log's file that are written ahead: so many pages, and some more for a last commit."""
_LENGTH = 272 * 1024
_ROOM = 64 * LOG_AHEAD
_ZEROS = bytes(_LENGTH)

MILESTONES = (
    "type IN ('run.started','run.waiting','run.resumed','run.finished','run.forked','limits.changed','actor.started',"
    "'actor.finished','actor.held','actor.continued','approval.requested','approval.decided','question.asked',"
    "'question.answered','model.finished','cancel.requested')"
)
"""The events that tell the state of a run. They are looked for without an index: a commit would be a third dearer."""

MIGRATIONS = (
    """
    CREATE TABLE migrations (version INTEGER PRIMARY KEY, at REAL NOT NULL);
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        actor TEXT NOT NULL,
        type TEXT NOT NULL,
        ref TEXT,
        body TEXT NOT NULL,
        blobs TEXT
    );
    CREATE UNIQUE INDEX one_outcome ON events (actor, ref, type) WHERE type = 'tool.finished';
    CREATE UNIQUE INDEX one_decision ON events (ref, type) WHERE type IN ('approval.decided', 'question.answered');
    """,
)
SCHEMA = len(MIGRATIONS)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CHUNK = 32
_INSERT = tuple("INSERT INTO events VALUES " + ",".join(["(?,?,?,?,?,?,?)"] * count) for count in range(1, _CHUNK + 1))


class Database:
    """An open database, for its one writer or for a reader.

    Raises JournalError for what a person must know; `commit` lets sqlite3.Error and OSError through.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._blobs = Blobs(path.parent / "blobs")

    @classmethod
    def for_writer(cls, path: Path, at: float) -> Database:
        """Open or make the database at its newest schema. Only the holder of the run's lock may."""
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
            version = _version(connection)
            _refuse_newer(path, version)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            connection.execute("PRAGMA cache_size = -64")  # KB; a writer that only appends needs the newest pages
            for number in range(version, SCHEMA):
                connection.executescript(
                    f"BEGIN IMMEDIATE; {MIGRATIONS[number]}"
                    f"INSERT INTO migrations VALUES ({number + 1}, {at!r}); PRAGMA user_version = {number + 1}; COMMIT"
                )
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise damaged(path, error) from error
            raise JournalError(f"cannot open the journal {path}: {error}") from error
        except JournalError:
            if connection is not None:
                connection.close()
            raise
        return cls(connection, path)

    @classmethod
    def for_reader(cls, path: Path) -> Database:
        """Open another process's database to look at it only."""
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
                timeout=5,
            )
            _refuse_newer(path, _version(connection))
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise damaged(path, error) from error
        except JournalError:
            if connection is not None:
                connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        self._connection.close()

    # --- writing -------------------------------------------------------------------------------------------------

    def commit(self, rows: Sequence[Row]) -> None:
        """Write all rows or none. One statement takes many rows: each costs a trip through the interpreter's lock."""
        connection = self._connection
        if len(rows) <= _CHUNK:
            connection.execute(_INSERT[len(rows) - 1], [value for row in rows for value in row])
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(rows), _CHUNK):
                part = rows[start : start + _CHUNK]
                connection.execute(_INSERT[len(part) - 1], [value for row in part for value in row])
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def lengthen_log(self) -> bool:
        """Write some zeros after the end of the log, between two commits; whether more would be of use.

        A commit that makes its file longer costs a journalling file system a second write; SQLite passes over zeros,
        as over anything that is no frame of its own. Nothing is done where there is little room on the disk.
        """
        try:
            with open(f"{self._path}-wal", "r+b", buffering=0) as log:
                end, disk = os.fstat(log.fileno()).st_size, os.fstatvfs(log.fileno())
                if end >= LOG_AHEAD or disk.f_bavail * disk.f_frsize < _ROOM:
                    return False
                try:
                    whole = os.pwrite(log.fileno(), _ZEROS, end) == _LENGTH
                except OSError:
                    whole = False
                if not whole:
                    os.ftruncate(log.fileno(), end)
                os.fsync(log.fileno())
                return whole
        except OSError:
            return False

    def spill(self, row: Row, event: Event) -> Row:
        """Move the big texts of a row to files, and the whole body if that is not enough."""
        seq, at, actor, type_name, ref, _, _ = row
        body = body_of(event)
        moved: dict[str, list[str | int]] = {}
        for name, value in body.items():
            if isinstance(value, str) and len(value) > BIG // 8:
                data = value.encode("utf-8", "surrogatepass")
                if len(data) > BIG:
                    moved[name] = [self._blobs.put(data), len(data)]
        text = encode_json({name: "" if name in moved else value for name, value in body.items()})
        if len(text) > BIG:
            moved[""] = [self._blobs.put(text.encode()), len(text)]
            text = "{}"
        return (seq, at, actor, type_name, ref, text, encode_json(moved) if moved else None)

    # --- reading -------------------------------------------------------------------------------------------------

    def last_seq(self) -> int:
        found = self._all("SELECT max(seq) FROM events")
        return cast("int | None", found[0][0]) or 0 if found else 0

    def records(self, from_seq: int, limit: int) -> list[Record]:
        """Up to `limit` records from `from_seq` on. Raises JournalError for damage, a gap among it."""
        return [self.record(row) for row in self.rows(from_seq, limit)]

    def rows(self, from_seq: int, limit: int) -> list[Row]:
        """The same as they are kept, for `record`. Raises JournalError for a gap."""
        rows: list[Row] = self._all("SELECT * FROM events WHERE seq >= ? ORDER BY seq LIMIT ?", max(from_seq, 1), limit)
        for expected, row in enumerate(rows, max(from_seq, 1)):
            if row[0] != expected:
                raise damaged(self._path, f"event {expected} is missing")
        return rows

    def milestones(self) -> list[Record]:
        """The events that tell the state of a run, oldest first."""
        return [self.record(row) for row in self._all(f"SELECT * FROM events WHERE {MILESTONES} ORDER BY seq")]

    def records_of(self, types: Sequence[str], from_seq: int, to_seq: int) -> list[Record]:
        """The events of some types from one `seq` to another, both included."""
        marks = ",".join("?" for _ in types)
        query = f"SELECT * FROM events WHERE seq BETWEEN ? AND ? AND type IN ({marks}) ORDER BY seq"
        return [self.record(row) for row in self._all(query, from_seq, to_seq, *types)]

    def has_outcome(self, actor: str, call_id: str) -> bool:
        query = "SELECT 1 FROM events WHERE type = 'tool.finished' AND actor = ? AND ref = ?"
        return bool(self._all(query, actor, call_id))

    def once(self) -> list[tuple[str, str, str]]:
        """The actor, ref and type of every outcome, decision and answer."""
        return self._all(
            "SELECT actor, ref, type FROM events WHERE type = 'tool.finished' UNION ALL "
            "SELECT '', ref, type FROM events WHERE type IN ('approval.decided', 'question.answered')"
        )

    def record(self, row: Row) -> Record:
        seq, at, actor, type_name, _, body, blobs = row
        try:
            if blobs is not None:
                body = self._gathered(body, json.loads(blobs))
            return Record(seq, at, decode_event(type_name, actor, body))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise damaged(self._path, f"event {seq} ({type_name}) cannot be read: {error}") from error

    def _gathered(self, body: str, blobs: dict[str, list[Any]]) -> str:
        if (whole := blobs.pop("", None)) is not None:
            body = self._blobs.get(whole[0]).decode()
        fields = json.loads(body)
        for name, (digest, _) in blobs.items():
            fields[name] = self._blobs.get(digest).decode("utf-8", "surrogatepass")
        return encode_json(fields)

    def _all(self, query: str, *values: object) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            # The owner died between making the file and its first commit: an empty run.
            if str(error).startswith("no such table"):
                return []
            raise damaged(self._path, error) from error
        except sqlite3.Error as error:
            raise damaged(self._path, error) from error


def damaged(path: Path, why: object) -> JournalError:
    """The error for a journal that cannot be read; one that SQLite could not open may be whole all the same."""
    text = f"cannot read the journal {path}: {why}"
    if isinstance(why, sqlite3.Error) and getattr(why, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
        return JournalError(text)
    return DamagedRecord(path.parent.name, text)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _refuse_newer(path: Path, version: int) -> None:
    if version > SCHEMA:
        raise NewerRecord(
            f"the journal {path} has schema version {version}; this Elenco knows versions up to {SCHEMA}: update Elenco"
        )
