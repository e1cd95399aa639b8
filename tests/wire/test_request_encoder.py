"""Requests of the three wires: valid by each one's rules, with a prefix that never changes, and nothing lost."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import wire
from runtime.messages import (
    AssistantMessage,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    assign_call_ids,
)
from runtime.model import ModelRequest, ModelSettings, ToolSpec
from runtime.wire.encoding import call_id

CASES = Path(__file__).parents[1] / "cases" / "wire" / "cases"
TOOLS = (
    ToolSpec("f", "does f", {"type": "object", "properties": {}}),
    ToolSpec("g", "does g", {"type": "object", "properties": {}}),
)
PAIRS: list[tuple[wire.WireName, str]] = [
    *(("openai-chat", name) for name in (*wire.DIALECTS, "compatible")),
    *(("openai-responses", name) for name in ("openai", "azure", "vllm", "compatible")),
    *(("anthropic-messages", name) for name in ("anthropic", "openrouter", "deepseek", "compatible")),
]
each_pair = pytest.mark.parametrize(("name", "dialect"), PAIRS)
each_wire = pytest.mark.parametrize("name", wire.WIRES)


def dialect_named(name: str) -> wire.Dialect:
    return wire.DIALECTS.get(name, wire.COMPATIBLE)


def home(name: str) -> str:
    return {"openai-chat": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic"}[name]


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return attrs.evolve(
        ModelRequest("some-model", ("You are one.", "Be brief."), messages, TOOLS, actor="root/a-1"), **changes
    )


def encode(name: wire.WireName, dialect: str, asked: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(wire.RequestEncoder(name, dialect_named(dialect)).encode(asked))
    return body


def reply(
    name: str, *parts: Part, model: str = "some-model", provider: str | None = None, prefix: str = "t0"
) -> AssistantMessage:
    calls = any(isinstance(part, ToolCall) for part in parts)
    owner = provider if provider is not None else home(name)
    message = AssistantMessage(parts, "tool_calls" if calls else "stop", None, f"{owner}/{model}", name)
    return assign_call_ids(message, prefix)


def results(message: AssistantMessage, content: str = "result") -> ToolResults:
    return ToolResults(tuple(ToolResult(call.id, call.name, content) for call in message.calls))


# The rules of each wire, as far as a request breaks without them.

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_chat(body: dict[str, Any], dialect: wire.Dialect) -> None:
    assert body["stream"] is True
    waiting: list[str] = []
    before = "system"
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
            assert isinstance(message["content"], str)
            assert message["content"]
        else:
            assert not waiting, "every call is answered before anything else"
            assert (role == "system") == (at == 0 and role == "system")
        if role == "user" and before == "tool" and not dialect.user_after_tool:
            raise AssertionError("a user message right behind results")
        if role == "user":
            assert message["content"]
        if role == "assistant":
            assert message.get("content") or message.get("tool_calls")
            for call in message.get("tool_calls", []):
                assert ID.fullmatch(call["id"])
                assert ID.fullmatch(call["function"]["name"])
                if not dialect.raw_arguments:
                    assert isinstance(json.loads(call["function"]["arguments"]), dict)
                if dialect.call_ids == "nine":
                    assert re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"])
                waiting.append(call["id"])
        before = role
    assert not waiting
    assert ("max_tokens" in body) != ("max_completion_tokens" in body)
    assert "tool_choice" not in body or body.get("tools")


def check_messages(body: dict[str, Any], dialect: wire.Dialect) -> None:
    marks = json.dumps(body).count('"cache_control"')
    assert marks <= 4
    assert body["max_tokens"] > 0
    before = "assistant"
    waiting: list[str] = []
    for message in body["messages"]:
        assert message["role"] != before, "roles take turns"
        before = message["role"]
        blocks = message["content"]
        assert blocks
        kinds = [block["type"] for block in blocks]
        if before == "user":
            answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            assert answered == waiting
            assert kinds[: len(answered)] == ["tool_result"] * len(answered), "results come first"
            waiting = []
        else:
            assert kinds[-1] not in ("thinking", "redacted_thinking")
            waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
            assert len(set(waiting)) == len(waiting)
        for block in blocks:
            if block["type"] == "text":
                assert block["text"].strip()
            if block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
                assert ID.fullmatch(block["id"])
                assert ID.fullmatch(block["name"])
            if block["type"] == "thinking" and dialect.signed_thinking:
                assert block["signature"]
    assert before == "user"
    if thinking := body.get("thinking"):
        assert thinking["type"] == "adaptive" or 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        assert "temperature" not in body
        assert body.get("tool_choice", {}).get("type") not in ("any", "tool")


def check_responses(body: dict[str, Any], dialect: wire.Dialect) -> None:
    assert body["store"] is False
    waiting: list[str] = []
    items = body["input"]
    for at, item in enumerate(items):
        match item["type"]:
            case "function_call":
                assert ID.fullmatch(item["call_id"])
                assert ID.fullmatch(item["name"])
                waiting.append(item["call_id"])
            case "function_call_output":
                assert waiting.pop(0) == item["call_id"]
            case "message":
                assert item["content"]
                assert item["role"] == "assistant" or not waiting
            case "reasoning":
                assert at + 1 < len(items)
                assert items[at + 1]["type"] in ("function_call", "message", "reasoning")
                assert items[at + 1].get("role") != "user"
                assert item.get("encrypted_content") or not dialect.encrypted_reasoning
            case _:
                pass
    assert not waiting


CHECKS = {"openai-chat": check_chat, "anthropic-messages": check_messages, "openai-responses": check_responses}


def checked(name: wire.WireName, dialect: str, asked: ModelRequest) -> dict[str, Any]:
    body = encode(name, dialect, asked)
    CHECKS[name](body, dialect_named(dialect))
    return body


def inside(body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body["messages"] if "messages" in body else body["input"]
    return found


# Histories as Hypothesis makes them: any parts, any neighbours.

WORDS = st.sampled_from(["", " ", "x", "é\U0001f30a", "\ud83d", "line\n"])
EXTRA = st.none() | st.just({"extra_content": {"google": {"thought_signature": "S"}}})
CALLS = st.builds(
    ToolCall,
    id=st.just(""),
    name=st.sampled_from(["f", "g", "bad name!", "x" * 80, "ü"]),
    arguments=st.none() | st.dictionaries(WORDS, WORDS, max_size=2),
    raw=st.sampled_from(["", '{"a', "[1]"]),
    extra=EXTRA,
)
PARTS = st.one_of(
    st.builds(Text, WORDS),
    CALLS,
    st.builds(Reasoning, WORDS, st.none() | st.just({"type": "thinking", "thinking": "t", "signature": "S"})),
    st.builds(Reasoning, WORDS, st.just({"type": "thinking", "thinking": "t", "signature": ""})),
    st.builds(Opaque, st.just({"type": "redacted_thinking", "data": "D"})),
    st.builds(Reasoning, WORDS, st.just({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"})),
)
MODELS = st.sampled_from(["openai/some-model", "anthropic/some-model", "openai/other", "deepseek/some-model", ""])
ORIGINS = st.sampled_from([*wire.WIRES, ""])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    messages: list[Message] = [UserMessage(draw(WORDS))]
    for turn in range(draw(st.integers(0, 5))):
        parts = tuple(draw(st.lists(PARTS, max_size=5)))
        said = assign_call_ids(AssistantMessage(parts, model=draw(MODELS), wire=draw(ORIGINS)), f"t{turn}")
        messages.append(said)
        if said.calls:
            messages.append(results(said, draw(WORDS)))
        if not said.calls or draw(st.booleans()):
            messages.extend(UserMessage(draw(WORDS), "steer") for _ in range(draw(st.integers(1, 2))))
    return tuple(messages)


def made_for(name: wire.WireName, history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Opaque blocks of one wire under the name of another never happen; here they would only be noise."""
    kinds = {
        "anthropic-messages": ("thinking", "redacted_thinking"),
        "openai-responses": ("reasoning",),
        "openai-chat": (),
    }
    return tuple(
        attrs.evolve(m, parts=tuple(p for p in m.parts if _fits(p, kinds.get(m.wire, ()))))
        if isinstance(m, AssistantMessage)
        else m
        for m in history
    )


