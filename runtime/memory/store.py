"""The database of all facts, `memory.db` in the state folder: one for all runs and processes. All of it blocks.

It is made whole under another name and then linked into place, so nobody ever meets half of one. Each use has a
connection of its own; writers take turns. What is forgotten is overwritten, not only unlinked.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from runtime.errors import ElencoError
from runtime.journal.folder import no_space, sync
from runtime.journal.looking import look_at

from .fact import MOST_FACTS, Fact
from .words import How, asked, every, indexed, match

VERSION = 1
CALLS_KEPT = 180 * 86_400.0
"""Seconds for which a call of a run is known to have been carried out."""
_WAIT = 20.0

_SCHEMA = f"""
CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, stems TEXT NOT NULL, workspace TEXT NOT NULL,
    run TEXT NOT NULL, actor TEXT NOT NULL, at REAL NOT NULL, edited REAL,
    UNIQUE (workspace, text)
);
CREATE INDEX facts_of_run ON facts (run);
CREATE TABLE calls (
    run TEXT NOT NULL, call_id TEXT NOT NULL, what TEXT NOT NULL, fact INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run, call_id, what)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (stems, content = 'facts', content_rowid = 'id', tokenize = 'ascii');
CREATE TRIGGER facts_in AFTER INSERT ON facts BEGIN
    INSERT INTO words (rowid, stems) VALUES (new.id, new.stems);
END;
CREATE TRIGGER facts_out AFTER DELETE ON facts BEGIN
    INSERT INTO words (words, rowid, stems) VALUES ('delete', old.id, old.stems);
END;
CREATE TRIGGER facts_other AFTER UPDATE OF stems ON facts BEGIN
    INSERT INTO words (words, rowid, stems) VALUES ('delete', old.id, old.stems);
    INSERT INTO words (rowid, stems) VALUES (new.id, new.stems);
