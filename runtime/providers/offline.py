"""The provider `offline/extract`: no language model, only quotes, so that everything around a model works without one.

What it says is decided in `offline_policy`, a pure function; here it is streamed like any other reply.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from runtime.messages import Text, ToolCall
from runtime.model import Delta, Emit, ModelRequest, ProviderError, Reply

from .offline_policy import decide

PIECE_CHARS = 48
MODEL = "extract"


class OfflineProvider:
    """Deterministic and without state; it uses no tokens and costs nothing."""

    @property
    def name(self) -> str:
        return "offline"

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """The one reply to this request, streamed in pieces. A cancelled call leaves nothing behind.

        Raises ProviderError for any model but `extract`.
        """
        if request.model != MODEL:
            raise ProviderError("provider", f"unknown model 'offline/{request.model}'; there is offline/{MODEL}")
        reply = decide(request)
        await trio.lowlevel.checkpoint()
        for delta in deltas(reply):
            emit((delta,))
            await trio.lowlevel.checkpoint()
        return reply

    def count(self, request: ModelRequest) -> int:
        """Always 0: nothing is metered."""
        del request
        return 0

    def forget(self, actor: str) -> None:
        """Nothing is kept for an actor."""
        del actor


def deltas(reply: Reply) -> Iterator[Delta]:
    """A reply as the pieces in which it is streamed."""
    index = 0
    for part in reply.parts:
        match part:
            case Text(text=text):
                yield from (Delta("text", piece) for piece in _pieces(text))
            case ToolCall(raw=raw):
                yield from (Delta("arguments", piece, index) for piece in _pieces(raw))
                index += 1
            case _:
                pass


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS))
