"""A whole reply as the pieces in which it is streamed; pure."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.messages import Reasoning, Text, ToolCall
from runtime.model import Delta, Reply

PIECE_CHARS = 40


def deltas(reply: Reply) -> Iterator[Delta]:
    """A reply as the pieces in which it is streamed, more than one for all but the shortest."""
    index = 0
    for part in reply.parts:
        match part:
            case Reasoning(text=text):
                yield from (Delta("reasoning", piece) for piece in _pieces(text))
            case Text(text=text):
                yield from (Delta("text", piece) for piece in _pieces(text))
            case ToolCall(raw=raw):
                yield from (Delta("arguments", piece, index) for piece in _pieces(raw))
                index += 1
            case _:
                pass


def _pieces(text: str) -> Iterator[str]:
    size = max(1, min(PIECE_CHARS, -(-len(text) // 3)))
    for start in range(0, len(text), size):
        yield text[start : start + size]
