"""What fills an actor's window, by part: tokens of the next request, shared out by size; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from runtime.limits.estimate import byte_length, tokens_of_bytes
from runtime.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ToolCall,
    ToolResults,
    Usage,
    UserMessage,
    size_of,
)
from runtime.model import ToolSpec

from .summary import SKILLS, USE_SKILL, is_summary

READING = "results of "


@attrs.frozen
class Share:
    """One part: what it is, how many entries make it up, and its tokens."""

    name: str
    count: int
    tokens: int


@attrs.frozen
class Filling:
    """`used` tokens of `window` (None where nobody knows the model's), by part, the largest first.

    `counted` says whether `used` rests on what the provider has counted.
    """

    used: int
    window: int | None
    counted: bool
    shares: tuple[Share, ...]

    @property
    def percent(self) -> int | None:
        return None if not self.window else round(100 * self.used / self.window)


def filling(
    prompt: Sequence[str],
    tools: Iterable[JsonObject],
    history: Sequence[Message],
    *,
    window: int | None,
    measured: tuple[int, int] | None = None,
) -> Filling:
    """How the next request over a history is made up. `measured`: so many messages of it made so many tokens."""
    sizes: dict[str, list[int]] = {}

    def take(name: str, size: int) -> None:
        sizes.setdefault(name, []).append(size)

    for text in prompt:
        take("system prompt", byte_length(text))
    for tool in tools:
        take("tool descriptions", ToolSpec(tool["name"], tool["description"], tool["parameters"]).size)
    for at, message in enumerate(history):
        for name, size in _parts(message, first=at == 0):
            take(name, size)
    whole = sum(map(sum, sizes.values()))
    used, counted = _tokens(history, whole, measured)
    shares = (Share(name, len(each), round(used * sum(each) / max(1, whole))) for name, each in sizes.items())
    return Filling(used, window, counted, tuple(sorted(shares, key=lambda share: -share.tokens)))


def _parts(message: Message, *, first: bool) -> Iterable[tuple[str, int]]:
    match message:
        case UserMessage() if first:
            yield "first task", size_of(message)
        case UserMessage(kind="note") if is_summary(message):
            yield "summary of what was compacted", size_of(message)
        case UserMessage(kind="note", text=text) if text.startswith(SKILLS):
            yield "skills", size_of(message)
        case UserMessage(kind="note"):
            yield "notes of the runtime", size_of(message)
        case UserMessage():
            yield "your messages", size_of(message)
        case ToolResults(results=results):
            for result in results:
                name = "skills" if result.name == USE_SKILL and not result.is_error else f"{READING}{result.name}"
                yield name, size_of(ToolResults((result,)))
        case AssistantMessage(parts=parts):
            calls = tuple(part for part in parts if isinstance(part, ToolCall))
            thought = tuple(part for part in parts if isinstance(part, (Reasoning, Opaque)))
            said = tuple(part for part in parts if not isinstance(part, (ToolCall, Reasoning, Opaque)))
            for name, some in (("answers of the model", said), ("reasoning", thought), ("calls", calls)):
                if some:
                    yield name, size_of(AssistantMessage(some))


def _tokens(history: Sequence[Message], whole: int, measured: tuple[int, int] | None) -> tuple[int, bool]:
    """The newest count there is, with what came behind it at two bytes each."""
    for at in range(len(history) - 1, -1, -1):
        message = history[at]
        usage = message.usage if isinstance(message, AssistantMessage) else None
        if usage is not None and usage.total:
            return _with_behind(usage, history[at + 1 :]), True
        if measured is not None and at + 1 == measured[0]:
            return measured[1] + tokens_of_bytes(sum(map(size_of, history[at + 1 :]))), True
    return tokens_of_bytes(whole), False


def _with_behind(usage: Usage, behind: Sequence[Message]) -> int:
    return usage.input + usage.output + tokens_of_bytes(sum(map(size_of, behind)))
