"""An answer that came in pieces, joined without a seam; pure."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.messages import AssistantMessage, Message, UserMessage


def joined_text(messages: Sequence[Message], continue_note: str) -> str:
    """The last reply with those put before it that it continues: cut off by a length limit, or paused by the server."""
    pieces: list[str] = []
    index = len(messages) - 1
    while index >= 0 and isinstance(reply := messages[index], AssistantMessage):
        pieces.append(reply.text)
        index -= 1
        before = messages[index] if index >= 0 else None
        if isinstance(before, UserMessage) and before.text == continue_note:
            index -= 1
        elif not (isinstance(before, AssistantMessage) and before.finish == "pause"):
            break
    return "".join(reversed(pieces))
