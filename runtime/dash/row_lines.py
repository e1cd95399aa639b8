"""A journal's row as a line of the log stream, its event not taken apart where the text will do as it is; pure.

Ten thousand events reach a page several times faster so, and a live run pays nothing for its past being looked at.
"""

from __future__ import annotations

import json

from runtime.events import TYPES as EVENTS
from runtime.events import Record
from runtime.journal.rows import Row, decode_event
from runtime.watch.lines import VERSION, line, timestamp

_HEAD = frozenset({"v", "seq", "at", "run", "actor", "type"})
_CLASHING = frozenset(name for name, cls in EVENTS.items() if _HEAD & (set(cls.__annotations__) - {"type"}))
"""Events with a field named like one of the head's, which the head hides."""


def row_line(row: Row, run_id: str) -> bytes | None:
    """The row as a line, newline included; None for one whose big texts stand elsewhere."""
    seq, at, actor, type_name, _, body, blobs = row
    if blobs is not None:
        return None
    if type_name in _CLASHING or "NaN" in body or "Infinity" in body:
        return line(Record(seq, at, decode_event(type_name, actor, body)), run_id)
    head = (
        f'{{"v":{VERSION},"seq":{seq},"at":"{timestamp(at)}","run":"{run_id}",'
        f'"actor":{json.dumps(actor)},"type":{json.dumps(type_name)}'
    )
    return (f"{head},{body[1:]}\n" if len(body) > 2 else f"{head}}}\n").encode("ascii")