def _fits(part: Part, kinds: tuple[str, ...]) -> bool:
    match part:
        case Reasoning(opaque=None):
            return True
        case Reasoning(opaque=opaque) | Opaque(opaque):
            return opaque is not None and opaque["type"] in kinds
        case _:
            return True


@settings(max_examples=60, deadline=None)
@given(history=histories(), pair=st.sampled_from(PAIRS), choice=st.sampled_from(["auto", "none", "required"]))
def test_any_history_is_a_valid_request(
    history: tuple[Message, ...], pair: tuple[wire.WireName, str], choice: Any
) -> None:
    """Whatever the history holds, and from whom, the request keeps the rules of its wire."""
    name, dialect = pair
    asked = request(
        *made_for(name, history), tool_choice=choice, settings=ModelSettings(thinking="low"), max_output_tokens=5000
    )
    body = checked(name, dialect, asked)
    assert body["tools"], "a tools-off turn keeps its tools"


@settings(max_examples=60, deadline=None)
@given(history=histories(), pair=st.sampled_from(PAIRS))
def test_an_encoder_that_grew_says_what_a_fresh_one_says(
    history: tuple[Message, ...], pair: tuple[wire.WireName, str]
) -> None:
    """Encoding step by step gives the very bytes of encoding at once."""
    name, dialect = pair
    history = made_for(name, history)
    grown = wire.RequestEncoder(name, dialect_named(dialect))
    body = b""
    for length in range(1, len(history) + 1):
        body = grown.encode(request(*history[:length]))
    fresh = wire.RequestEncoder(name, dialect_named(dialect))
    assert body == fresh.encode(request(*history))
    assert grown.left_out == fresh.left_out


