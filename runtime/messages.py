"""What a conversation is made of: frozen messages, the same for every wire.

A reply keeps its parts in the order they came, with whatever opaque data the provider attached, because thinking
blocks and signatures must go back byte for byte on later turns. Call ids are ours: unique within a run and the
same on replay; what the provider called them is kept beside, for the record only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

JsonObject: TypeAlias = Mapping[str, Any]

Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "context_window"]
ResultKind: TypeAlias = Literal["ok", "error", "refused", "interrupted", "unknown"]


@attrs.frozen
class Usage:
    """Tokens of one call or of many: `input` is all prompt tokens, `output` all generated ones, the rest are parts."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            self.estimated or other.estimated,
        )

    @property
    def total(self) -> int:
        return self.input + self.output


@attrs.frozen
class Text:
    """Visible text; `opaque` is what the provider wants back with it (citations, a message item's id and phase)."""

    text: str
    opaque: JsonObject | None = None


@attrs.frozen
class Reasoning:
    """Readable reasoning; `opaque` is the provider's own block (signature and all), sent back unchanged."""

    text: str
    opaque: JsonObject | None = None


@attrs.frozen
class Opaque:
    """A block nobody here can read (redacted or encrypted reasoning, a server-side tool's block), kept for replay."""

    data: JsonObject


@attrs.frozen
class ToolCall:
    """One call the model asked for.

    `arguments` is None when `arguments_error` says why the received text (`raw`) is no JSON object: such a call is
    never run. `extra` holds unknown keys the provider wants back on this call (Gemini's thought signature).
    """

    id: str
    name: str
    arguments: JsonObject | None
    raw: str = ""
    arguments_error: str | None = None
    provider_id: str | None = None
    extra: JsonObject | None = None


Part: TypeAlias = Text | Reasoning | Opaque | ToolCall


@attrs.frozen
class Image:
    """An image shown to the model: `media_type` like image/png, `data` base64."""

    media_type: str
    data: str


@attrs.frozen
class UserMessage:
    """What a human or the runtime says: the task, a steering message, or a note of the runtime's own."""

    text: str
    kind: Literal["task", "steer", "note"] = "task"
    images: tuple[Image, ...] = ()


@attrs.frozen
class AssistantMessage:
    """One reply of a model. `model` is provider/model; `wire` names the dialect its opaque parts belong to."""

    parts: tuple[Part, ...]
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str = ""
    wire: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@attrs.frozen
class ToolResult:
    """The one result of one call. `kind` tells an ordinary error from a refusal, an interruption or an unknown end."""

    call_id: str
    name: str
    content: str
    kind: ResultKind = "ok"
    images: tuple[Image, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.kind != "ok"


@attrs.frozen
class ToolResults:
    """All results of one reply's calls, in call order."""

    results: tuple[ToolResult, ...]


Message: TypeAlias = UserMessage | AssistantMessage | ToolResults


def assign_call_ids(message: AssistantMessage, prefix: str) -> AssistantMessage:
    """Give each call of a reply its id of ours, `<prefix>c<index>`: a provider may send none, or the same one twice."""
    parts: list[Part] = []
    number = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append(attrs.evolve(part, id=f"{prefix}c{number}"))
            number += 1
        else:
            parts.append(part)
    return attrs.evolve(message, parts=tuple(parts))


FRAME_BYTES = 48
IMAGE_BYTES = 12_000
"""What a picture counts for at most: providers bill it by its size in pixels, not by the length of its base64."""


def size_of(message: Message) -> int:
    """UTF-8 bytes a message adds to a request, framing included: what the estimate of the next call stands on."""
    match message:
        case UserMessage():
            return FRAME_BYTES + _bytes(message.text) + _pictures(message.images)
        case ToolResults():
            return sum(FRAME_BYTES + _bytes(result.content) + _pictures(result.images) for result in message.results)
        case AssistantMessage():
            return FRAME_BYTES + sum(_part_bytes(part) for part in message.parts)


def _part_bytes(part: Part) -> int:
    match part:
        case Text():
            return _bytes(part.text)
        case Reasoning():
            return _bytes(part.text) + (len(str(part.opaque)) if part.opaque else 0)
        case Opaque():
            return len(str(part.data))
        case ToolCall():
            return FRAME_BYTES + len(part.name) + (_bytes(part.raw) if part.raw else len(str(part.arguments)))


def _pictures(images: tuple[Image, ...]) -> int:
    return sum(min(len(image.data), IMAGE_BYTES) for image in images)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
