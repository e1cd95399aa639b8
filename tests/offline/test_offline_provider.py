"""The offline provider streams what the policy decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from runtime.messages import Text, ToolCall, UserMessage
from runtime.model import Delta, ModelRequest, Provider, ProviderError, ToolSpec
from runtime.providers.offline import OfflineProvider
from runtime.providers.offline_policy import decide


def request(task: str, *tools: str) -> ModelRequest:
    return ModelRequest("extract", (), (UserMessage(task),), tuple(ToolSpec(name, "", {}) for name in tools))


@pytest.mark.parametrize(
    "asked",
    [
        request("Write a poem"),
        request("How are words split, quoted and counted?", "search_passages"),
        request("What is it?", "delegate_to_researcher"),
    ],
)
async def test_the_pieces_make_up_the_reply(asked: ModelRequest) -> None:
    """The streamed pieces make up the reply, and the reply is what the policy decides."""
    provider: Provider = OfflineProvider()
    seen: list[Delta] = []

    def emit(deltas: Sequence[Delta]) -> None:
        seen.extend(deltas)

    reply = await provider.complete(asked, emit)
    assert decide(asked) == reply
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    assert text == "".join(delta.text for delta in seen if delta.kind == "text")
    raw = "".join(part.raw for part in reply.parts if isinstance(part, ToolCall))
    assert raw == "".join(delta.text for delta in seen if delta.kind == "arguments")
    assert len(seen) > 1
    assert 0 == provider.count(asked)
    assert "offline" == provider.name


async def test_only_extract_is_there() -> None:
    """Another model's name is an error that says which one there is."""
    with pytest.raises(ProviderError, match="offline/extract"):
        await OfflineProvider().complete(ModelRequest("large", (), ()), lambda deltas: None)


async def test_a_cancelled_reply_stops() -> None:
    """A cancelled reply stops between two pieces."""
    seen: list[Delta] = []
    with trio.CancelScope() as scope:

        def emit(deltas: Sequence[Delta]) -> None:
            seen.extend(deltas)
            scope.cancel()

        await OfflineProvider().complete(request("Write a poem"), emit)
    assert scope.cancelled_caught
    assert 1 == len(seen)