def conversation(name: wire.WireName, turns: int) -> list[Message]:
    messages: list[Message] = [UserMessage("the task")]
    for turn in range(turns):
        said = reply(name, Text(f"step {turn}"), ToolCall("", "f", {"n": turn}), prefix=f"t{turn}")
        messages += [said, results(said, f"found {turn}")]
    return messages


@each_pair
def test_a_step_begins_with_the_bytes_of_the_step_before(name: wire.WireName, dialect: str) -> None:
    """Up to the end of what both have, the body never changes: caps, choices and new messages come behind."""
    encoder = wire.RequestEncoder(name, dialect_named(dialect))
    history = conversation(name, 6)
    earlier = b""
    for length in range(1, len(history) + 1, 2):
        body = encoder.encode(
            request(*history[:length], max_output_tokens=1000 + length, tool_choice="auto" if length < 9 else "none")
        )
        mark = b',"cache_control":{"type":"ephemeral"}'
        plain = body.replace(mark, b"")
        assert plain.startswith(earlier)
        earlier = plain[: plain.rindex(b'"stream":true')].rpartition(b"]")[0].rstrip(b"]}")


@each_pair
def test_an_encoded_message_is_never_encoded_again(name: wire.WireName, dialect: str) -> None:
    """A message in the history is looked at once, however many steps follow."""
    looked: list[int] = []

    class Watched(tuple[Image, ...]):
        def __iter__(self) -> Iterator[Image]:
            looked.append(1)
            return super().__iter__()

        def __len__(self) -> int:
            looked.append(1)
            return super().__len__()

    encoder = wire.RequestEncoder(name, dialect_named(dialect))
    history = [UserMessage("the task", images=Watched()), *conversation(name, 4)[1:]]
    encoder.encode(request(*history[:1]))
    once = len(looked)
    assert once > 0
    for length in range(1, len(history) + 1, 2):
        encoder.encode(request(*history[:length]))
    assert len(looked) == once


@each_pair
def test_a_compacted_history_is_encoded_from_its_first_change(name: wire.WireName, dialect: str) -> None:
    """After compaction the body is that of the new history, and the same when it is undone."""
    encoder = wire.RequestEncoder(name, dialect_named(dialect))
    history = conversation(name, 4)
    before = encoder.encode(request(*history))
    compacted = [history[0], UserMessage("summary", "note"), *history[5:]]
    assert encoder.encode(request(*compacted)) == wire.RequestEncoder(name, dialect_named(dialect)).encode(
        request(*compacted)
    )
    assert encoder.encode(request(*history)) == before


