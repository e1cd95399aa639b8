"""Chat Completions streams as servers really send them: each fact of the wire, and each public fault of its readers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.messages import Opaque, Reasoning, Text, ToolCall

WHOLE = '{"a":1}'


def call(arguments: Any = "", *, index: Any = 0, **named: Any) -> dict[str, Any]:
    """A delta with one tool call entry; `name=` goes into its function, index "no" leaves it out."""
    function = {k: v for k, v in {"name": named.pop("name", None), "arguments": arguments}.items() if v is not None}
    entry = {**({} if index == "no" else {"index": index}), **named, "function": function}
    return {"tool_calls": [entry]}


def calls(shown: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(c["id"], c["name"], c["arguments"]) for c in shown["tool_calls"]]


def test_text_finish_and_done_make_a_reply(chat: Any) -> None:
    """(001) The plain shape: role, text, finish, [DONE]."""
    found = chat({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"})
    assert (found["text"], found["finish"], found["error"]) == ("Hello", "stop", None)
    assert found["shown"] == {("text", 0): "Hello"}


def test_a_last_chunk_may_hold_text_finish_and_usage(read: Any) -> None:
    """(004) Content beside finish_reason, and the usage in the same chunk, all count."""
    chunk = {
        "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
    found = read("openai-chat", [chunk, "[DONE]"])
    assert (found["text"], found["finish"], found["usage"]["input"]) == ("x", "stop", 3)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2}}, (9, 2, 0)),
        ({"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}}, (9, 2, 0)),
        ({"usage": {"prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4, "completion_tokens": 2}}, (9, 2, 5)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 3}}, (9, 2, 3)),
    ],
)
def test_usage_is_found_where_servers_put_it(chat: Any, last: Any, expected: tuple[int, int, int]) -> None:
    """(010, 011) Usage counts wherever it stands and however its parts are named."""
    usage = chat({"content": "x"}, **last)["usage"]
    assert (usage["input"], usage["output"], usage["cached_input"]) == expected


def test_usage_may_stand_in_the_choice(read: Any) -> None:
    """(007) Moonshot puts usage into the choice of its last chunk."""
    chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 4}}]}
    assert read("openai-chat", [chunk, "[DONE]"])["usage"]["input"] == 4


@pytest.mark.parametrize(
    "chunks",
    [
        [{"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 8, "completion_tokens": 2}}],
        [
            {"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
            {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 2}},
        ],
        [
            {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 2}},
            {"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        ],
        [{"choices": [{"delta": {"content": "x"}, "usage": {"prompt_tokens": 8, "completion_tokens": 2}}]}],
    ],
)
def test_the_last_usage_that_says_anything_counts_once(read: Any, chunks: list[Any]) -> None:
    """(R35) Usage beside choices, zero usage on every chunk, usage on the finish: counted once, never wiped."""
    finish: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    usage = read("openai-chat", [*chunks, finish, "[DONE]"])["usage"]
    assert (usage["input"], usage["output"]) == (8, 2)


def test_no_usage_is_unknown_and_not_zero(chat: Any) -> None:
    """(R26) A stream without usage leaves it unknown."""
    assert chat({"content": "x"})["usage"] is None


def test_the_cost_a_router_reports_is_kept(decode: Any) -> None:
    """OpenRouter's `usage.cost` becomes the reply's cost."""
    choice = b'{"delta":{"content":"x"},"finish_reason":"stop"}'
    body = b'data: {"choices":[%s],"usage":{"prompt_tokens":1,"cost":0.5}}\n\n' % choice
    reply, _, _ = decode("openai-chat", [body])
    assert reply.cost_usd == 0.5


def test_nothing_behind_done_counts(chat: Any) -> None:
    """(016) After [DONE] the reply is finished, whatever else comes."""
    found = chat({"content": "x"}, finish="stop", done=True)
    assert found["text"] == "x"


def test_what_follows_done_is_not_read(read: Any) -> None:
    """(016, 017) Chunks, garbage and errors behind [DONE] change nothing."""
    finish = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
    more = {"choices": [{"delta": {"content": "y"}}]}
    assert read("openai-chat", [finish, "[DONE]", more, "{broken", {"error": "late"}])["text"] == "x"


@pytest.mark.parametrize("cut", ["", ": only comments\n\n", "data: [DONE]\n\n", 'data: {"choices":[]}\n\n'])
def test_a_stream_that_says_nothing_is_truncated(read: Any, cut: str) -> None:
    """(019, 165) An empty 200, comments alone, [DONE] alone or an empty chunk are no answer."""
    assert read("openai-chat", cut.encode())["error"] == {"kind": "truncated", "retryable": True}


@pytest.mark.parametrize("delta", [{"content": "half"}, call('{"a', id="c", name="f"), call(WHOLE, id="c", name="f")])
def test_a_stream_without_finish_is_truncated(chat: Any, delta: Any) -> None:
    """(020, 021, 023, R40) Without finish or [DONE] nothing is complete, not even complete arguments."""
    assert chat(delta, finish=None, done=False)["error"] == {"kind": "truncated", "retryable": True}


def test_a_partial_reply_hangs_on_the_error(decode: Any) -> None:
    """What had arrived before a cut is kept with the error, marked as cut."""
    body = b'data: {"choices":[{"delta":{"content":"half"}}],"usage":{"prompt_tokens":7}}\n\n'
    partial, error, _ = decode("openai-chat", [body])
    assert error is not None
    assert error.partial is partial
    assert (partial.parts, partial.finish, partial.usage.input) == ((Text("half"),), "length", 7)


def test_a_byte_order_mark_costs_nothing(read: Any) -> None:
    """(033) The first event behind a BOM is read."""
    body = b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
    assert read("openai-chat", body)["text"] == "x"


def test_one_object_over_several_data_lines_is_one_chunk(read: Any) -> None:
    """(036) Data lines are joined with a line feed and read as one."""
    body = b'data: {"choices":\ndata: [{"delta":{"content":"x"},\ndata: "finish_reason":"stop"}]}\n\n'
    assert read("openai-chat", body)["text"] == "x"


def test_whole_objects_on_neighbouring_data_lines_are_several_chunks(read: Any) -> None:
    """(052) Where a host forgot the blank lines, each line is a chunk."""
    body = (
        b'data: {"choices":[{"delta":{"content":"a"}}]}\ndata: {"choices":[{"delta":{"content":"b"}}]}\n'
        b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    )
    assert read("openai-chat", body)["text"] == "ab"


@pytest.mark.parametrize(
    "noise", ["upstream says hello\n\n", "data: upstream says hello\n\n", "info: x\ndata: y z\n\n"]
)
def test_a_proxys_plain_text_is_no_part_of_the_reply(read: Any, noise: str) -> None:
    """(053) Lines of plain text between events are passed over; the reply still needs its own end."""
    start, end = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', 'data: {"choices":[{"finish_reason":"stop"}]}\n\n'
    assert read("openai-chat", (start + noise + end).encode())["text"] == "a"
    assert read("openai-chat", (start + noise).encode())["error"]["kind"] == "truncated"


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "", "application/octet-stream"])
def test_a_stream_is_known_by_its_looks(read: Any, content_type: str) -> None:
    """(048, 049) An event stream under another type, or none, is read as one."""
    body = b'\n: hi\n\ndata: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
    assert read("openai-chat", body, headers={"content-type": content_type})["text"] == "x"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain", ""])
def test_a_json_error_under_200_is_an_error(read: Any, content_type: str) -> None:
    """(171, 172) An error body under HTTP 200 is read as one, whatever it is labelled."""
    body = b'{\n "error": {"code": 429, "message": "slow down"}\n}\n'
    found = read("openai-chat", body, headers={"content-type": content_type})
    assert found["error"] == {"kind": "rate_limit", "retryable": True}


def test_a_json_body_cut_in_the_middle_is_truncated(read: Any) -> None:
    """Half a JSON reply is a broken connection, not a protocol error."""
    found = read("openai-chat", b'{"choices":[{"mess', headers={"content-type": "application/json"})
    assert found["error"] == {"kind": "truncated", "retryable": True}


def test_json_that_is_no_reply_is_a_protocol_error(read: Any) -> None:
    """(175) A JSON body of another kind is refused, and not retried."""
    found = read("openai-chat", b'{"status":"ok"}', headers={"content-type": "application/json"})
    assert found["error"] == {"kind": "protocol", "retryable": False}


ASSEMBLED: list[tuple[list[Any], list[Any]]] = [
    # (062, R33) interleaved by index, ids only first
    (
        [
            call('{"x":', id="a", name="f"),
            call('{"y":', index=1, id="b", name="g"),
            call("1}"),
            call("2}", index=1),
        ],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
    ),
    # (064) no index, id on every fragment
    (
        [
            call('{"x"', index="no", id="a", name="f"),
            call('{"y"', index="no", id="b", name="g"),
            call(":1}", index="no", id="a"),
            call(":2}", index="no", id="b"),
        ],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
    ),
    # (068) sparse indexes that begin at one
    (
        [call(WHOLE, index=1, id="a", name="f"), call(WHOLE, index=7, id="b", name="g")],
        [("a", "f", {"a": 1}), ("b", "g", {"a": 1})],
    ),
    # (070) index 0 for every whole call, other ids
    (
        [call(WHOLE, id="a", name="f"), call('{"b":2}', id="b", name="f")],
        [("a", "f", {"a": 1}), ("b", "f", {"b": 2})],
    ),
    # (072) the same in one chunk
    (
        [
            {
                "tool_calls": [
                    call(WHOLE, id="a", name="f")["tool_calls"][0],
                    call(WHOLE, id="b", name="g")["tool_calls"][0],
                ]
            }
        ],
        [("a", "f", {"a": 1}), ("b", "g", {"a": 1})],
    ),
    # (074) another id on every fragment, no name: still one call
    ([call('{"a"', id="a", name="f"), call(":", id="b"), call("1}", id="c")], [("a", "f", {"a": 1})]),
    # (075) fragments, then a named entry of another id at the same index
    (
        [call('{"a"', id="a", name="f"), call(":1}"), call(WHOLE, id="b", name="f")],
        [("a", "f", {"a": 1}), ("b", "f", {"a": 1})],
    ),
    # (082) an id never comes
    ([call('{"a"', name="f"), call(":1}")], [(None, "f", {"a": 1})]),
    # a number as an id
    ([call(WHOLE, id=7, name="f")], [("7", "f", {"a": 1})]),
    # (084, 086) blank and missing arguments
    ([call("  \n", id="a", name="f")], [("a", "f", {})]),
    ([{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}], [("a", "f", {})]),
    ([call(None, id="a", name="f")], [("a", "f", {})]),
    # (088) arguments as an object
    ([call({"a": {"b": [1]}}, id="a", name="f")], [("a", "f", {"a": {"b": [1]}})]),
    # (R29) id and name repeated on each of four chunks
    ([call(piece, id="x", name="f") for piece in ('{"', 'a"', ":", "1}")], [("x", "f", {"a": 1})]),
    # (R32) the last fragment has a name and a null id
    ([call('{"a":1', id="x", name="f"), call("}", id=None, name="f")], [("x", "f", {"a": 1})]),
    (
        [call('{"a":1', index="no", id="x", name="f"), call("}", index="no", id=None, name="f")],
        [("x", "f", {"a": 1})],
    ),
    # (R34) arguments before the name, an empty name first
    ([call('{"a"', id="x", name=""), call(":1}", name="f")], [("x", "f", {"a": 1})]),
    # (R30) every chunk has all arguments so far
    ([call(piece, id="x", name="f") for piece in ('{"a', '{"a":1', '{"a":1}')], [("x", "f", {"a": 1})]),
    # (R31) whole arguments twice are one call's
    ([call(WHOLE, id="x", name="f"), call(WHOLE)], [("x", "f", {"a": 1})]),
    # (R31) two different objects are never merged
    ([call(WHOLE, id="x", name="f"), call('{"b":2}')], [("x", "f", None)]),
    # (R43) the same id twice in a reply
    (
        [call(WHOLE, id="call_0", name="f"), call('{"b":2}', index=1, id="call_0", name="g")],
        [("call_0", "f", {"a": 1}), ("call_0", "g", {"b": 2})],
    ),
    # (R43) blank ids
    (
        [call(WHOLE, id="", name="f"), call('{"b":2}', index=1, id="", name="f")],
        [(None, "f", {"a": 1}), (None, "f", {"b": 2})],
    ),
    # index as text
    ([call('{"a"', index="0", id="a", name="f"), call(":1}", index="0")], [("a", "f", {"a": 1})]),
]


@pytest.mark.parametrize(("deltas", "expected"), ASSEMBLED)
def test_calls_are_assembled_whatever_the_server_does_to_index_id_and_name(
    chat: Any, deltas: list[Any], expected: list[Any]
) -> None:
    """Fragments become the calls that were meant, with each id and name once."""
    found = chat(*deltas, finish="tool_calls")
    assert calls(found) == expected
    assert (found["finish"], found["error"]) == ("tool_calls", None)


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_a_call_without_a_name_at_the_end_is_an_error(chat: Any, finish: str) -> None:
    """(R34) Nothing can be run, and nothing sent back, under no name."""
    assert chat(call(WHOLE, id="x"), finish=finish)["error"] == {"kind": "protocol", "retryable": True}


def test_a_call_cut_before_its_name_leaves_a_cut_reply(chat: Any) -> None:
    """At the length limit an unfinished call just is not there."""
    found = chat({"content": "t"}, call("", id="x"), finish="length")
    assert (found["tool_calls"], found["finish"], found["error"]) == ([], "length", None)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":',
        '{"a":1',
        '[{"a":1}]',
        '"text"',
        "1",
        "true",
        '{"a":NaN}',
        '{"a":1e999}',
        "{a:1}",
        "{'a':1}",
        '{"a":1}}',
        '{"a":1,}',
        "{" * 500,
    ],
)
def test_broken_arguments_are_never_made_whole(chat: Any, arguments: str) -> None:
    """(098, 100-102) What is not strictly a JSON object is an error on that call, and the others stay."""
    found = chat(call(arguments, id="x", name="f"), call(WHOLE, index=1, id="y", name="g"), finish="tool_calls")
    assert calls(found) == [("x", "f", None), ("y", "g", {"a": 1})]


def test_length_inside_arguments_stays_length(chat: Any) -> None:
    """(098, R14) A cut call is a cut reply, and its arguments are an error."""
    found = chat(call('{"path":"a","content":"xx', id="x", name="f"), finish="length")
    assert (found["finish"], calls(found)) == ("length", [("x", "f", None)])


def test_legacy_function_calls_are_one_call_without_an_id(chat: Any) -> None:
    """(094) `function_call` fragments make one call."""
    found = chat(
        {"function_call": {"name": "f", "arguments": '{"a"'}},
        {"function_call": {"arguments": ":1}"}},
        finish="function_call",
    )
    assert (calls(found), found["finish"]) == ([(None, "f", {"a": 1})], "tool_calls")


def test_both_forms_of_a_call_are_one_call(chat: Any) -> None:
    """A server that sends `function_call` and `tool_calls` side by side means one call."""
    delta = {**call(WHOLE, id="x", name="f"), "function_call": {"name": "f", "arguments": WHOLE}}
    assert calls(chat(delta, finish="tool_calls")) == [("x", "f", {"a": 1})]


def test_a_thought_signature_stays_on_its_call(decode: Any, chat: Any) -> None:
    """(090) Unknown keys of an entry are kept; a signature in pieces is joined."""

    def chunk(signature: str, **entry: Any) -> str:
        extra = {"extra_content": {"google": {"thought_signature": signature}}}
        delta = {"tool_calls": [{"index": 0, **entry, **extra}]}
        return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n"

    body = chunk("EjQ", id="x", function={"name": "f", "arguments": "{}"}) + chunk("KMg=")
    body += 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    reply, _, _ = decode("openai-chat", [body.encode()])
    assert reply.parts == (
        ToolCall(
            "", "f", {}, "{}", provider_id="x", extra={"extra_content": {"google": {"thought_signature": "EjQKMg="}}}
        ),
    )


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([{"reasoning": "a"}, {"reasoning": "b"}], "ab"),  # (121)
        ([{"reasoning_content": "a"}, {"reasoning_content": "b"}], "ab"),  # (120)
        ([{"reasoning": "a", "reasoning_content": "a"}], "a"),  # (122)
        ([{"reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]}], "a"),
        ([{"reasoning_details": [{"type": "reasoning.summary", "summary": "s", "index": 0}]}], "s"),  # (124)
        ([{"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]}], "a"),
    ],
)
def test_readable_reasoning_counts_once_wherever_it_stands(chat: Any, deltas: list[Any], expected: str) -> None:
    """Reasoning is read from each of its places, and once where it stands in two."""
    found = chat(*deltas, {"content": "t"})
    assert (found["reasoning"], found["text"]) == (expected, "t")


def test_reasoning_details_are_merged_for_replay(decode: Any) -> None:
    """(123, 124) Fragments become blocks by type and index, each with its last signature, and encrypted ones stay."""
    fragments = [
        {"type": "reasoning.text", "text": "Let ", "index": 0, "format": "f"},
        {"type": "reasoning.text", "text": "me", "index": 0},
        {"type": "reasoning.text", "signature": "S1", "index": 0},
        {"type": "reasoning.encrypted", "data": "AB", "index": 1, "id": "r1"},
        {"type": "reasoning.encrypted", "data": "CD", "index": 1},
    ]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"reasoning_details": [f]}}]} for f in fragments]
    chunks.append({"choices": [{"delta": {"content": "t"}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks).encode()
    reply, _, _ = decode("openai-chat", [body])
    details = [
        {"type": "reasoning.text", "text": "Let me", "index": 0, "format": "f", "signature": "S1"},
        {"type": "reasoning.encrypted", "data": "ABCD", "index": 1, "id": "r1"},
    ]
    assert reply.parts == (Reasoning("Let me", {"reasoning_details": details}), Text("t"))


def test_encrypted_reasoning_alone_is_kept(decode: Any) -> None:
    """Reasoning that nobody can read is an opaque part."""
    chunk = {
        "choices": [
            {
                "delta": {"content": "t", "reasoning_details": [{"type": "reasoning.encrypted", "data": "X"}]},
                "finish_reason": "stop",
            }
        ]
    }
    reply, _, _ = decode("openai-chat", [f"data: {json.dumps(chunk)}\n\n".encode()])
    assert reply.parts == (Opaque({"reasoning_details": [{"type": "reasoning.encrypted", "data": "X"}]}), Text("t"))


def test_mistrals_thinking_parts_are_reasoning_in_order(decode: Any, written: Any) -> None:
    """(125) A list of content parts gives thinking and text, in order, thinking in its own form."""

    def chunk(*parts: Any) -> dict[str, Any]:
        return {"choices": [{"delta": {"content": list(parts)}}]}

    chunks = [
        chunk({"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}),
        chunk({"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}, {"type": "text", "text": "T"}),
        {"choices": [{"delta": {"content": "U"}, "finish_reason": "stop"}]},
    ]
    body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks).encode()
    reply, _, _ = decode("openai-chat", [body])
    block = {"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]}
    assert reply.parts == (Reasoning("ab", block), Text("TU"))


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("model_length", "context_window"),
        ("tool_calls", "stop"),
        ("function_call", "stop"),
        ("eos", "stop"),
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
    ],
)
def test_finish_reasons_are_normalised(chat: Any, reason: str, expected: str) -> None:
    """Every known reason has its meaning; a call's reason without a call is a stop."""
    assert chat({"content": "x"}, finish=reason)["finish"] == expected


