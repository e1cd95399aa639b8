"""A model that does its worst: what it answers follows from the world, the actor and the turn alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import attrs
import trio

from runtime.messages import (
    AssistantMessage,
    Finish,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResults,
    Usage,
    UserMessage,
    size_of,
)
from runtime.model import Delta, Emit, ErrorKind, ModelRequest, ProviderError, Reply

from .world import Manner, World

HOUR = 3600.0
KINDS: tuple[ErrorKind, ...] = (
    "truncated",
    "provider",
    "protocol",
    "http",
    "rate_limit",
    "overloaded",
    "auth",
    "context_length",
    "connect",
)
_STARTED = re.compile(r"([a-z]+-\d+) has started")
_WORDS = (
    "the",
    "a",
    "of",
    "to",
    "in",
    "it",
    "we",
    "find",
    "read",
    "file",
    "line",
    "case",
    "next",
    "then",
    "see",
    "more",
)


class Adversary:
    """The provider of every actor of a world."""

    name = "sim"

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0
        self.at_work = 0
        self.sizes: list[int] = []

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """One reply, error, stall, chant or crash. Raises ProviderError, RuntimeError."""
        self.calls += 1
        self.at_work += 1
        self.sizes.append(_size(request) + request.max_output_tokens)
        try:
            return await self._complete(request, emit)
        finally:
            self.at_work -= 1

    async def _complete(self, request: ModelRequest, emit: Emit) -> Reply:
        world = self.world
        random = world.chance(request.actor, request.turn, request.attempt, request.tool_choice)
        await self._stall(random)
        if random.random() < world.errors:
            raise self._error(random, request, emit)
        if random.random() < world.crashes and (request.actor != world.agents[0].name or random.random() < 0.2):
            raise RuntimeError("the provider has a fault of its own")
        if random.random() < world.chants:
            await self._chant(random, request, emit)
        reply = self._reply(random, request)
        for delta in _deltas(reply.parts):
            emit((delta,))
            if random.random() < 0.3:
                await trio.lowlevel.checkpoint()
        await self._stall(random, 0.3)
        return reply

    def count(self, request: ModelRequest) -> int | None:
        return _size(request) if self.world.counts == "exact" else None

    def forget(self, actor: str) -> None:
        del actor

    # --- what goes wrong -----------------------------------------------------------------------------------------

    async def _stall(self, random: Random, rate: float = 1.0) -> None:
        if random.random() < self.world.stalls * rate:
            await trio.sleep(random.choice((0.01, 1.0, 40.0, 5 * HOUR)))
        else:
            await trio.lowlevel.checkpoint()

    def _error(self, random: Random, request: ModelRequest, emit: Emit) -> ProviderError:
        partial = None
        if random.random() < 0.3:
            reply = self._reply(random, request)
            for delta in _deltas(reply.parts):
                emit((delta,))
            partial = attrs.evolve(reply, usage=reply.usage if random.random() < 0.5 else None)
        return ProviderError(
            random.choice(KINDS),
            "it did not work",
            retryable=random.random() < 0.7,
            retry_after=random.choice((None, None, 0.0, 5.0, 100.0, HOUR)),
            status=random.choice((None, 500)),
            partial=partial,
        )

    async def _chant(self, random: Random, request: ModelRequest, emit: Emit) -> None:
        """Say the same over and over, slower and slower, up to the output cap or, sometimes, with no end at all."""
        piece = "and so it goes on and on, as was said before. "
        endless = self.world.limits.timeout is not None and random.random() < 0.3
        said = 0
        while endless or said < request.max_output_tokens * 4:
            emit((Delta("text", piece),))
            said += len(piece)
            await trio.sleep(0.01 if said < 20_000 else said / 4_000)

    # --- what it says --------------------------------------------------------------------------------------------

    def _reply(self, random: Random, request: ModelRequest) -> Reply:
        manner = self.world.manners.get(request.agent, "talker")  # a summary is nobody's
        parts = list(self._parts(random, request, manner))
        calls = [part for part in parts if isinstance(part, ToolCall)]
        finish: Finish = "tool_calls" if calls else "stop"
        if manner == "rambler":
            finish = "length"
        elif random.random() < 0.12:
            finish = random.choice(
                ("stop", "tool_calls", "length", "content_filter", "refusal", "pause", "context_window")
            )
        parts, cut = _within(parts, request.max_output_tokens * 4 - 80)
        if cut:
            finish = "length"
        if finish == "length":
            parts = [_cut(part) if part is parts[-1] else part for part in parts]
        usage = self._usage(random, request, tuple(parts))
        billed = None
        if not self.world.honest and self.world.price is not None and usage is not None and random.random() < 0.3:
            billed = self.world.price.cost(usage) * random.uniform(0.5, 2.0)
        return Reply(tuple(parts), finish, usage, billed, "sim")

    def _parts(self, random: Random, request: ModelRequest, manner: Manner) -> Iterator[Part]:
        if random.random() < 0.1:
            yield Reasoning(_prose(random, 12), {"signature": "s"} if random.random() < 0.5 else None)
        off = request.tool_choice == "none"
        if manner == "mute":
            if random.random() < 0.4:
                yield Text(" " if random.random() < 0.5 else "")
                return
            manner = "worker"
        if manner == "talker":
            yield Text("I will do it now." if random.random() < 0.7 else _prose(random, 20))
            return
        if manner == "rambler":
            yield Text(_prose(random, 5))
            return
        if manner == "quick" or random.random() < 0.1 or (off and random.random() < 0.7):
            yield Text(_prose(random, random.choice((1, 8, 60))))
            return
        if random.random() < 0.4:
            yield Text(_prose(random, 6))
        yield from self._calls(random, request, manner)

    def _calls(self, random: Random, request: ModelRequest, manner: Manner) -> Iterator[ToolCall]:
        names = [tool.name for tool in request.tools] or ["nothing"]
        fixed = self.world.chance(request.actor)
        if manner == "looper":
            name = "wall" if "wall" in names else fixed.choice(names)
            yield _call(name, {"at": 1} if name == "wall" else self._arguments(fixed, request, name))
            return
        if manner == "cycler":
            ring = fixed.sample(names, min(len(names), fixed.randint(2, 4)))
            name = ring[request.turn % len(ring)]
            yield _call(name, self._arguments(fixed, request, name))
            return
        for index in range(random.choice((1, 1, 1, 2, 3, 5))):
            name = random.choice([each for each in names if each in ("act", "pay")] or names)
            if random.random() < 0.75:
                name = random.choice(names)
            if manner == "boss" and random.random() < 0.7:
                name = random.choice(
                    [each for each in names if each.startswith(("delegate_to_", "start_", "await_"))] or names
                )
            chance = random.random()
            if chance < 0.04:
                yield _call("no_such_tool", {"x": 1})
            elif chance < 0.08:
                yield _call(name, {"wrong": [index], "at": "x"})
            elif chance < 0.11:
                yield ToolCall("", name, None, '{"at": 1', "the arguments end in the middle", "p1")
            else:
                yield _call(name, self._arguments(random, request, name), index)

    def _arguments(self, random: Random, request: ModelRequest, name: str) -> Mapping[str, Any]:
        place = f"{request.actor}.{request.turn}.{random.randrange(1 << 30)}"
        match name:
            case "act" | "pay" | "note":
                return {"key": place}
            case "ask_user":
                return {"question": f"what of {place}?", "options": random.choice(([], ["yes", "no"]))}
            case "await_agent":
                known = _STARTED.findall(_heard(request.messages))
                return {"name": random.choice(known) if known and random.random() < 0.8 else "nobody-1"}
            case "read_result":
                return {"handle": "a0t0c0", "start": random.choice((0, 5_000))}
            case _ if name.startswith(("delegate_to_", "start_")):
                task = random.choice(("the same old task", f"a task of its own, {place}"))
                return {"task": task}
            case _:
                return {"at": random.choice((1, 1, 2, random.randrange(50)))}

    # --- what it costs -------------------------------------------------------------------------------------------

    def _usage(self, random: Random, request: ModelRequest, parts: tuple[Part, ...]) -> Usage | None:
        output = max(1, -(-size_of(AssistantMessage(parts)) // 4))
        real = _size(request)
        match self.world.counts:
            case "honest" | "exact":
                return Usage(real, min(output, request.max_output_tokens), cached_input=real // 3)
            case "missing":
                return None if random.random() < 0.6 else Usage(real, min(output, request.max_output_tokens))
            case "wrong":
                off = random.uniform(0.5, 2.0)
                return Usage(int(real * 2 * off), min(output, request.max_output_tokens))
            case "lying":
                return Usage(
                    real, request.max_output_tokens * random.choice((1, 2, 5)), estimated=random.random() < 0.1
                )


def _size(request: ModelRequest) -> int:
    """The tokens of a request, at four bytes each: never more than the runtime's own estimate."""
    size = sum(len(part) for part in request.system) + sum(len(tool.description) for tool in request.tools)
    return (size + sum(size_of(message) for message in request.messages)) // 4


