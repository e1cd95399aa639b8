"""Anthropic Messages streams: each fact of the wire that the shared cases leave open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.messages import Opaque, Reasoning, Text, ToolCall

START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 25, "output_tokens": 1},
    },
}
STOP: dict[str, Any] = {"type": "message_stop"}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": usage or {"output_tokens": 9},
    }


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return [start(index, type="text", text=""), *(delta(index, "text_delta", text=p) for p in pieces), stop(index)]


def tool(index: int, *pieces: str, id: str = "toolu_1", name: str = "f") -> list[dict[str, Any]]:
    block = start(index, type="tool_use", id=id, name=name, input={})
    return [block, *(delta(index, "input_json_delta", partial_json=p) for p in pieces), stop(index)]


def flat(events: Any) -> list[Any]:
    return [event for given in events for event in (given if isinstance(given, list) else [given])]  # pyright: ignore[reportUnknownVariableType]


@pytest.fixture(name="messages")
def messages_fixture(read: Any) -> Any:
    def messages(*events: Any, reason: str | None = "end_turn") -> dict[str, Any]:
        found: dict[str, Any] = read("anthropic-messages", [START, *flat(events), end(reason), STOP])
        return found

    return messages


@pytest.fixture(name="parts")
def parts_fixture(decode: Any) -> Any:
    def parts(*events: Any) -> Any:
        body = "".join(f"data: {json.dumps(e)}\n\n" for e in [START, *flat(events), end(), STOP])
        reply, _, _ = decode("anthropic-messages", [body.encode()])
        return reply.parts

    return parts


def test_text_and_usage_make_a_reply(messages: Any) -> None:
    """(301) The plain shape."""
    found = messages({"type": "ping"}, text(0, "Hel", "lo"))
    assert (found["text"], found["finish"], found["usage"]["input"], found["usage"]["output"]) == (
        "Hello",
        "stop",
        25,
        9,
    )


def test_a_tool_call_is_read_from_its_pieces(messages: Any) -> None:
    """(302, 303) Pieces of JSON are joined and read at the end."""
    found = messages(tool(0, "", '{"a', '":1}'), reason="tool_use")
    assert found["tool_calls"] == [{"id": "toolu_1", "name": "f", "arguments": {"a": 1}, "arguments_error": False}]
    assert found["shown"] == {("arguments", 0): '{"a":1}'}


def test_thinking_keeps_its_signature_and_its_tokens_are_counted(parts: Any, read: Any) -> None:
    """(310) A thinking block is readable, goes back whole, and its tokens are part of the output."""
    events = [
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="let "),
        delta(0, "thinking_delta", thinking="me"),
        delta(0, "signature_delta", signature="S=="),
        stop(0),
    ]
    assert parts(*events, text(1, "t")) == (
        Reasoning("let me", {"type": "thinking", "thinking": "let me", "signature": "S=="}),
        Text("t"),
    )
    usage = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 21}}
    assert read("anthropic-messages", [START, end("end_turn", **usage), STOP])["usage"]["reasoning"] == 21


def test_interleaved_thinking_keeps_its_order(parts: Any) -> None:
    """(313, R45) Thinking, call, thinking, call stay in that order, each block whole."""

    def thinking(index: int, words: str) -> list[dict[str, Any]]:
        return [
            start(index, type="thinking", thinking="", signature=""),
            delta(index, "thinking_delta", thinking=words),
            delta(index, "signature_delta", signature=f"S{index}"),
        ]

    found = parts(thinking(0, "a"), tool(1, "{}", id="t1"), thinking(2, "b"), tool(3, "{}", id="t2"))
    assert [type(part) for part in found] == [Reasoning, ToolCall, Reasoning, ToolCall]
    assert found[2].opaque == {"type": "thinking", "thinking": "b", "signature": "S2"}


def test_text_in_the_start_block_counts(messages: Any) -> None:
    """(314) Deltas are appended to what the start already holds."""
    assert messages(start(0, type="text", text="Hel"), delta(0, "text_delta", text="lo"))["text"] == "Hello"


def test_a_late_signature_finds_its_block(parts: Any) -> None:
    """A signature that comes after the text began goes to the block its index names."""
    found = parts(
        start(0, type="thinking", thinking="x"),
        start(1, type="text", text="t"),
        delta(0, "signature_delta", signature="S"),
    )
    assert found[0].opaque["signature"] == "S"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ({"input_tokens": 10, "output_tokens": 1}, {"output_tokens": 5}, (10, 5, 0, 0)),
        ({"input_tokens": 10, "output_tokens": 1}, {"input_tokens": 12, "output_tokens": 5}, (12, 5, 0, 0)),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500},
            {"output_tokens": 5},
            (9510, 5, 9000, 500),
        ),
        ({"input_tokens": 10}, {"cache_read_input_tokens": 7, "output_tokens": 5}, (17, 5, 7, 0)),
        (
            {"input_tokens": 10, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}},
            {"output_tokens": 1},
            (17, 1, 0, 7),
        ),
        ({"input_tokens": 10, "output_tokens": 4}, {"output_tokens": None}, (10, 4, 0, 0)),
    ],
)
def test_usage_is_cumulative_field_by_field(read: Any, first: Any, last: Any, expected: Any) -> None:
    """(320-325, R25) Later values replace earlier ones, null replaces nothing, cache tokens are input."""
    begin: dict[str, Any] = {"type": "message_start", "message": {"content": [], "usage": first}}
    usage = read("anthropic-messages", [begin, end("end_turn", **last), STOP])["usage"]
    assert (usage["input"], usage["output"], usage["cached_input"], usage["cache_write"]) == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "stop"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_window"),
        ("something_new", "stop"),
    ],
)
def test_stop_reasons_are_normalised(messages: Any, reason: str, expected: str) -> None:
    """(330-337, 339) Every stop reason has its meaning; tool_use without a call is a stop."""
    assert messages(text(0, "x"), reason=reason)["finish"] == expected


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use", "pause_turn", "something_new"])
def test_a_finished_call_decides(messages: Any, reason: str) -> None:
    """(364) With a client call the turn goes on, whatever the reason says."""
    assert messages(tool(0, "{}"), reason=reason)["finish"] == "tool_calls"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_cut_stays_a_cut_beside_calls(messages: Any, reason: str) -> None:
    """(331) Calls do not undo a limit or a refusal."""
    assert messages(tool(0, '{"a'), reason=reason)["finish"] != "tool_calls"


def test_an_empty_turn_is_legal(messages: Any) -> None:
    """(338) end_turn without any content is a finished reply."""
    found = messages()
    assert (found["text"], found["finish"], found["error"]) == ("", "stop", None)


def test_broken_json_is_an_error_on_its_call(messages: Any) -> None:
    """(332) Eagerly streamed input may be broken: that call is marked."""
    found = messages(tool(0, '{"a": tru'), tool(1, "{}", id="t2"), reason="tool_use")
    assert [c["arguments"] for c in found["tool_calls"]] == [None, {}]


def test_unknown_blocks_are_kept_whole_or_not_at_all(parts: Any) -> None:
    """(346) A block of an unknown type goes back as it came; with deltas nobody knows it would be half a block."""
    found = parts(
        start(0, type="novelty", data=1),
        start(1, type="novelty", data=2),
        delta(1, "novelty_delta", more=3),
        text(2, "t"),
    )
    assert found == (Opaque({"type": "novelty", "data": 1}), Text("t"))


def test_server_tools_are_kept_and_never_called(parts: Any) -> None:
    """(348, 349) A server's own tool use is opaque, its streamed input put together."""
    use = start(0, type="server_tool_use", id="srv", name="web_search", input={})
    result = start(1, type="web_search_tool_result", tool_use_id="srv", content=[{"type": "x"}])
    found = parts(use, delta(0, "input_json_delta", partial_json='{"q":"x"}'), stop(0), result, stop(1), tool(2, "{}"))
    assert found[0] == Opaque({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"q": "x"}})
    assert found[1] == Opaque({"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"type": "x"}]})
    assert isinstance(found[2], ToolCall)


def test_citations_stay_with_their_text(parts: Any) -> None:
    """(348) Citations are kept for replay."""
    found = parts(
        start(0, type="text", text=""), delta(0, "citations_delta", citation={"u": 1}), delta(0, "text_delta", text="t")
    )
    assert found == (Text("t", {"citations": [{"u": 1}]}),)


def test_types_only_in_event_lines_are_enough(read: Any) -> None:
    """(356) Data without a type is read by the name of its event."""
    body = (
        b'event: content_block_start\ndata: {"index":0,"content_block":{"type":"text","text":""}}\n\n'
        b'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"x"}}\n\n'
        b'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\nevent: message_stop\ndata: {}\n\n'
    )
    assert read("anthropic-messages", body)["text"] == "x"


def test_blocks_need_no_stop_events(messages: Any) -> None:
    """(357) Two blocks without their stops are two blocks."""
    found = messages(start(0, type="text", text="a"), start(1, type="text", text="b"))
    assert found["text"] == "ab"


def test_an_index_used_again_is_another_block(messages: Any) -> None:
    """A gateway that numbers every block 0 sends as many blocks."""
    found = messages(text(0, "a"), tool(0, "{}", id="x"), tool(0, '{"b":1}', id="y"), reason="tool_use")
    assert (found["text"], [c["id"] for c in found["tool_calls"]]) == ("a", ["x", "y"])


def test_a_stop_reason_without_message_stop_is_complete(read: Any) -> None:
    """(359, 360) The stop reason is the end; a trailing [DONE] is nothing."""
    found = read("anthropic-messages", [START, *text(0, "x"), end(), "[DONE]"])
    assert (found["text"], found["error"]) == ("x", None)


@pytest.mark.parametrize("events", [[], [START], [START, *tool(0, '{"a":1}')], [START, *text(0, "x"), end(None)]])
def test_without_a_stop_reason_it_is_truncated(read: Any, events: Any) -> None:
    """(376-379) Nothing is complete before its stop reason, not even a finished call."""
    assert read("anthropic-messages", events)["error"] == {"kind": "truncated", "retryable": True}


@pytest.mark.parametrize(
    ("kind", "expected", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate_limit", True),
        ("api_error", "provider", True),
        ("timeout_error", "provider", True),
        ("invalid_request_error", "provider", False),
        ("authentication_error", "auth", False),
        ("permission_error", "auth", False),
    ],
)
def test_an_error_event_fails_the_call(read: Any, kind: str, expected: str, retryable: bool) -> None:
    """(370-375, R39) An error in the middle is a failure, and what had arrived is never run."""
    events = [
        START,
        *text(0, "x"),
        *tool(1, '{"a')[:-1],
        {"type": "error", "error": {"type": kind, "message": "m"}},
        end("tool_use"),
        STOP,
    ]
    found = read("anthropic-messages", events)
    assert (found["error"], found["finish"]) == ({"kind": expected, "retryable": retryable}, None)
    assert (found["text"], found["tool_calls"][0]["arguments"]) == ("x", None)


def test_a_whole_message_as_json_is_read(read: Any) -> None:
    """A server that ignored stream:true and answered one message."""
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]
    usage = {"input_tokens": 3, "output_tokens": 2}
    body = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage}
    found = read("anthropic-messages", json.dumps(body).encode(), headers={"content-type": "application/json"})
    assert (found["text"], found["finish"], found["usage"]["output"]) == ("x", "tool_calls", 2)
    assert found["tool_calls"][0]["arguments"] == {"a": 1}


def test_a_call_without_a_name_is_an_error(read: Any) -> None:
    """(361) Arguments of a block whose start was lost belong to no tool."""
    events = [START, delta(0, "input_json_delta", partial_json="{}"), end("tool_use"), STOP]
    assert read("anthropic-messages", events)["error"] == {"kind": "protocol", "retryable": True}


def test_an_input_that_is_no_object_is_an_error_on_its_call(messages: Any) -> None:
    """A start block with a list as its input cannot be run."""
    found = messages(start(0, type="tool_use", id="t", name="f", input=[1]), reason="tool_use")
    assert found["tool_calls"][0]["arguments_error"]