def test_a_cut_is_not_undone_by_a_later_stop(read: Any) -> None:
    """Two finish chunks: length stays length."""
    chunks: list[Any] = [{"choices": [{"delta": {}, "finish_reason": reason}]} for reason in ("length", "stop")]
    assert read("openai-chat", [*chunks, "[DONE]"])["finish"] == "length"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("error", "provider"), ("insufficient_system_resource", "overloaded"), ("network_error", "provider")],
)
def test_a_finish_that_tells_of_a_failure_is_an_error(chat: Any, reason: str, kind: str) -> None:
    """(150, 151, R40) An error in the finish's place fails the call, and may be tried again."""
    assert chat({"content": "x"}, finish=reason)["error"] == {"kind": kind, "retryable": True}


@pytest.mark.parametrize("choices", [[], None, "missing"])
def test_chunks_without_choices_are_passed_over(chat: Any, choices: Any) -> None:
    """(006, 008, 142) Empty, null and absent choices stand anywhere."""
    chunk = {"id": "x", "choices": choices, "error": None}
    if choices == "missing":
        chunk = {"id": "x", "error": None}
    assert chat({"content": "a"}, chunk, {"content": "b"})["text"] == "ab"


@pytest.mark.parametrize("choice", [{"delta": None}, {}, {"delta": {}}, {"delta": {"content": None, "role": None}}])
def test_choices_without_a_delta_are_passed_over(chat: Any, choice: Any) -> None:
    """(143-145) Null, absent and empty deltas stand anywhere."""
    assert chat({"content": "a"}, {"choices": [choice]}, {"content": "b"})["text"] == "ab"


