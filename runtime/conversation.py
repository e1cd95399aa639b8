"""One actor's history and the rule it never breaks: every tool call has exactly one result, in call order, at once.

A Conversation is a value; adding to it gives another one and checks the invariant, so no request can ever be sent
that a provider must refuse. Steering messages wait in `queued` until all results of the round are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from .messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage


class HistoryError(Exception):
    """A message that would break the history's order: a fault of ours, never of the model."""


@attrs.frozen
class CallModel:
    """The history is complete: ask for the next reply. `because` tells an ordinary turn from a continued one."""

    because: str = "turn"


@attrs.frozen
class RunTools:
    """The last reply's calls have no results yet."""

    calls: tuple[ToolCall, ...]


@attrs.frozen
class Finish:
    """The last reply asks for nothing more."""

    message: AssistantMessage


Step: TypeAlias = CallModel | RunTools | Finish


@attrs.frozen
class Conversation:
    """The messages so far, and the steering messages that wait for the round to end."""

    messages: tuple[Message, ...] = ()
    queued: tuple[UserMessage, ...] = ()

    def next_step(self) -> Step:
        """What the history asks for next. Raises HistoryError on an empty one."""
        if not self.messages:
            raise HistoryError("a conversation begins with a task")
        match self.messages[-1]:
            case AssistantMessage() as reply if reply.calls:
                return RunTools(reply.calls)
            case AssistantMessage() as reply if reply.finish in ("pause", "length"):
                return CallModel(because=reply.finish)
            case AssistantMessage() as reply if not self.queued:
                return Finish(reply)
            case _:
                return CallModel()

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet."""
        if self.messages and isinstance(last := self.messages[-1], AssistantMessage):
            return last.calls
        return ()

    def add(self, message: Message) -> Conversation:
        """The history with one more message. Raises HistoryError where it may not stand."""
        _check_next(self.messages[-1] if self.messages else None, message)
        return Conversation((*self.messages, message), self.queued)

    def queue(self, message: UserMessage) -> Conversation:
        """Keep a steering message until the running round has all its results."""
        return Conversation(self.messages, (*self.queued, message))

    def take_queued(self) -> Conversation:
        """Let the waiting steering messages enter, unless results are still missing."""
        if not self.queued or self.open_calls:
            return self
        return Conversation((*self.messages, *self.queued))

    def settle(self, results: Mapping[str, ToolResult], reason: str) -> Conversation:
        """Close the last round: calls without a result get a typed `interrupted` one that says `reason`."""
        calls = self.open_calls
        if not calls:
            return self
        return self.add(
            ToolResults(
                tuple(results.get(call.id) or ToolResult(call.id, call.name, reason, "interrupted") for call in calls)
            )
        )

    def replaced(self, messages: Iterable[Message]) -> Conversation:
        """The same conversation over another history (compaction, restore), checked as a whole."""
        return attrs.evolve(self, messages=checked(messages))


def checked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as a tuple. Raises HistoryError if any pair of neighbours breaks the invariant."""
    kept = tuple(messages)
    before: Message | None = None
    seen: set[str] = set()
    for message in kept:
        _check_next(before, message)
        if isinstance(message, AssistantMessage):
            for call in message.calls:
                if call.id in seen:
                    raise HistoryError(f"the call id {call.id} is used twice")
                seen.add(call.id)
        before = message
    return kept


def _check_next(last: Message | None, message: Message) -> None:
    waiting = last.calls if isinstance(last, AssistantMessage) else ()
    match message:
        case ToolResults(results=results):
            wanted = [call.id for call in waiting]
            if not wanted:
                raise HistoryError("results without a call")
            given = [result.call_id for result in results]
            if given != wanted:
                raise HistoryError(f"results for {given} where {wanted} are due")
        case _ if waiting:
            raise HistoryError(f"{[call.id for call in waiting]} have no results yet")
        case AssistantMessage() as reply:
            if last is None:
                raise HistoryError("a conversation begins with a task")
            ids = [call.id for call in reply.calls]
            if len(set(ids)) != len(ids) or "" in ids:
                raise HistoryError(f"call ids {ids} are not unique")
        case UserMessage():
            pass
