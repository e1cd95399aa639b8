"""The provider `scripted/FILE.yaml`: replies written down beforehand, for tests and demonstrations.

Which turn comes next follows from the request alone (how many replies the actor has had, how often this one failed),
so a run that is resumed goes on where it was. What is remembered is only which entries were ever used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import trio

from runtime.messages import AssistantMessage, Finish, Part, Reasoning, Text, ToolCall, ToolResults, Usage, UserMessage
from runtime.model import Emit, ModelRequest, ProviderError, Reply

from .pieces import deltas
from .script import Failure, Script, Tokens, Turn, load_script

CHARS_PER_TOKEN = 4
CUT_OFF = "the reply was cut off at its output limit inside these arguments"


class ScriptedProvider:
    """Replies from a script. Every actor takes its agent's list from the beginning."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._used: dict[str, set[int]] = {name: set() for name in script.turns}

    @classmethod
    def load(cls, path: Path) -> ScriptedProvider:
        """Read a script. Raises DefinitionError listing its faults, UsageError where there is none to read."""
        return cls(load_script(path))

    @property
    def name(self) -> str:
        return "scripted"

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """The scripted reply, streamed in pieces, after its `stall`. A cancelled call leaves nothing behind.

        Raises ProviderError where the script says so, and when it has no turn left for this actor.
        """
        turn = self._turn(request)
        await trio.sleep(turn.stall)
        reply = reply_of(turn, request)
        for delta in deltas(reply):
            emit((delta,))
            await trio.sleep(turn.pace)
        if turn.fail is not None:
            raise _error(turn.fail, reply if reply.parts or turn.usage != Tokens() else None)
        return reply

    def count(self, request: ModelRequest) -> int | None:
        """The turn's `usage.input`, None where the script says nothing about it."""
        name = self.script.list_for(request.agent, request.actor)
        place = self.script.position(name, request.turn, request.attempt) if name is not None else None
        return None if name is None or place is None else self.script.turns[name][place].usage.input

    def forget(self, actor: str) -> None:
        """Nothing is kept for an actor."""
        del actor

    def unused(self) -> Mapping[str, int]:
        """How many entries of which list no actor has come to; empty when the script was used up."""
        left = {name: len(turns) - len(self._used[name]) for name, turns in self.script.turns.items()}
        return {name: count for name, count in left.items() if count}

    def _turn(self, request: ModelRequest) -> Turn:
        script = self.script
        name = script.list_for(request.agent, request.actor)
        if name is None:
            known = ", ".join(script.turns) or "nobody"
            raise ProviderError("provider", f"{script.source} has no turns for '{request.agent}'; it has {known}")
        place = script.position(name, request.turn, request.attempt)
        if place is None:
            count = script.replies(name)
            raise ProviderError(
                "provider",
                f"{script.source}: the script of '{name}' is used up: "
                f"it has {count} {'reply' if count == 1 else 'replies'}, "
                f"{request.actor or request.agent} asks for number {request.turn + 1}",
            )
        self._used[name].add(place)
        return script.turns[name][place]


def reply_of(turn: Turn, request: ModelRequest) -> Reply:
    """A turn as the reply to this request: without calls where tools are off, cut at the output cap."""
    parts: list[Part] = [Reasoning(turn.reasoning)] if turn.reasoning else []
    parts += [Text(turn.text)] if turn.text else []
    if request.tool_choice != "none":
        parts += [ToolCall("", call.name, call.arguments, call.raw, call.error, call.id) for call in turn.calls]
    size = sum(_size(part) for part in parts)
    output = turn.usage.output if turn.usage.output is not None else -(-size // CHARS_PER_TOKEN)
    finish: Finish = turn.finish or ("tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop")
    if output > request.max_output_tokens:
        parts = list(_cut(parts, size * request.max_output_tokens // output))
        output = request.max_output_tokens
        finish = "length"
    return Reply(tuple(parts), finish, _usage(turn, request, output), turn.cost, "scripted")


def _cut(parts: list[Part], room: int) -> Iterator[Part]:
    """The parts that fit into `room` characters; the one in which it ends is cut."""
    for part in parts:
        if room <= 0:
            return
        match part:
            case Text(text=text):
                yield Text(text[:room])
            case Reasoning(text=text):
                yield Reasoning(text[:room])
            case ToolCall(raw=raw) if _size(part) > room:
                kept = raw[: max(0, room - len(part.name))]
                yield attrs.evolve(part, arguments=None, raw=kept, arguments_error=CUT_OFF)
            case _:
                yield part
        room -= _size(part)


def _size(part: Part) -> int:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return len(text)
        case ToolCall(name=name, raw=raw):
            return len(name) + len(raw)
        case _:
            return 0


def _usage(turn: Turn, request: ModelRequest, output: int) -> Usage | None:
    said = turn.usage
    if said.unknown:
        return None
    guessed = said.input is None or said.output is None
    return Usage(
        input=said.input if said.input is not None else -(-_request_size(request) // CHARS_PER_TOKEN),
        output=output,
        cached_input=said.cached_input,
        cache_write=said.cache_write,
        reasoning=said.reasoning,
        estimated=said.estimated or guessed,
    )


def _request_size(request: ModelRequest) -> int:
    """The characters of a request, near enough to tell a long one from a short one."""
    size = sum(len(part) for part in request.system) + sum(len(tool.description) for tool in request.tools)
    for message in request.messages:
        match message:
            case UserMessage(text=text):
                size += len(text)
            case AssistantMessage(parts=parts):
                size += sum(_size(part) for part in parts)
            case ToolResults(results=results):
                size += sum(len(result.content) for result in results)
    return size


def _error(failure: Failure, partial: Reply | None) -> ProviderError:
    return ProviderError(
        failure.kind,
        failure.message or f"scripted failure: {failure.kind}",
        failure.retryable,
        failure.retry_after,
        failure.status,
        partial,
    )
