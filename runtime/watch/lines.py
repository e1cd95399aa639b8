"""The log stream as JSON lines: one object a record, ASCII, the same for files, pipes and sockets; pure.

A kept event carries `seq`; a live one `after`, the last kept seq before it, and `n`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from runtime.events import TYPES, Record, body_of, event_from, type_of
from runtime.json_text import json_encoder

VERSION = 1


def line(record: Record, run_id: str) -> bytes:
    """The record as one line, newline included."""
    event = record.event
    if record.body is not None:
        found = line_of_text(record.seq, record.at, run_id, event.actor, type_of(event), record.body)
        if found is not None:
            return found
    data: dict[str, Any] = {"v": VERSION}
    if event.kept:
        data["seq"] = record.seq
    else:
        data["after"] = record.seq
        data["n"] = record.n
    data["at"] = timestamp(record.at)
    data["run"] = run_id
    data["actor"] = event.actor
    data["type"] = type_of(event)
    for key, value in body_of(event).items():
        data.setdefault(key, value)
    return as_json(data) + b"\n"


def line_of_text(seq: int, at: float, run_id: str, actor: str, type_name: str, body: str) -> bytes | None:
    """A kept event as a line, its JSON text not taken apart: half the work; None where the text will not do."""
    if type_name not in _AS_THEY_ARE or "NaN" in body or "Infinity" in body:
        return None
    head = (
        f'{{"v":{VERSION},"seq":{seq},"at":"{timestamp(at)}","run":"{run_id}",'
        f'"actor":{json.dumps(actor)},"type":"{type_name}"'
    )
    return (f"{head},{body[1:]}\n" if len(body) > 2 else f"{head}}}\n").encode("ascii")


def as_json(data: Any) -> bytes:
    """JSON in ASCII, also of values that JSON does not have but events may hold: NaN, half surrogate pairs."""
    try:
        text = _encode(data)
    except ValueError:
        text = _encode(_finite(data))
    return text.encode("ascii")


def record_from(data: Mapping[str, Any]) -> Record:
    """The record of a decoded line. Raises ValueError or TypeError for what is no event of this version."""
    if "v" not in data:
        raise ValueError("it has no 'v', the version of event lines")
    if data["v"] != VERSION:
        raise ValueError(f"an event line of version {data.get('v')!r}; this Elenco reads version {VERSION}")
    kept = "seq" in data
    head = _KEPT_HEAD if kept else _LIVE_HEAD
    missing = [key for key in head if key not in data]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    body = {key: value for key, value in data.items() if key not in head}
    event = event_from(data["type"], data["actor"], body)
    try:
        at = datetime.fromisoformat(data["at"]).timestamp()
    except (ValueError, TypeError):
        raise ValueError(f"its 'at' is no time such as 2026-11-29T12:00:00.123Z: {data['at']!r}") from None
    return Record(data["seq"], at, event) if kept else Record(data["after"], at, event, data["n"])


def timestamp(at: float) -> str:
    """Seconds since the epoch as 2026-11-29T12:00:00.123Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


_KEPT_HEAD = ("v", "seq", "at", "run", "actor", "type")
_LIVE_HEAD = ("v", "after", "n", "at", "run", "actor", "type")
_AS_THEY_ARE = frozenset(
    name for name, cls in TYPES.items() if not set(_KEPT_HEAD) & (set(cls.__annotations__) - {"type"})
)
"""Events that have no field named like one of the head's, which the head would hide."""


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json_encoder(ascii=True, nan=False, default=_plain)


def _finite(value: Any) -> Any:
    """The same with text in place of numbers that JSON does not have: a model may well have written NaN."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _finite(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [_finite(inner) for inner in cast("list[Any]", value)]
        case _:
            return value