def _heard(messages: tuple[Message, ...]) -> str:
    texts: list[str] = []
    for message in messages:
        match message:
            case ToolResults(results=results):
                texts += [result.content for result in results]
            case UserMessage(text=text):
                texts.append(text)
            case AssistantMessage():
                pass
    return "\n".join(texts)


def _call(name: str, arguments: Mapping[str, Any], index: int = 0) -> ToolCall:
    return ToolCall("", name, arguments, json.dumps(arguments), None, f"p{index}")


def _prose(random: Random, words: int) -> str:
    return " ".join(random.choice(_WORDS) + str(random.randrange(1000)) for _ in range(words))


def _within(parts: list[Part], room: int) -> tuple[list[Part], bool]:
    """As many parts as fit into so many bytes; whether any was left out."""
    kept: list[Part] = []
    for part in parts:
        if size_of(AssistantMessage((*kept, part))) > room and kept:
            return kept, True
        if size_of(AssistantMessage((*kept, part))) > room:
            return [Text("x" * max(0, min(room - 48, 100)))], True
        kept.append(part)
    return kept, False


def _cut(part: Part) -> Part:
    if isinstance(part, ToolCall):
        raw = part.raw[: len(part.raw) // 2]
        return attrs.evolve(part, arguments=None, raw=raw, arguments_error="cut off at the output limit")
    return part


def _deltas(parts: tuple[Part, ...]) -> Iterator[Delta]:
    index = 0
    for part in parts:
        match part:
            case Text(text=text):
                yield Delta("text", text)
            case Reasoning(text=text):
                yield Delta("reasoning", text)
            case ToolCall(raw=raw):
                yield Delta("arguments", raw, index)
                index += 1
            case _:
                pass
