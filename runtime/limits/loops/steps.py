"""What the guard sees of an agent's work: one model reply and the calls that came with it."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

Event = Literal["user_message", "continuation", "compaction", "resume"]
"""Something that happened just before a reply. Only `user_message` is new information."""


@frozen
class Flags:
    """What the author of a tool declares about it.

    `read_only` changes nothing; `mutates` changes the world outside the agent's head; `poll` looks at what
    another party changes, or waits; `delegates` asks another agent (also recognised by the tool's name).
    A tool with neither `read_only` nor `mutates` changes only the agent's own notes.
    """

    read_only: bool = False
    mutates: bool = False
    poll: bool = False
    delegates: bool = False


UNDECLARED = Flags(mutates=True)
"""A tool nobody declared may do anything."""


@frozen
class CallSeen:
    """One tool call with its result. `seconds` is the call's own duration."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    is_error: bool = False
    seconds: float = 0.0
    flags: Flags = UNDECLARED


@frozen
class StepSeen:
    """One model reply: its text, the calls it emitted together, `at` in seconds since the run began."""

    text: str = ""
    calls: tuple[CallSeen, ...] = field(default=(), converter=tuple[CallSeen, ...])
    at: float = 0.0
    event: Event | None = None
