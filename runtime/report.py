"""What goes down and comes up between actors: an Assignment, a Report."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs

from .handover.attachment import Attachment
from .handover.sources import Kept, Source
from .messages import Usage

Status: TypeAlias = Literal["completed", "stopped", "failed", "cancelled"]
StopReason: TypeAlias = Literal[
    "max_steps",
    "total_steps",
    "token_budget",
    "cost_budget",
    "deadline",
    "max_tool_calls",
    "loop",
    "length",
    "content_filter",
    "refusal",
    "context_window",
]


@attrs.frozen
class Assignment:
    """A piece of work for one actor. `call_id` is the delegating call's, None for the root."""

    task: str
    call_id: str | None = None
    attached: tuple[Attachment, ...] = ()


@attrs.frozen
class Report:
    """How an assignment ended.

    `text` is the answer, or the best partial one. `usage` and `cost_usd` cover the actor and everything below it;
    an unknown cost is None, never 0. `reason` is a StopReason when `status` is stopped; `detail` is for a person:
    whose limit it was, or what failed. `sources` are what it and those below it have really read, whatever the text
    says (`sources_cut`: not all of it is listed), `handles` the long results that whoever gets the report can open.
    """

    status: Status
    text: str
    usage: Usage
    cost_usd: float | None
    steps: int
    reason: StopReason | None = None
    detail: str = ""
    output: Any = None
    sources: tuple[Source, ...] = ()
    handles: tuple[Kept, ...] = ()
    sources_cut: bool = False
