"""An event as the JSON text a row holds, and back; pure.

The text is plain ASCII, so that neither SQLite nor a terminal meets half a surrogate pair. It is made when the event
is appended: what cannot be written fails at its author, and later changes of a shared mapping do no harm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from runtime.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    body_of,
    event_from,
)
from runtime.json_text import json_encoder

Row: TypeAlias = tuple[int, float, str, str, str | None, str, str | None]
"""seq, at, actor, type, ref, body, blobs: the columns of the table `events`."""

_REFS: dict[type[Event], str] = {
    ToolRequested: "call_id",
    PermissionDecided: "call_id",
    ToolStarted: "call_id",
    ToolFinished: "call_id",
    ApprovalRequested: "id",
    ApprovalDecided: "id",
    QuestionAsked: "id",
    QuestionAnswered: "id",
}


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


encode_json = json_encoder(ascii=True, default=_plain)
_decode = json.JSONDecoder().decode


def encode_body(event: Event) -> str:
    """The event's own fields as compact JSON. Raises TypeError for a value that is not JSON."""
    return encode_json(body_of(event))


def decode_event(type_name: str, actor: str, body: str) -> Event:
    """The event of a row. Raises ValueError when the body is no JSON object, TypeError when a field is missing."""
    fields: Any = _decode(body)
    if not isinstance(fields, dict):
        raise ValueError("an event's body is a JSON object")
    return event_from(type_name, actor, cast("dict[str, Any]", fields))


def ref_of(event: Event) -> str | None:
    """The call or request an event belongs to, for the database's unique index."""
    name = _REFS.get(type(event))
    return None if name is None else getattr(event, name)
