"""What came after the last reply, cut down so that one more turn fits; pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from runtime.limits.estimate import byte_length
from runtime.messages import AssistantMessage, Message, ToolResult, ToolResults, UserMessage

CUT = " [cut]"


def squeezed(messages: Sequence[Message], excess: int) -> tuple[Message, ...]:
    """The messages, with the longest texts after the last reply cut until `excess` UTF-8 bytes are saved.

    Results stay where they are, however little is left of them; the very last message is not touched. Where there is
    not so much to save, what there is goes.
    """
    begin = len(messages)
    while begin and not isinstance(messages[begin - 1], AssistantMessage):
        begin -= 1
    tail = messages[begin:-1]
    sizes = sorted(byte_length(text) for message in tail for text in _texts(message))
    level = level_of(sizes, sum(sizes) - excess)
    return (*messages[:begin], *(_cut(message, level) for message in tail), *messages[begin:][-1:])


def level_of(sizes: list[int], room: int) -> int:
    """The size to which all longer ones are cut, so that together they have at most `room`; `sizes` rise."""
    for place, size in enumerate(sizes):
        share = max(0, room) // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return sizes[-1] if sizes else 0


def _texts(message: Message) -> tuple[str, ...]:
    match message:
        case ToolResults(results=results):
            return tuple(result.content for result in results)
        case UserMessage(text=text):
            return (text,)
        case AssistantMessage():
            return ()


def _cut(message: Message, level: int) -> Message:
    match message:
        case ToolResults(results=results):
            return ToolResults(tuple(_cut_result(result, level) for result in results))
        case UserMessage(text=text) if byte_length(text) > level:
            return attrs.evolve(message, text=_head(text, level))
        case _:
            return message


def _cut_result(result: ToolResult, level: int) -> ToolResult:
    if byte_length(result.content) <= level:
        return result
    return attrs.evolve(result, content=_head(result.content, level))


def _head(text: str, size: int) -> str:
    mark = CUT if size > 2 * len(CUT) else ""
    return text.encode("utf-8", "surrogatepass")[: size - len(mark)].decode("utf-8", "ignore") + mark
