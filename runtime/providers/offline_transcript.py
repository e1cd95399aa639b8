"""A conversation as the offline policy reads it: what is asked now, and what was done about it since."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from runtime.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage


@attrs.frozen
class Done:
    """A call of ours and its result."""

    call: ToolCall
    result: ToolResult

    @property
    def ok(self) -> bool:
        return not self.result.is_error


@attrs.frozen
class Transcript:
    """The task and the finished calls since it was given.

    What a human says while the work goes on joins the task and begins the work anew; what is said after an answer is
    a new task.
    """

    task: str = ""
    done: tuple[Done, ...] = ()

    def of(self, name: str) -> tuple[Done, ...]:
        """The finished calls of one tool, in order."""
        return tuple(done for done in self.done if done.call.name == name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(done.call.name for done in self.done)


def read_transcript(messages: Sequence[Message]) -> Transcript:
    """Fold messages into what the policy decides on. The runtime's own notes are no part of the task."""
    task: list[str] = []
    done: list[Done] = []
    calls: dict[str, ToolCall] = {}
    answered = False
    for message in messages:
        match message:
            case UserMessage(kind="note"):
                pass
            case UserMessage(text=text, kind=kind):
                task = [text] if kind == "task" or answered else [*task, text]
                done = []
                answered = False
            case AssistantMessage():
                calls.update((call.id, call) for call in message.calls)
                answered = not message.calls
            case ToolResults(results=results):
                done.extend(Done(calls[result.call_id], result) for result in results if result.call_id in calls)
    return Transcript("\n".join(task), tuple(done))
