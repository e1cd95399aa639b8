"""Why an actor must end now, before its model has said that it is done."""

from __future__ import annotations

import attrs

from .report import StopReason


@attrs.frozen
class Stop:
    """The reason for the report, and for a person whose limit it was or what went round in circles."""

    reason: StopReason
    detail: str
