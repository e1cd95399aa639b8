"""Servers that send without an end, or more than they seem to: the call fails at once and its connection is closed."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from runtime.events import ModelFailed

MEGABYTE = 1 << 20


def zipped(data: bytes, times: int) -> bytes:
    """Much data in little: `times` pieces in the format of gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(data) for _ in range(times)) + packer.flush()


@pytest.mark.parametrize("kind", ["line", "bomb", "bomb of JSON"])
async def test_a_reply_without_an_end_is_given_up_at_once(
    run: Any, server: Any, answer: Callable[..., Any], kind: str
) -> None:
    """An endless line and a gzip bomb are protocol errors, asked for once, and leave no connection open."""
    match kind:
        case "line":
            server.answers(answer((b"data: ", *[b"a" * MEGABYTE] * 24), then="stall"))
        case "bomb":
            body = zipped(b"a" * MEGABYTE, 300)
            server.answers(
                answer((body,), headers={"content-type": "text/event-stream", "content-encoding": "gzip"}, then="stall")
            )
        case _:
            body = zipped(b"[" * MEGABYTE, 150)
            server.answers(
                answer((body,), headers={"content-type": "application/json", "content-encoding": "gzip"}, then="stall")
            )
    tracemalloc.start()
    try:
        outcome = await run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (failed,) = outcome.of(ModelFailed)
    assert "is larger than" in str(failed), str(failed)
    assert len(server.seen) == 1, "it is not asked for again"
    assert peak < 160 * MEGABYTE
    assert outcome.report is not None
    assert outcome.report.status == "failed"


async def test_a_compressed_reply_is_unpacked_whole(
    run: Any, server: Any, answer: Callable[..., Any], say: Callable[..., tuple[bytes, ...]]
) -> None:
    """A reply that unpacks to many times its size, in several pieces, arrives to its last byte."""
    body = b"".join((*[b": " + b"-" * 1000 + b"\n"] * 4000, *say("openai-chat", "done")))
    packed = zipped(body, 1)
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    server.answers(answer((packed[:1000], packed[1000:]), headers=headers))
    outcome = await run()
    assert outcome.report.status == "completed"
    assert outcome.report.text == "done"
