"""Putting jobs in and taking them out, each in one transaction."""

import json
import sqlite3
import time

MAX_ARGUMENT_BYTES = 64 * 1024
STARVE_AFTER_SECONDS = 3600


class GiveUp(Exception):
    """Raised by a job that knows trying again is useless."""


class ArgumentsTooLarge(ValueError):
    """The arguments of a job take more than 64 KiB as JSON."""


class Queue:
    """A queue in one SQLite file; any number of processes may hold one open."""

    def __init__(self, path, prefix=""):
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA busy_timeout = 5000")
        self._table = f"{prefix}jobs"

    def put(self, kind, *, lane=None, priority="normal", timeout=None, **arguments):
        """Add a job and return its id; it may start before this call returns."""
        text = json.dumps(arguments, sort_keys=True)
        if len(text.encode()) > MAX_ARGUMENT_BYTES:
            raise ArgumentsTooLarge(kind)
        row = self._db.execute(
            f"INSERT INTO {self._table} (kind, arguments, lane, priority, timeout, put_at) "
            "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (kind, text, lane, priority, timeout, time.time()),
        ).fetchone()
        return row[0]

    def take(self, worker, lease_seconds):
        """Claim the oldest runnable job for this worker, or return None."""
        return self._db.execute(
            f"UPDATE {self._table} SET worker = ?, lease_until = ? "
            f"WHERE id = (SELECT id FROM {self._table} WHERE runnable ORDER BY rank, put_at LIMIT 1) "
            "RETURNING id, kind, arguments, attempt",
            (worker, time.time() + lease_seconds),
        ).fetchone()

    def effective_priority(self, priority, waited):
        """Lift a low job that has waited too long."""
        if priority == "low" and waited > STARVE_AFTER_SECONDS:
            return "normal"
        return priority

    def sweep(self, keep_days):
        """Delete finished jobs older than `keep_days` and give the pages back to the disk."""
        self._db.execute(f"DELETE FROM {self._table} WHERE done_at < ?", (time.time() - keep_days * 86400,))
        self._db.execute("PRAGMA incremental_vacuum")
