"""A new run that begins with what an earlier one's root agent has heard and said."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import attrs

from .conversation import Conversation
from .errors import JournalError, UsageError
from .events import SkillLoaded
from .journal.interface import Contents
from .journal.state import ActorState, CallState, RunState
from .messages import JsonObject, Message, ToolResult, UserMessage
from .record import result_of
from .words import UNKNOWN

BROKEN_OFF = "interrupted: the run ended before this call did"
NEW_TASK = "That run has ended. What follows is a new task, with room and tools of its own."


@attrs.frozen
class Continuation:
    """What the root of `run` leaves: its history, its number of replies, the first free number of an actor, and the
    hashes of long results. `agent`, `prompt`, `tools` and `skills` are what it was, was shown and had loaded, `compact`
    who still wants the history smaller. `measured`: so many messages of it were so many tokens, the request included.
    """

    run: str
    history: tuple[Message, ...]
    turn: int
    number: int
    results: Mapping[str, str] = attrs.field(factory=dict[str, str])
    agent: str = ""
    prompt: tuple[str, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    skills: tuple[SkillLoaded, ...] = ()
    compact: str = ""
    measured: tuple[int, int] | None = None

    @property
    def carried(self) -> tuple[SkillLoaded, ...]:
        """The skills that count as loaded from the start; a new task is pre-approved nothing by them."""
        return tuple(attrs.evolve(event, allows=()) for event in self.skills)


def continuation_of(state: RunState, id: str, old: Contents, new: Contents) -> Continuation:
    """What a follow-up of a run begins with; what its history refers to is put among the new run's contents. Blocks.

    Calls that have no result get one that says so, and whether they may have taken effect. Raises UsageError for a
    run that never began, OSError.
    """
    root = state.actors.get(state.root)
    if root is None:
        raise UsageError(f"run {id} has no beginning on record: nothing to continue")
    results: dict[str, str] = {}
    for handle, name in state.kept.items():
        with contextlib.suppress(JournalError):
            results[handle] = new.put(old.get(name))
    for handle, text in state.long_reports.items():
        results[handle] = new.put(text.encode(errors="replace"))
    number = max(actor.number for actor in state.actors.values()) + 1
    skills = tuple(root.skills.values())
    return Continuation(
        id,
        _closed(root),
        root.turn,
        number,
        results,
        root.agent,
        root.prompt,
        root.tools,
        skills,
        root.compact,
        root.measured,
    )


def _closed(root: ActorState) -> tuple[Message, ...]:
    done = {id: _result(call) for id, call in root.calls.items() if call.finished is not None or call.started}
    conversation = Conversation(tuple(root.history)).settle(done, BROKEN_OFF)
    said = tuple(UserMessage(steer.text, "steer") for steer in root.steers.values())
    after = () if root.status == "completed" else (UserMessage(NEW_TASK, "note"),)
    return (*conversation.messages, *said, *after)


def _result(call: CallState) -> ToolResult:
    """What is on record, or that a call which was begun may have taken effect."""
    if call.finished is not None:
        return result_of(call.finished)
    return ToolResult(call.call_id, call.name, UNKNOWN, "unknown")