@each_wire
def test_changed_tools_or_system_change_the_head_only(name: wire.WireName) -> None:
    """A new tool list shows in the next body, and a list that is equal changes nothing."""
    encoder = wire.RequestEncoder(name, wire.DIALECTS[home(name)])
    first = encoder.encode(request(UserMessage("x")))
    assert encoder.encode(request(UserMessage("x"), tools=TOOLS[:1])) != first
    assert encoder.encode(request(UserMessage("x"), tools=(TOOLS[0], TOOLS[1]))) == first
    assert b"Be quick." in encoder.encode(request(UserMessage("x"), system=("Be quick.",)))


# What goes back to whom.

OPAQUE: dict[str, tuple[Part, ...]] = {
    "openai-chat": (
        Reasoning("r", {"reasoning_content": "r"}),
        Text("t"),
        ToolCall("", "f", {}, extra={"extra_content": {"google": {"thought_signature": "S"}}}),
    ),
    "openai-responses": (
        Reasoning("r", {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"}),
        Text("t", {"id": "m1", "phase": "commentary"}),
        ToolCall("", "f", {}, extra={"id": "fc_1"}),
    ),
    "anthropic-messages": (
        Reasoning("r", {"type": "thinking", "thinking": "r", "signature": "S"}),
        Opaque({"type": "redacted_thinking", "data": "D"}),
        Text("t", {"citations": [1]}),
        ToolCall("", "f", {}, extra={"caller": {"type": "direct"}}),
    ),
}


@pytest.mark.parametrize(
    ("name", "dialect"),
    [("openai-chat", "deepseek"), ("openai-responses", "openai"), ("anthropic-messages", "anthropic")],
)
def test_opaque_parts_go_back_to_where_they_came_from(name: wire.WireName, dialect: str) -> None:
    """(R45) Same wire, same provider: each block byte for byte, in its order."""
    said = reply(name, *OPAQUE[name], provider=dialect)
    body = checked(name, dialect, request(UserMessage("x"), said, results(said)))
    text = json.dumps(inside(body))
    match name:
        case "openai-chat":
            turn = inside(body)[2]
            assert turn["reasoning_content"] == "r"
            assert turn["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "S"}}
        case "openai-responses":
            assert [item["type"] for item in inside(body)[1:4]] == ["reasoning", "message", "function_call"]
            assert inside(body)[1] == {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"}
            assert (inside(body)[2]["phase"], inside(body)[3]["id"]) == ("commentary", "fc_1")
        case "anthropic-messages":
            blocks = inside(body)[1]["content"]
            assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "text", "tool_use"]
            assert blocks[0] == {"type": "thinking", "thinking": "r", "signature": "S"}
            assert blocks[2]["citations"] == [1]
            assert blocks[3]["caller"] == {"type": "direct"}
    assert "t0c0" in text or dialect == "mistral"


@pytest.mark.parametrize("origin", wire.WIRES)
@each_pair
def test_opaque_parts_of_others_are_left_out_and_counted(
    name: wire.WireName, dialect: str, origin: wire.WireName
) -> None:
    """Another wire or another provider: the words and calls stay, the blocks do not, and the encoder says how many."""
    said = reply(origin, *OPAQUE[origin], provider="elsewhere")
    encoder = wire.RequestEncoder(name, dialect_named(dialect))
    body = json.loads(encoder.encode(request(UserMessage("x"), said, results(said))))
    CHECKS[name](body, dialect_named(dialect))
    text = json.dumps(body)
    for secret in ('"S"', '"E"', '"D"', "redacted", "commentary", "citations"):
        assert secret not in text
    assert encoder.left_out == {"openai-chat": 2, "openai-responses": 2, "anthropic-messages": 3}[origin]
    encoder.encode(request(UserMessage("x")))
    assert encoder.left_out == 0


@pytest.mark.parametrize(("dialect", "kept"), [("openrouter", False), ("deepseek", True)])
def test_behind_a_router_only_the_same_model_gets_its_blocks_back(dialect: str, kept: bool) -> None:
    """Two models of one router belong to two makers."""
    details = Reasoning("r", {"reasoning_details": [{"type": "reasoning.text", "text": "r", "signature": "S"}]})
    said = reply("openai-chat", details, Text("t"), provider=dialect, model="other-model")
    encoder = wire.RequestEncoder("openai-chat", dialect_named(dialect))
    body = json.loads(encoder.encode(request(UserMessage("x"), said, UserMessage("y"))))
    assert ("reasoning_details" in inside(body)[2]) is kept
    assert encoder.left_out == (not kept)


@each_wire
def test_a_refused_block_is_not_sent_twice(name: wire.WireName) -> None:
    """After the provider refused its own blocks, the conversation goes on without any."""
    said = reply(name, *OPAQUE[name])
    encoder = wire.RequestEncoder(name, wire.DIALECTS[home(name)])
    asked = request(UserMessage("x"), said, results(said))
    encoder.encode(asked)
    encoder.leave_out_opaque()
    body = json.loads(encoder.encode(asked))
    CHECKS[name](body, wire.DIALECTS[home(name)])
    assert encoder.left_out > 0
    assert '"S"' not in json.dumps(body)


def test_unsigned_thinking_is_half_a_block() -> None:
    """(R45) Thinking that was cut off before its signature is not sent back where signatures are checked."""
    cut = Reasoning("r", {"type": "thinking", "thinking": "r", "signature": ""})
    for dialect, kept in (("anthropic", False), ("compatible", True)):
        said = reply("anthropic-messages", cut, Text("t"), provider=dialect)
        blocks = inside(checked("anthropic-messages", dialect, request(UserMessage("x"), said, UserMessage("y"))))[1][
            "content"
        ]
        assert (blocks[0]["type"] == "thinking") is kept


@each_pair
def test_a_reply_without_any_content_is_still_a_turn(name: wire.WireName, dialect: str) -> None:
    """An empty reply, one of blanks and one of lost reasoning alone are valid turns."""
    for parts in ((), (Text(""),), (Reasoning("r", {"type": "reasoning", "id": "x"}),), (Reasoning("r"),)):
        said = reply(name, *parts, provider="elsewhere")
        body = checked(name, dialect, request(UserMessage("x"), said, UserMessage("y")))
        assert [m.get("role") for m in inside(body) if m.get("role") != "system"] == ["user", "assistant", "user"]


def test_a_reply_that_ends_in_thinking_gets_a_word_behind_it() -> None:
    """Anthropic refuses a message whose last block is thinking."""
    thinking = Reasoning("r", {"type": "thinking", "thinking": "r", "signature": "S"})
    body = checked(
        "anthropic-messages",
        "anthropic",
        request(UserMessage("x"), reply("anthropic-messages", thinking), UserMessage("y")),
    )
    assert [block["type"] for block in inside(body)[1]["content"]] == ["thinking", "text"]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    """(442) The Responses wire refuses a reasoning item without the item it led to."""
    item = Reasoning("r", {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"})
    body = checked(
        "openai-responses", "openai", request(UserMessage("x"), reply("openai-responses", item), UserMessage("y"))
    )
    assert [i["type"] for i in inside(body)] == ["message", "message", "message"]


# Results, choices, thinking, caches.


def test_parallel_results_are_one_message_results_first() -> None:
    """(R44) All results of a round stand in one user message, in call order, before what was said meanwhile."""
    said = reply("anthropic-messages", *(ToolCall("", name, {}) for name in "fgf"))
    history = (UserMessage("x"), said, results(said), UserMessage("steer", "steer"), UserMessage("more", "steer"))
    turn = inside(checked("anthropic-messages", "anthropic", request(*history)))[2]
    assert [block["type"] for block in turn["content"]] == ["tool_result"] * 3 + ["text"] * 2
    assert [block["tool_use_id"] for block in turn["content"][:3]] == [call.id for call in said.calls]


def test_errors_and_pictures_in_results_reach_the_model() -> None:
    """An error is marked where the wire has a mark, and pictures come along on every wire."""
    picture = Image("image/png", base64.b64encode(b"png").decode())
    for name in wire.WIRES:
        said = reply(name, ToolCall("", "f", {}))
        answer = ToolResults((ToolResult(said.calls[0].id, "f", "", "error", (picture,)),))
        body = checked(name, home(name), request(UserMessage("look", images=(picture,)), said, answer))
        text = json.dumps(inside(body))
        assert text.count(picture.data) == 2
        assert ('"is_error": true' in text) == (name == "anthropic-messages")


def test_a_user_turn_behind_results_is_bridged_for_mistral() -> None:
    """Mistral wants an assistant message between results and the user."""
    said = reply("openai-chat", ToolCall("", "f", {}))
    body = checked("openai-chat", "mistral", request(UserMessage("x"), said, results(said), UserMessage("y")))
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("name", "choice", "expected"),
    [
        ("openai-chat", "auto", None),
        ("openai-chat", "none", "none"),
        ("openai-chat", "required", "required"),
        ("openai-responses", "none", "none"),
        ("openai-responses", "required", "required"),
        ("anthropic-messages", "auto", None),
        ("anthropic-messages", "none", {"type": "none"}),
        ("anthropic-messages", "required", {"type": "any"}),
    ],
)
def test_a_choice_of_tools_keeps_the_tools(name: wire.WireName, choice: Any, expected: Any) -> None:
    """`none` is said beside the tools, so the prefix stays what it was."""
    body = checked(name, home(name), request(UserMessage("x"), tool_choice=choice))
    assert body.get("tool_choice") == expected
    assert len(body["tools"]) == 2
    assert "tool_choice" not in checked(name, home(name), request(UserMessage("x"), tools=(), tool_choice=choice))


def test_one_call_at_a_time_is_asked_for_where_it_can_be() -> None:
    """The switch for parallel calls has three spellings, and is left out where nobody knows it."""
    asked = request(UserMessage("x"), settings=ModelSettings(parallel_calls=False))
    assert checked("openai-chat", "openai", asked)["parallel_tool_calls"] is False
    assert checked("openai-responses", "openai", asked)["parallel_tool_calls"] is False
    assert checked("anthropic-messages", "anthropic", asked)["tool_choice"]["disable_parallel_tool_use"] is True
    assert "parallel_tool_calls" not in checked("openai-chat", "ollama", asked)
    assert "parallel_tool_calls" not in checked("openai-chat", "openai", attrs.evolve(asked, tools=()))


@pytest.mark.parametrize(
    ("model", "thinking", "cap", "expected"),
    [
        ("claude-sonnet-4-5", 2048, 5000, {"type": "enabled", "budget_tokens": 2048}),
        ("claude-sonnet-4-5", 9999, 5000, {"type": "enabled", "budget_tokens": 4999}),
        ("claude-sonnet-4-5", 10, 5000, {"type": "enabled", "budget_tokens": 1024}),
        ("claude-sonnet-4-5", "high", 600, None),
        ("claude-sonnet-4-5", None, 5000, None),
        ("claude-opus-4-6", "high", 5000, {"type": "adaptive"}),
        ("claude-opus-5", "low", 5000, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-5", None, 5000, None),
        ("claude-opus-5-5", None, 5000, {"type": "adaptive", "display": "summarized"}),
        ("claude-fable-5-1", "high", 300, {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-4-20250514", "low", 5000, {"type": "enabled", "budget_tokens": 2048}),
        ("kimi-k3", "low", 5000, {"type": "enabled", "budget_tokens": 2048}),
    ],
)
def test_thinking_has_the_form_the_model_takes(model: str, thinking: Any, cap: int, expected: Any) -> None:
    """A budget for the older Claude models, an effort for the newer ones, never more than the cap allows."""
    asked = request(
        UserMessage("x"), model=model, settings=ModelSettings(thinking=thinking, temperature=0.5), max_output_tokens=cap
    )
    body = checked("anthropic-messages", "anthropic", asked)
    assert body.get("thinking") == expected
    effort = body.get("output_config", {}).get("effort")
    assert (effort is not None) == (expected is not None and expected["type"] == "adaptive" and thinking is not None)


def test_forced_calls_and_thinking_exclude_each_other() -> None:
    """Thinking gives way to a forced call; a model that always thinks is only asked."""
    asked = request(
        UserMessage("x"), model="claude-sonnet-4-5", settings=ModelSettings(thinking=2000), tool_choice="required"
    )
    body = checked("anthropic-messages", "anthropic", asked)
    assert (body["tool_choice"], "thinking" in body) == ({"type": "any"}, False)
    assert "tool_choice" not in checked("anthropic-messages", "anthropic", attrs.evolve(asked, model="claude-opus-5-5"))


def test_a_round_that_began_without_thinking_ends_without() -> None:
    """Manual thinking is refused in a tool round whose first reply has none to send back."""
    said = reply("anthropic-messages", ToolCall("", "f", {}), model="claude-sonnet-4-5")
    asked = request(
        UserMessage("x"), said, results(said), model="claude-sonnet-4-5", settings=ModelSettings(thinking=2000)
    )
    assert "thinking" not in checked("anthropic-messages", "anthropic", asked)
    later = attrs.evolve(asked, messages=(*asked.messages, reply("anthropic-messages", Text("t")), UserMessage("next")))
    assert "thinking" in checked("anthropic-messages", "anthropic", later)


@pytest.mark.parametrize(
    ("dialect", "thinking", "expected"),
    [
        ("openai", "high", {"reasoning_effort": "high"}),
        ("openai", 20000, {"reasoning_effort": "high"}),
        ("openrouter", 3000, {"reasoning": {"max_tokens": 3000}}),
        ("openrouter", "low", {"reasoning": {"effort": "low"}}),
        ("deepseek", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("mistral", "high", {}),
    ],
)
def test_thinking_is_asked_for_in_each_dialects_words(dialect: str, thinking: Any, expected: dict[str, Any]) -> None:
    """Chat servers have four ways to ask."""
    body = checked("openai-chat", dialect, request(UserMessage("x"), settings=ModelSettings(thinking=thinking)))
    assert {k: v for k, v in body.items() if k in ("reasoning_effort", "reasoning", "thinking")} == expected


def test_cache_markers_stand_at_tools_system_and_the_last_two_user_turns() -> None:
    """At most four markers, the last one at the end, the one before where it stood a step ago."""
    history = conversation("anthropic-messages", 3)
    body = checked("anthropic-messages", "anthropic", request(*history))
    marked = [at for at, m in enumerate(body["messages"]) if "cache_control" in json.dumps(m)]
    assert marked == [4, 6]
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]
    assert '"cache_control"' not in json.dumps(checked("anthropic-messages", "deepseek", request(*history)))


def test_prompts_are_grouped_by_a_key_where_there_is_one() -> None:
    """OpenAI gets a cache key of at most 64 characters, OpenRouter one mark for Claude."""
    assert checked("openai-chat", "openai", request(UserMessage("x")))["prompt_cache_key"] == "root/a-1"
    long = request(UserMessage("x"), actor="a/" * 60)
    assert len(checked("openai-responses", "openai", long)["prompt_cache_key"]) == 64
    claude = checked("openai-chat", "openrouter", request(UserMessage("x"), model="anthropic/claude-opus-5.5"))
    assert claude["cache_control"] == {"type": "ephemeral"}
    assert "prompt_cache_key" not in checked("openai-chat", "vllm", request(UserMessage("x")))


@pytest.mark.parametrize(
    ("dialect", "options"), [("openai", True), ("mistral", False), ("openrouter", False), ("vllm", True)]
)
def test_usage_is_asked_for_where_it_must_be(dialect: str, options: bool) -> None:
    """Mistral refuses the option, OpenRouter needs none."""
    assert ("stream_options" in checked("openai-chat", dialect, request(UserMessage("x")))) is options


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), (OPEN, False)])
def test_an_output_schema_is_sent_in_each_wires_form(schema: dict[str, Any], strict: bool) -> None:
    """Strict only where the schema has the closed form; Anthropic takes no other."""
    asked = request(UserMessage("x"), model="claude-opus-5", output_schema=schema)
    named = checked("openai-chat", "openai", asked)["response_format"]["json_schema"]
    assert (named["schema"], named["strict"]) == (schema, strict)
    assert checked("openai-responses", "openai", asked)["text"]["format"]["strict"] is strict
    assert ("output_config" in checked("anthropic-messages", "anthropic", asked)) is strict
    assert checked("openai-chat", "deepseek", asked)["response_format"] == {"type": "json_object"}


def test_encrypted_reasoning_is_asked_for_from_models_that_reason() -> None:
    """Others refuse the question."""
    for model, asked in (("gpt-5.1", True), ("o4-mini", True), ("gpt-4o", False), ("gpt-5-chat-latest", False)):
        assert ("include" in checked("openai-responses", "openai", request(UserMessage("x"), model=model))) is asked


def test_broken_calls_go_back_as_each_server_takes_them() -> None:
    """OpenAI sees what the model wrote, servers that parse history see an empty object."""
    said = reply("openai-chat", ToolCall("", "f", None, '{"a', "cut"))
    for dialect, arguments in (("openai", '{"a'), ("vllm", "{}")):
        body = checked("openai-chat", dialect, request(UserMessage("x"), said, results(said)))
        assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == arguments


def test_gemini_gets_a_signature_for_calls_of_others() -> None:
    """The first call of a reply that has none carries the documented stand-in."""
    said = reply("openai-chat", ToolCall("", "f", {}), ToolCall("", "g", {}), provider="elsewhere")
    calls = checked("openai-chat", "gemini", request(UserMessage("x"), said, results(said)))["messages"][2][
        "tool_calls"
    ]
    assert calls[0]["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    assert "extra_content" not in calls[1]


def test_deepseek_always_gets_reasoning_beside_calls() -> None:
    """A call made by another model carries an empty one."""
    said = reply("openai-chat", ToolCall("", "f", {}), provider="elsewhere")
    body = checked("openai-chat", "deepseek", request(UserMessage("x"), said, results(said)))
    assert body["messages"][2]["reasoning_content"] == ""


def test_ids_stay_ours_and_legal() -> None:
    """(R43) A legal id is sent as it is; others are shortened the same way each time, and never meet."""
    assert call_id("t3c0") == "t3c0"
    odd = ["coordinator/researcher-1:t3c0", "x" * 65, "", "é", "x" * 66]
    assert len({call_id(id) for id in odd} | {call_id(id, "nine") for id in odd}) == 2 * len(odd)
    for id in odd:
        assert ID.fullmatch(call_id(id))
        assert re.fullmatch(r"[a-z0-9]{9}", call_id(id, "nine"))


def test_an_unknown_wire_is_refused() -> None:
    """A typo is not a wire."""
    with pytest.raises(ValueError, match="unknown wire"):
        wire.RequestEncoder("openai")


def test_no_system_prompt_is_no_empty_one() -> None:
    """Requests without a system prompt begin with the user."""
    for name in wire.WIRES:
        body = checked(name, home(name), request(UserMessage("x"), system=()))
        assert inside(body)[0]["role"] == "user"
        assert "system" not in body


# And back again: what a wire's response became goes back by the same wire's rules.

REPLIES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.json"))]


@pytest.mark.parametrize("case", REPLIES, ids=[case["name"] for case in REPLIES])
def test_a_decoded_reply_can_be_sent_back(case: dict[str, Any], decode: Any) -> None:
    """Every reply of the cases, put into a history with its results, makes a valid next request on each wire."""
    chunks = [base64.b64decode(c) if case["encoding"] == "base64" else c.encode() for c in case["chunks"]]
    said, error, _ = decode(case["wire"], chunks, case["status"], case["headers"])
    if error is not None:
        return
    message = AssistantMessage(said.parts, said.finish, said.usage, f"{home(case['wire'])}/some-model", said.wire)
    message = assign_call_ids(message, "t0")
    behind: tuple[Message, ...] = (results(message),) if message.calls else (UserMessage("go on"),)
    for name, dialect in PAIRS:
        checked(name, dialect, request(UserMessage("x"), message, *behind))
    own = json.dumps(encode(case["wire"], home(case["wire"]), request(UserMessage("x"), message, *behind)))
    for part in message.parts:
        if isinstance(part, Reasoning | Opaque) and case["wire"] == "anthropic-messages":
            block = part.opaque if isinstance(part, Reasoning) else part.data
            assert json.dumps(dict(block or {})) in own
