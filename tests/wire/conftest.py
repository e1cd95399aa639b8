"""What the tests of the wires share: one way to decode, one way to write a decoded reply down, chunks by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from runtime import wire
from runtime.messages import Reasoning, Text, ToolCall
from runtime.model import Delta, ProviderError, Reply

Shown: TypeAlias = dict[str, Any]
CASES = Path(__file__).parents[1] / "cases"
NOW = 1_796_000_000.0
STREAM = {"content-type": "text/event-stream"}


def decoded(
    name: wire.WireName,
    chunks: Iterable[bytes],
    status: int = 200,
    headers: Mapping[str, str] = STREAM,
    n: int = 1,
) -> tuple[Reply | None, ProviderError | None, list[Delta]]:
    """A reply or an error (with what it holds of a reply), and all deltas shown on the way."""
    decoder = wire.decoder(name, status, headers, n=n, now=NOW)
    deltas = [delta for chunk in chunks for delta in decoder.feed(chunk)]
    try:
        return decoder.close(), None, deltas
    except ProviderError as error:
        return error.partial, error, deltas


def written(reply: Reply | None, error: ProviderError | None) -> Shown:
    """A decoded reply in the words of the cases."""
    parts = reply.parts if reply is not None else ()
    usage = reply.usage if reply is not None else None
    return {
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "tool_calls": [
            {
                "id": part.provider_id,
                "name": part.name,
                "arguments": part.arguments,
                "arguments_error": part.arguments_error is not None,
            }
            for part in parts
            if isinstance(part, ToolCall)
        ],
        "finish": reply.finish if reply is not None and error is None else None,
        "usage": None
        if usage is None
        else {
            "input": usage.input,
            "output": usage.output,
            "cached_input": usage.cached_input,
            "cache_write": usage.cache_write,
            "reasoning": usage.reasoning,
        },
        "error": None if error is None else {"kind": error.kind, "retryable": error.retryable},
    }


def sse(events: Sequence[Any]) -> bytes:
    """Events as a body: objects as JSON under the name of their type, texts as they are."""
    lines: list[str] = []
    for event in events:
        if isinstance(event, str):
            lines.append(f"data: {event}\n\n")
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


Decode: TypeAlias = Callable[..., tuple[Reply | None, ProviderError | None, list[Delta]]]


@pytest.fixture(name="decode")
def decode_fixture() -> Decode:
    """`decoded`, for a test that wants the values themselves."""
    return decoded


@pytest.fixture(name="written")
def written_fixture() -> Callable[[Reply | None, ProviderError | None], Shown]:
    return written


Read: TypeAlias = Callable[..., Shown]


@pytest.fixture(name="read")
def read_fixture() -> Read:
    """A body (bytes, or events) decoded whole and written down, with the deltas' texts by kind and index."""

    def read(
        name: wire.WireName, body: Any, status: int = 200, headers: Mapping[str, str] = STREAM, n: int = 1
    ) -> Shown:
        data = body if isinstance(body, bytes) else sse(body)
        reply, error, deltas = decoded(name, [data], status, headers, n)
        again = [data[i : i + 1] for i in range(len(data))]
        assert written(*decoded(name, again, status, headers, n)[:2]) == written(reply, error)
        shown: dict[tuple[str, int], str] = {}
        for delta in deltas:
            shown[delta.kind, delta.index] = shown.get((delta.kind, delta.index), "") + delta.text
        return {**written(reply, error), "shown": shown}

    return read


@pytest.fixture(name="chat")
def chat_fixture(read: Read) -> Callable[..., Shown]:
    """A chat stream of deltas: `chat({"content": "a"}, ..., finish="stop")`; texts and whole chunks are taken too."""

    def chat(*deltas: Any, finish: str | None = "stop", done: bool = True, **last: Any) -> Shown:
        events: list[Any] = []
        for delta in deltas:
            if isinstance(delta, str) or "choices" in delta or "error" in delta:
                events.append(delta)
            else:
                events.append({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if finish is not None or last:
            events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **last})
        return read("openai-chat", [*events, *(["[DONE]"] if done else [])])

    return chat