def test_odd_chunks_of_a_proxy_are_read(read: Any) -> None:
    """(148) A message beside the delta, `error: null`, growing choice numbers and changing ids."""
    chunks = [
        {"id": f"c{n}", "error": None, "choices": [{"index": n, "delta": {"content": t}, "message": {"content": "ab"}}]}
        for n, t in enumerate("ab")
    ]
    finish = {
        "error": None,
        "choices": [{"index": 2, "delta": {}, "message": {"content": "ab"}, "finish_reason": "stop"}],
    }
    assert read("openai-chat", [*chunks, finish, "[DONE]"])["text"] == "ab"


def test_a_whole_message_in_the_stream_is_read(read: Any) -> None:
    """(146) A server that streams one chunk with a message instead of a delta."""
    chunk = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
    assert read("openai-chat", [chunk, "[DONE]"])["text"] == "x"


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "boom", "type": "server_error"}, "provider", True),
        ({"message": "boom", "code": 500}, "provider", True),
        ({"message": "boom", "code": "502"}, "provider", True),
        ({"message": "slow", "code": 429}, "rate_limit", True),
        ({"message": "no", "code": 401}, "auth", False),
        ({"message": "busy", "code": 503}, "overloaded", True),
        ({"message": "bad", "type": "invalid_request_error"}, "provider", False),
        ({"message": "bad", "code": 400}, "provider", False),
        ({"message": "The model's maximum context length is 8", "code": 400}, "context_length", False),
        ("something broke", "provider", True),
    ],
)
def test_an_error_in_the_stream_ends_it(chat: Any, error: Any, kind: str, retryable: bool) -> None:
    """(160-169) An error object or text ends the stream as what it is, with the text so far kept."""
    found = chat({"content": "x"}, {"error": error, "choices": [{"delta": {}, "finish_reason": "error"}]})
    assert (found["error"], found["text"]) == ({"kind": kind, "retryable": retryable}, "x")


