"""A history made smaller, cheapest means first, cut only where no pair is torn; pure.

Nothing from the cut on is touched. Before it, old results are shortened, reasoning is dropped that the wire does not
ask for, older readings of a file give way to the newest; what is still too much goes into a summary. A person's words
and the first task stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from runtime.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage, size_of
from runtime.wire.omission import without_reasoning

from .excerpt import shorten

SHORT_BYTES = 1000
"""An old result that is no longer than this stays whole."""
SHORT_CHARS = 500
"""What is left of a longer one."""
NEVER_SHORTENED = frozenset({"use_skill"})
READER = "read_file"
_SHOWN = re.compile(r"\A(?P<path>.*): lines (?P<first>\d+)-(?P<last>\d+) of ")


@attrs.frozen
class Step:
    """A history after one step; `whole` are the texts it no longer shows, by the handle they must be kept under."""

    messages: tuple[Message, ...]
    said: str = ""
    whole: Mapping[str, str] = attrs.field(factory=dict[str, str])


def size(messages: Sequence[Message]) -> int:
    """UTF-8 bytes, as the gauge counts them."""
    return sum(map(size_of, messages))


# --- where to cut ------------------------------------------------------------------------------------------------


def is_border(messages: Sequence[Message], at: int) -> bool:
    """Whether the history may be cut before the message `at`: no call is parted from its results, no reply from what
    continues it."""
    if at <= 0 or isinstance(messages[at], ToolResults):
        return False
    before = messages[at - 1]
    if isinstance(before, AssistantMessage):
        return not before.calls and before.finish not in ("pause", "length")
    if isinstance(before, UserMessage) and before.kind == "note" and at > 1:
        cut = messages[at - 2]
        return not (isinstance(cut, AssistantMessage) and cut.finish == "length")
    return True


def cut_before(messages: Sequence[Message], room: int) -> int:
    """Where what stays untouched begins: at the oldest border behind which there are at most `room` bytes, but never
    later than the newest reply. 0 where there is no border."""
    newest = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AssistantMessage)), 0)
    while newest and not is_border(messages, newest):
        newest -= 1
    cut, behind = newest, size(messages[newest:])
    for at in range(newest - 1, 0, -1):
        behind += size_of(messages[at])
        if behind > room:
            break
        if is_border(messages, at):
            cut = at
    return cut


# --- the cheap steps ---------------------------------------------------------------------------------------------


def handles(messages: Sequence[Message], cut: int) -> tuple[str, ...]:
    """Calls whose result the cheap steps may take away: their whole text is to be looked up first."""
    return tuple(result.call_id for result in _results(messages[:cut]) if _may_go(result))


def shortened(messages: Sequence[Message], cut: int, excess: int, whole: Callable[[ToolResult], str]) -> Step:
    """Old results as head, tail and handle, the oldest first, until `excess` bytes are saved."""
    kept: dict[str, str] = {}

    def change(result: ToolResult) -> ToolResult:
        nonlocal excess
        if excess <= 0 or not _may_go(result):
            return result
        text = whole(result)
        pictures = (
            f"\n[{len(result.images)} pictures left out; call the tool again to see them]" if result.images else ""
        )
        short = shorten(text, SHORT_CHARS, result.call_id) + pictures
        changed = attrs.evolve(result, content=short, images=())
        saved = _weight(result) - _weight(changed)
        if saved <= 0:
            return result
        excess -= saved
        kept[result.call_id] = text
        return changed

    done = tuple(_with_results(message, change) for message in messages[:cut])
    return Step((*done, *messages[cut:]), _counted(len(kept), "result shortened", "results shortened"), kept)


def without_old_reasoning(messages: Sequence[Message], cut: int) -> Step:
    """The history without the reasoning that need not go back."""
    spoken = [
        at
        for at, message in enumerate(messages)
        if isinstance(message, UserMessage) and not (at and isinstance(messages[at - 1], ToolResults))
    ]
    last_turn = spoken[-1] if spoken else 0
    done: list[Message] = []
    count = 0
    for at, message in enumerate(messages[:cut]):
        less = without_reasoning(message, settled=at < last_turn) if isinstance(message, AssistantMessage) else message
        count += less is not message
        done.append(less)
    said = _counted(count, "reply without its reasoning", "replies without their reasoning")
    return Step((*done, *messages[cut:]), said)


def folded(messages: Sequence[Message], cut: int, whole: Callable[[ToolResult], str]) -> Step:
    """Old readings of a file that a newer reading covers are replaced by a word that says so."""
    arguments = {call.id: call.arguments for message in messages for call in _calls(message) if call.name == READER}
    newer: dict[str, list[tuple[int, int]]] = {}
    superseded: set[str] = set()
    for result in reversed(list(_results(messages))):
        given = arguments.get(result.call_id)
        if given is None or result.is_error or (found := _SHOWN.match(result.content)) is None:
            continue
        first, last = int(found["first"]), int(found["last"])
        seen = newer.setdefault(str(given.get("path", "")), [])
        if any(begin <= first and last <= end for begin, end in seen):
            superseded.add(result.call_id)
        else:
            seen.append((first, last))
    kept: dict[str, str] = {}

    def change(result: ToolResult) -> ToolResult:
        if result.call_id not in superseded:
            return result
        first = result.content.split("\n", 1)[0]
        text = (
            f'[{first}: read again later, see there; read_result(handle="{result.call_id}") shows this older reading]'
        )
        changed = attrs.evolve(result, content=text)
        if _weight(changed) >= _weight(result):
            return result
        kept[result.call_id] = whole(result)
        return changed

    done = tuple(_with_results(message, change) for message in messages[:cut])
    said = _counted(len(kept), "older reading folded into the newest", "older readings folded into the newest")
    return Step((*done, *messages[cut:]), said, kept)


def unmeasured(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without the usage that came with them: it counted another history."""
    return tuple(
        attrs.evolve(message, usage=None) if isinstance(message, AssistantMessage) and message.usage else message
        for message in messages
    )


def _may_go(result: ToolResult) -> bool:
    return result.name not in NEVER_SHORTENED and _weight(result) > SHORT_BYTES


def _weight(result: ToolResult) -> int:
    return size_of(ToolResults((result,)))


def _calls(message: Message) -> tuple[ToolCall, ...]:
    return message.calls if isinstance(message, AssistantMessage) else ()


def _results(messages: Sequence[Message]) -> Iterator[ToolResult]:
    return (result for message in messages if isinstance(message, ToolResults) for result in message.results)


def _with_results(message: Message, change: Callable[[ToolResult], ToolResult]) -> Message:
    if not isinstance(message, ToolResults):
        return message
    results = tuple(map(change, message.results))
    return message if all(a is b for a, b in zip(results, message.results, strict=True)) else ToolResults(results)


def _counted(count: int, one: str, many: str) -> str:
    return "" if not count else f"{count} {one if count == 1 else many}"
