"""Responses streams: each fact of the wire that the shared cases leave open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.messages import Opaque, Reasoning, Text, ToolCall


def message(text: str | None = None, **fields: Any) -> dict[str, Any]:
    content: list[Any] = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content, **fields}


def function(arguments: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": arguments, **fields}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def piece(kind: str, text: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **fields}


def completed(*output: dict[str, Any], usage: Any = None, status: str = "completed", **fields: Any) -> dict[str, Any]:
    response = {"status": status, "output": list(output), "usage": usage, **fields}
    return {"type": f"response.{status}", "response": response}


@pytest.fixture(name="responses")
def responses_fixture(read: Any) -> Any:
    def responses(*events: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = read("openai-responses", list(events))
        return found

    return responses


@pytest.fixture(name="parts")
def parts_fixture(decode: Any) -> Any:
    def parts(*events: dict[str, Any]) -> Any:
        reply, _, _ = decode("openai-responses", ["".join(f"data: {json.dumps(e)}\n\n" for e in events).encode()])
        return reply.parts

    return parts


def test_text_deltas_make_a_reply(responses: Any) -> None:
    """(401) The plain shape, its text counted once though it is told four times."""
    found = responses(
        added(0, message()),
        piece("output_text", "Hel", content_index=0),
        piece("output_text", "lo", content_index=0),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"},
        done(0, message("Hello")),
        completed(
            message("Hello"),
            usage={"input_tokens": 5, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
        ),
    )
    assert (found["text"], found["finish"], found["usage"]["cached_input"]) == ("Hello", "stop", 4)
    assert found["shown"] == {("text", 0): "Hello"}


def test_parallel_calls_keep_their_order(responses: Any) -> None:
    """(403) Interleaved arguments of two calls, by output index."""
    found = responses(
        added(0, function(call_id="a", id="fc_a")),
        added(1, function(call_id="b", id="fc_b")),
        piece("function_call_arguments", '{"y":', 1),
        piece("function_call_arguments", '{"x":', 0),
        piece("function_call_arguments", "1}", 0),
        piece("function_call_arguments", "2}", 1),
        completed(),
    )
    assert [(c["id"], c["arguments"]) for c in found["tool_calls"]] == [("a", {"x": 1}), ("b", {"y": 2})]
    assert found["shown"] == {("arguments", 0): '{"x":1}', ("arguments", 1): '{"y":2}'}


def test_ids_that_change_in_every_event_do_not_matter(responses: Any) -> None:
    """(408) Items are known by their output index."""
    found = responses(
        added(0, function(id="one")),
        piece("function_call_arguments", '{"a":', 0, item_id="two"),
        piece("function_call_arguments", "1}", 0, item_id="three"),
        done(0, function('{"a":1}', id="four")),
        completed(function('{"a":1}', id="five")),
    )
    assert [(c["id"], c["arguments"]) for c in found["tool_calls"]] == [("call_1", {"a": 1})]


def test_a_later_form_that_says_nothing_takes_nothing_away(responses: Any) -> None:
    """(407, 409) An item's end without its arguments leaves those that streamed."""
    found = responses(
        added(0, function()),
        piece("function_call_arguments", '{"a":1}'),
        done(0, function("")),
        completed(function("")),
    )
    assert found["tool_calls"][0]["arguments"] == {"a": 1}


def test_an_end_that_leaves_items_out_completes_the_ones_it_names(responses: Any) -> None:
    """Gateways drop reasoning from the end's output; nothing is doubled by the shift."""
    found = responses(
        added(0, {"type": "reasoning", "id": "rs", "summary": []}),
        added(1, message()),
        piece("output_text", "Hi", 1, content_index=0),
        completed(message("Hi", id="other")),
    )
    assert found["text"] == "Hi"


@pytest.mark.parametrize(
    ("reason", "expected"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, "length")]
)
def test_incomplete_says_why(responses: Any, reason: str | None, expected: str) -> None:
    """(413-415) An incomplete response is cut, by the limit or the filter, calls or not."""
    end = completed(status="incomplete", incomplete_details={"reason": reason} if reason else None)
    found = responses(added(0, function()), piece("function_call_arguments", '{"a'), end)
    assert (found["finish"], found["tool_calls"][0]["arguments_error"]) == (expected, True)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "provider", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("insufficient_quota", "rate_limit", False),
        ("context_length_exceeded", "context_length", False),
        ("invalid_prompt", "provider", False),
        ("server_is_overloaded", "overloaded", True),
    ],
)
@pytest.mark.parametrize("shape", ["failed", "flat", "nested"])
def test_errors_in_each_shape_are_classified(responses: Any, code: str, kind: str, retryable: bool, shape: str) -> None:
    """(416-425) A failed response, a flat and a nested error event mean the same."""
    error = {"code": code, "message": "m", "param": None}
    event = {
        "failed": completed(status="failed", error=error),
        "flat": {"type": "error", **error},
        "nested": {"type": "error", "error": {"type": "t", **error}},
    }[shape]
    found = responses(added(0, message()), piece("output_text", "x", content_index=0), event)
    assert (found["error"], found["text"]) == ({"kind": kind, "retryable": retryable}, "x")


