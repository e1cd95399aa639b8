"""JSON-RPC line by line: the same answers however the bytes are cut, and none that ends the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.editor.rpc import INTERNAL, INVALID_REQUEST, NO_METHOD, PARSE_ERROR, Peer, RpcError
from runtime.messages import JsonObject

CONVERSATION = (
    b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"say":"\xc3\xa4"}}\n'
    b"\n"
    b"no json\n"
    b'{"jsonrpc":"2.0","method":"note","params":{"n":1}}\n'
    b'{"jsonrpc":"2.0","id":"two","method":"unknown"}\r\n'
    b'{"jsonrpc":"2.0","id":99,"result":{}}\n'
    b"[]\n"
)


async def echo(params: JsonObject) -> JsonObject:
    await trio.lowlevel.checkpoint()
    return params


async def talk(pieces: list[bytes]) -> tuple[list[Any], list[JsonObject]]:
    """What is answered and heard when these pieces come in."""
    ours, theirs = trio.testing.memory_stream_pair()
    heard: list[JsonObject] = []
    peer = Peer(theirs, theirs, {"echo": echo}, {"note": heard.append})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.serve)
        for piece in pieces:
            await ours.send_all(piece)
            await trio.testing.wait_all_tasks_blocked()
        await ours.send_stream.aclose()
        nursery.start_soon(_close_later, peer, theirs)
        data = b""
        while chunk := await ours.receive_some():
            data += bytes(chunk)
    return sorted((json.loads(line) for line in data.splitlines()), key=str), heard


async def _close_later(peer: Peer, stream: Any) -> None:
    await trio.testing.wait_all_tasks_blocked()
    await stream.aclose()


async def test_the_answers_are_the_same_at_every_cut(autojump_clock: trio.testing.MockClock) -> None:
    """Cut at any place, the same bytes get the same answers."""
    whole = await talk([CONVERSATION])
    answers, heard = whole
    assert [{"n": 1}] == heard
    assert {1, "two", None} == {each["id"] for each in answers}
    assert {PARSE_ERROR, NO_METHOD, INVALID_REQUEST} == {each["error"]["code"] for each in answers if "error" in each}
    for at in range(1, len(CONVERSATION)):
        assert whole == await talk([CONVERSATION[:at], CONVERSATION[at:]]), at


@given(st.lists(st.binary(max_size=30), max_size=5))
@settings(max_examples=40, deadline=None)
def test_whatever_comes_in_the_conversation_goes_on(pieces: list[bytes]) -> None:
    """After any bytes, the next request on a line of its own is answered."""

    async def main() -> list[Any]:
        return (await talk([*pieces, b'\n{"jsonrpc":"2.0","id":7,"method":"echo","params":{}}\n']))[0]

    answers = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert {"jsonrpc": "2.0", "id": 7, "result": {}} in answers


async def test_who_asks_is_told_when_the_other_side_has_left() -> None:
    """A request that waits when the other side leaves fails at once, and so does every later one."""
    ours, theirs = trio.testing.memory_stream_pair()
    peer = Peer(theirs, theirs, {}, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.serve)

        async def ask() -> None:
            with pytest.raises(RpcError, match="has left") as caught:
                await peer.request("anything", {})
            assert INTERNAL == caught.value.code

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()
    with pytest.raises(RpcError, match="has left"):
        await peer.request("anything", {})


async def test_an_error_and_a_late_answer_are_taken_as_such() -> None:
    """An error answer is raised with its code; an answer to nothing is passed over."""
    ours, theirs = trio.testing.memory_stream_pair()
    peer = Peer(theirs, theirs, {}, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.serve)
        await ours.send_all(b'{"jsonrpc":"2.0","id":55,"result":1}\n{"jsonrpc":"2.0","id":{},"result":1}\n')

        async def answer() -> None:
            asked = json.loads(bytes(await ours.receive_some()))
            told = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -5, "message": "not today"}}
            await ours.send_all(json.dumps(told).encode() + b"\n")

        nursery.start_soon(answer)
        with pytest.raises(RpcError, match="not today") as caught:
            await peer.request("anything", {})
        assert -5 == caught.value.code
        await ours.aclose()
