"""The provider `offline/extract`: no language model, only quotes, so that everything around a model works without one.

What it says is decided in `offline_policy`, a pure function; here it is streamed like any other reply.
"""

from __future__ import annotations

import trio

from runtime.model import Emit, ModelRequest, ProviderError, Reply

from .offline_policy import decide
from .pieces import deltas

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
