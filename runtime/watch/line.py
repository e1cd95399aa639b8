"""The log stream's line format: one JSON object a line, as DESIGN section 4.5 has it; pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from runtime.events import Record, body_of, type_of

VERSION = 1
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def line(record: Record, run: str) -> bytes:
    """A kept event with its `seq`; a live one with the last kept seq as `after`, and `n`."""
    place = {"seq": record.seq} if record.event.kept else {"after": record.seq, "n": record.n}
    at = datetime.fromtimestamp(record.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = {"v": VERSION, **place, "at": at, "run": run, "actor": record.event.actor, "type": type_of(record.event)}
    return (_encode({**head, **body_of(record.event)}) + "\n").encode("utf-8", "replace")