def test_unknown_events_are_passed_over(responses: Any) -> None:
    """(428) Keepalives and whatever may come."""
    found = responses(
        {"type": "keepalive", "sequence_number": 3}, added(0, message("x")), {"type": "response.new.thing"}, completed()
    )
    assert found["text"] == "x"


@pytest.mark.parametrize("events", [[], [added(0, message("x"))], [done(0, function("{}"))]])
def test_without_its_end_a_response_is_truncated(responses: Any, events: list[Any]) -> None:
    """(426, 427) No terminal event, no reply."""
    assert responses(*events)["error"] == {"kind": "truncated", "retryable": True}


def test_no_usage_stays_unknown(responses: Any) -> None:
    """(432) Usage null is unknown."""
    assert responses(done(0, message("x")), completed(message("x")))["usage"] is None


@pytest.mark.parametrize(
    "events",
    [
        [completed(message("x"), function('{"a":1}'))],
        [done(0, message("x")), done(1, function('{"a":1}')), completed()],
        [
            {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "x"},
            added(1, function()),
            {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a":1}'},
            completed(),
        ],
    ],
)
def test_each_stage_may_be_the_only_one(responses: Any, events: list[Any]) -> None:
    """(404-406, 431, 433, 434) Text and arguments count wherever they first appear, and are shown."""
    found = responses(*events)
    assert (found["text"], found["tool_calls"][0]["arguments"]) == ("x", {"a": 1})
    assert found["shown"] == {("text", 0): "x", ("arguments", 0): '{"a":1}'}


def test_the_reasoning_item_of_its_end_goes_back(parts: Any) -> None:
    """(410) The encrypted content of `added` is not whole yet."""
    summary = [{"type": "summary_text", "text": "plan"}]
    found = parts(
        added(0, {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "par"}),
        piece("reasoning_summary_text", "plan", summary_index=0),
        done(
            0,
            {
                "type": "reasoning",
                "id": "rs",
                "summary": summary,
                "encrypted_content": "partial-no-more",
                "content": None,
            },
        ),
        done(1, message("x")),
        completed(),
    )
    form = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "partial-no-more"}
    assert found == (Reasoning("plan", form), Text("x", {"id": "msg_1"}))


def test_phases_and_ids_of_messages_are_kept(parts: Any) -> None:
    """(430) Two messages stay two, each with its phase."""
    found = parts(
        done(0, message("a", id="m1", phase="commentary")),
        done(1, message("b", id="m2", phase="final_answer")),
        completed(),
    )
    assert found == (Text("a", {"id": "m1", "phase": "commentary"}), Text("b", {"id": "m2", "phase": "final_answer"}))


def test_other_items_are_kept_whole(parts: Any) -> None:
    """(437) What a server's own tool left goes back as it came."""
    item = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"q": "x"}}
    assert parts(done(0, item), done(1, message("x")), completed())[0] == Opaque(item)


def test_unknown_fields_of_a_call_are_kept(parts: Any) -> None:
    """A call's item id and namespace go back with it."""
    call = parts(done(0, function("{}", status="completed", namespace="n")), completed())[0]
    assert call == ToolCall("", "f", {}, "{}", provider_id="call_1", extra={"id": "fc_1", "namespace": "n"})


def test_a_refusal_is_a_refusal(responses: Any) -> None:
    """(412) Its words are shown, its finish says what it is."""
    item = message(content=[{"type": "refusal", "refusal": "no"}])
    found = responses(added(0, message()), piece("refusal", "no", content_index=0), done(0, item), completed(item))
    assert (found["finish"], found["text"]) == ("refusal", "no")


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
def test_a_whole_response_as_json_is_read(read: Any, status: str) -> None:
    """A server that ignored stream:true and answered one response."""
    body = {
        "object": "response",
        "status": status,
        "output": [message("x")],
        "error": {"code": "server_error"} if status == "failed" else None,
    }
    found = read("openai-responses", json.dumps(body).encode(), headers={"content-type": "application/json"})
    assert found["text"] == "x"
    assert (found["error"] is None) == (status != "failed")


def test_missing_output_indexes_fall_back_to_item_ids(responses: Any) -> None:
    """A server that sends no output_index is read by item id."""
    events = [added(0, message(id="m")), piece("output_text", "x", content_index=0, item_id="m"), completed()]
    for event in events[:2]:
        del event["output_index"]
    assert responses(*events)["text"] == "x"
