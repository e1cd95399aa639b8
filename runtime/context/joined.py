"""An answer that came in pieces, joined without a seam; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.messages import AssistantMessage, Message, UserMessage

LEAST_OVERLAP, MOST_OVERLAP = 16, 2000
"""Characters: a repetition that is shorter may be meant, a longer one is not looked for."""


def joined_text(messages: Sequence[Message], continue_note: str) -> str:
    """The last reply with those put before it that it continues: cut off by a length limit, or paused by the server.

    Where a piece begins with the words the one before ended with, they stand there once.
    """
    text = ""
    for piece, cut in reversed(list(_pieces(messages, continue_note))):
        text = f"{text}{_behind(text, piece)}" if cut else f"{text}{piece}"
    return text


def continuations(messages: Sequence[Message], continue_note: str) -> int:
    """How often in a row the newest reply has been asked to go on."""
    return sum(cut for _, cut in _pieces(messages, continue_note))


def _pieces(messages: Sequence[Message], continue_note: str) -> Iterator[tuple[str, bool]]:
    """The replies that make up the newest answer, the last one first, each with whether it was asked to go on."""
    index = len(messages) - 1
    while index >= 0 and isinstance(reply := messages[index], AssistantMessage):
        before = messages[index - 1] if index else None
        asked = isinstance(before, UserMessage) and before.text == continue_note
        yield reply.text, asked
        index -= 2 if asked else 1
        if not asked and not (isinstance(before, AssistantMessage) and before.finish == "pause"):
            return


def _behind(text: str, piece: str) -> str:
    """The piece without the words at its beginning that the text already ends with."""
    for begin in (piece, piece.lstrip()):
        for size in range(min(len(text), len(begin), MOST_OVERLAP), LEAST_OVERLAP - 1, -1):
            if text.endswith(begin[:size]):
                return begin[size:]
    return piece