END;
PRAGMA user_version = {VERSION};
"""
_COLUMNS = "facts.id, facts.text, facts.workspace, facts.run, facts.actor, facts.at, facts.edited"

Outcome: TypeAlias = Literal["new", "known", "again"]


def memory_file(state: Path) -> Path:
    """Where the facts are, in a state folder."""
    return state / "memory.db"


class MemoryUnusable(ElencoError):
    """The database cannot be used, or has no room: nothing was changed."""


class NoFact(ElencoError):
    """There is no such fact, or it is another one by now: nothing was changed."""

    exit_code = 2


@attrs.frozen
class Call:
    """The call of a run that wants a change; the same call with the same words changes something once.

    `what` are the words.
    """

    run: str
    id: str
    what: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.run, self.id, hashlib.sha256(self.what.encode(errors="replace")).hexdigest())


@attrs.frozen
class Remembered:
    """A fact and whether it is `new`, was `known` before, or has been noted by this very call (`again`).

    `fact` is None where somebody has forgotten it since.
    """

    fact: Fact | None
    outcome: Outcome


@attrs.frozen
class FactStore:
    """All facts. Every method blocks and raises MemoryUnusable. A `workspace` is its real path, "" is the user."""

    path: Path

    def remember(
        self, text: str, *, workspace: str, at: float, call: Call | None = None, actor: str = ""
    ) -> Remembered:
        """Keep a tidy text, once for each call and once for each workspace. It is on disk when this returns."""
        with self._writing() as db:
            done = _done(db, call)
            if done is not None:
                return Remembered(_fact(db, done), "again")
            known = db.execute("SELECT id FROM facts WHERE workspace = ? AND text = ?", (workspace, text)).fetchone()
            if known is not None:
                _note(db, call, known[0], at)
                return Remembered(_fact(db, known[0]), "known")
            count = db.execute("SELECT count(*) FROM facts WHERE workspace = ?", (workspace,)).fetchone()[0]
            if count >= MOST_FACTS:
                raise MemoryUnusable(f"memory is full: {count} facts; forget some first  (elenco memory list)")
            id = db.execute(
                "INSERT INTO facts (text, stems, workspace, run, actor, at) VALUES (?, ?, ?, ?, ?, ?)",
                (text, indexed(text), workspace, call.run if call is not None else "", actor, at),
            ).lastrowid
            assert id is not None
            _note(db, call, id, at)
            db.execute("DELETE FROM calls WHERE at < ?", (at - CALLS_KEPT,))
            return Remembered(_fact(db, id), "new")

    def search(
        self, question: str, *, within: Sequence[str] | None = None, how: How = "any", limit: int = MOST_FACTS
    ) -> list[Fact]:
        """The facts that speak of what is asked, best first; `within` are the workspaces looked at, None means all.

        With `how` "all" they hold every word of it. A question without a word in it finds nothing.
        """
        stems = asked(question) if how == "any" else every(question)
        if not stems:
            return []
        where, values = _within(within)
        sql = (
            f"SELECT {_COLUMNS} FROM words JOIN facts ON facts.id = words.rowid "
            f"WHERE words MATCH ? AND {where} ORDER BY bm25(words), facts.id DESC LIMIT ?"
        )
        return self._select(sql, (match(stems, how), *values, limit))

    def newest(self, *, within: Sequence[str] | None = None, limit: int = MOST_FACTS) -> list[Fact]:
        """The facts noted last, the newest first."""
        where, values = _within(within)
        return self._select(f"SELECT {_COLUMNS} FROM facts WHERE {where} ORDER BY id DESC LIMIT ?", (*values, limit))

    def of_run(self, run: str) -> list[Fact]:
        """The facts that this run has noted, the newest first."""
        return self._select(f"SELECT {_COLUMNS} FROM facts WHERE run = ? ORDER BY id DESC", (run,))

    def get(self, id: int) -> Fact | None:
        found = self._select(f"SELECT {_COLUMNS} FROM facts WHERE id = ?", (id,))
        return found[0] if found else None

    def edit(self, before: Fact, text: str, at: float) -> Fact:
        """Give a fact another text, where it still is what it was. Raises NoFact."""
        with self._writing() as db:
            try:
                changed = db.execute(
                    "UPDATE facts SET text = ?, stems = ?, edited = ? WHERE id = ? AND text = ?",
                    (text, indexed(text), at, before.id, before.text),
                ).rowcount
            except sqlite3.IntegrityError:
                raise NoFact(f"another fact says just that already; forget this one: {before.id}") from None
            if not changed:
                raise NoFact(f"fact {before.id} has changed or gone meanwhile; nothing was changed")
            return attrs.evolve(before, text=text, edited=at)

    def forget(self, facts: Iterable[Fact], at: float, call: Call | None = None) -> list[Fact]:
        """Take facts out where they still say what they said; returns those that were there. No trace of them stays."""
        with self._writing() as db:
            gone = [
                fact
                for fact in facts
                if db.execute("DELETE FROM facts WHERE id = ? AND text = ?", (fact.id, fact.text)).rowcount
            ]
            for fact in gone:
                _note(db, call, fact.id, at)
            if gone:
                db.execute("INSERT INTO words (words) VALUES ('optimize')")
        if gone:
            with suppress(MemoryUnusable), self._opened() as db:  # a reader in the way leaves it to the next one
                db.execute("PRAGMA wal_checkpoint (TRUNCATE)")
        return gone

    def done(self, call: Call) -> int | None:
        """The fact that a call has changed already."""
        if not self.path.exists():
            return None
        with self._looking() as db:
            return _done(db, call)

    # --- the file ------------------------------------------------------------------------------------------------

    def _select(self, sql: str, values: Sequence[object]) -> list[Fact]:
        if not self.path.exists():
            return []
        with self._looking() as db:
            return [Fact(*row) for row in db.execute(sql, values)]

    @contextmanager
    def _looking(self) -> Generator[sqlite3.Connection]:
        with self._telling():
            db = look_at(self.path)
            try:
                self._check(db)
                yield db
            finally:
                db.close()

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        if not self.path.exists():
            self._make()
        with self._opened() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        with self._telling():
            address = f"{self.path.absolute().as_uri()}?mode=rw"
            db = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)
            try:
                self._check(db)
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")
                yield db
            finally:
                db.close()

    def _check(self, db: sqlite3.Connection) -> None:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise MemoryUnusable(
                f"{self.path} has schema version {version}; this Elenco knows versions up to {VERSION}: update Elenco"
            )
        if version < VERSION:
            raise MemoryUnusable(f"{self.path} is no memory of Elenco's: move it away to begin anew")

    def _make(self) -> None:
        """Make an empty database, unless somebody else is faster."""
        with self._telling():
            descriptor, name = tempfile.mkstemp(prefix=".memory.", dir=self.path.parent)  # private to its owner
            os.close(descriptor)
            made = Path(name)
            try:
                db = sqlite3.connect(made, isolation_level=None)
                try:
                    db.execute("PRAGMA journal_mode = WAL")
                    db.executescript(_SCHEMA)
                finally:
                    db.close()
                with suppress(FileExistsError):
                    os.link(made, self.path)
                sync(self.path.parent)
            finally:
                for left in ("", "-wal", "-shm"):
                    Path(name + left).unlink(missing_ok=True)

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            why = no_space(self.path.parent) or (error.strerror if isinstance(error, OSError) else str(error))
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
            cure = ": it is damaged; move it away to begin anew" if damaged else ""
            raise MemoryUnusable(f"cannot use the memory {self.path}: {why}{cure}") from error


def _within(workspaces: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    if workspaces is None:
        return "TRUE", ()
    return f"facts.workspace IN ({', '.join('?' for _ in workspaces)})", tuple(workspaces)


def _fact(db: sqlite3.Connection, id: int) -> Fact | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM facts WHERE id = ?", (id,)).fetchone()
    return None if row is None else Fact(*row)


def _done(db: sqlite3.Connection, call: Call | None) -> int | None:
    if call is None:
        return None
    found = db.execute("SELECT fact FROM calls WHERE run = ? AND call_id = ? AND what = ?", call.key).fetchone()
    return None if found is None else int(found[0])


def _note(db: sqlite3.Connection, call: Call | None, fact: int, at: float) -> None:
    if call is not None:
        db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?)", (*call.key, fact, at))