def test_an_error_event_is_an_error_whatever_its_data(read: Any) -> None:
    """(166) An event named error ends the stream though its object has another shape."""
    body = b'event: error\ndata: {"detail":"gone"}\n\n'
    assert read("openai-chat", body)["error"]["kind"] == "provider"


def test_deep_json_in_a_chunk_is_a_protocol_error_and_no_crash(read: Any) -> None:
    """A chunk nested beyond Python's stack ends in an error."""
    body = b'data: {"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    assert read("openai-chat", body[:1000] + body)["error"]["kind"] == "protocol"


def test_halves_of_an_emoji_are_shown_as_one(chat: Any) -> None:
    """(043) A surrogate pair split over two deltas is one character, in what is shown as well."""
    found = chat('{"choices":[{"delta":{"content":"a\\ud83c"}}]}', '{"choices":[{"delta":{"content":"\\udf0ab"}}]}')
    assert (found["text"], found["shown"]["text", 0]) == ("a\U0001f30ab", "a\U0001f30ab")


def test_half_an_emoji_alone_is_a_replacement_character(chat: Any) -> None:
    """What can never be written as UTF-8 is replaced."""
    assert chat('{"choices":[{"delta":{"content":"a\\ud83cb"}}]}')["text"] == "a\ufffdb"
