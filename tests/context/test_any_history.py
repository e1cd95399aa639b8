"""Whatever the history and wherever it is cut: a compaction keeps the wires' rules, and what came after the cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.context.compaction import cut_before, folded, is_border, shortened, size, without_old_reasoning
from runtime.context.summary import note, split
from runtime.continuation import Continuation
from runtime.conversation import checked
from runtime.messages import (
    AssistantMessage,
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
from runtime.model import ModelRequest, ToolSpec
from runtime.wire import DIALECTS, WIRES, RequestEncoder, WireName
from runtime.words import CONTINUE

if TYPE_CHECKING:
    from tests.context.conftest import Model as Lab
    from tests.context.conftest import Small

HOMES = {"openai-chat": "deepseek", "openai-responses": "openai", "anthropic-messages": "anthropic"}
TOOLS = tuple(ToolSpec(name, f"does {name}", {"type": "object", "properties": {}}) for name in ("look", "read_file"))
LENGTHS = st.sampled_from([0, 3, 40, 900, 3000])

# --- histories ---------------------------------------------------------------------------------------------------


def thought(wire: str, number: int) -> Part:
    match wire:
        case "anthropic-messages":
            return Reasoning("because", {"type": "thinking", "thinking": "because", "signature": f"S{number}"})
        case "openai-responses":
            item: dict[str, Any] = {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [],
                "encrypted_content": "E" * 40,
            }
            return Reasoning("because", item)
        case _:
            return Reasoning("because", {"reasoning_content": "because"})


@st.composite
def replies(draw: st.DrawFn, wire: str, turn: int) -> AssistantMessage:
    parts: list[Part] = []
    for number in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            parts.append(thought(wire, number))
            if wire == "anthropic-messages" and draw(st.booleans()):
                parts.append(Opaque({"type": "redacted_thinking", "data": "D"}))
        kind = draw(st.sampled_from(["text", "look", "read_file"]))
        tied = {"id": f"x_{turn}_{number}"} if wire == "openai-responses" else None
        if kind == "text":
            parts.append(Text("said " * draw(st.integers(0, 60)), tied))
        elif kind == "look":
            parts.append(ToolCall("", "look", {"at": number}, extra=tied))
        else:
            parts.append(ToolCall("", "read_file", {"path": draw(st.sampled_from("ab"))}, extra=tied))
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "stop", "length", "pause"]))
    message = AssistantMessage(tuple(parts), finish, None, f"{HOMES[wire]}/m", wire)  # type: ignore[arg-type]
    return assign_call_ids(message, f"a0t{turn}")


@st.composite
def outcomes(draw: st.DrawFn, said: AssistantMessage) -> ToolResults:
    def content(call: ToolCall) -> str:
        text = "\n".join(["row of text"] * (draw(LENGTHS) // 12))
        if call.name != "read_file":
            return text
        first = draw(st.sampled_from([1, 1, 5]))
        return f"{(call.arguments or {})['path']}: lines {first}-{first + 9} of 99\n{text}"

    kinds = st.sampled_from(["ok", "ok", "error"])
    return ToolResults(
        tuple(ToolResult(call.id, call.name, content(call), draw(kinds)) for call in said.calls)  # type: ignore[arg-type]
    )


@st.composite
def histories(draw: st.DrawFn, least: int = 0, most: int = 12) -> tuple[WireName, tuple[Message, ...]]:
    wire: WireName = draw(st.sampled_from(WIRES))
    messages: list[Message] = [UserMessage("the first task")]
    for turn in range(draw(st.integers(least, most))):
        said = draw(replies(wire, turn))
        messages.append(said)
        if said.calls:
            messages.append(draw(outcomes(said)))
        elif said.finish == "length":
            messages.append(UserMessage(CONTINUE, "note"))
        elif said.finish == "stop":
            messages.append(UserMessage(f"and then {turn}" + "?" * draw(st.sampled_from([0, 0, 2000]))))
        if not (said.finish in ("length", "pause") and not said.calls) and draw(st.integers(0, 3)) == 0:
            messages.append(UserMessage(f"by the way {turn}", draw(st.sampled_from(["steer", "note"]))))
    return wire, tuple(messages)


# --- the rules of the wires --------------------------------------------------------------------------------------


def body_of(wire: WireName, messages: Sequence[Message]) -> dict[str, Any]:
    request = ModelRequest("m", ("You work alone.",), tuple(messages), TOOLS, actor="solo")
    body: dict[str, Any] = json.loads(RequestEncoder(wire, DIALECTS[HOMES[wire]]).encode(request))
    return body


def keeps_the_rules(wire: WireName, messages: Sequence[Message]) -> None:
    body = body_of(wire, messages)
    match wire:
        case "openai-chat":
            chat_rules(body["messages"])
        case "openai-responses":
            responses_rules(body["input"])
        case "anthropic-messages":
            anthropic_rules(body)


def chat_rules(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
            continue
        assert not waiting
        assert message.get("content") or message.get("tool_calls")
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


def responses_rules(items: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for at, item in enumerate(items):
        match item["type"]:
            case "function_call":
                waiting.append(item["call_id"])
            case "function_call_output":
                assert waiting.pop(0) == item["call_id"]
            case "reasoning":
                assert items[at + 1]["type"] in ("function_call", "message", "reasoning")
                assert items[at + 1].get("role") != "user"
            case _:
                assert item["role"] == "assistant" or not waiting
        if item["type"] in ("function_call", "message") and item.get("id"):
            # An item that names its id is refused without the reasoning it came with.
            assert item["id"].startswith("x_")
    assert not waiting


def anthropic_rules(body: dict[str, Any]) -> None:
    assert json.dumps(body).count('"cache_control"') <= 4
    before, waiting = "assistant", list[str]()
    for message in body["messages"]:
        # A paused reply goes on in the next one; the server takes the two as one.
        assert message["role"] != before or before == "assistant"
        before, blocks = message["role"], message["content"]
        kinds = [block["type"] for block in blocks]
        if before == "user":
            answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert answered == waiting
            assert kinds[: len(answered)] == ["tool_result"] * len(answered)
            continue
        assert kinds[-1] not in ("thinking", "redacted_thinking")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert all(block["signature"] for block in blocks if block["type"] == "thinking")


def blocks_of(message: Message) -> list[Any]:
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    return [part.opaque for part in parts if isinstance(part, Reasoning)]


def said_by_people(messages: Sequence[Message]) -> list[str]:
    return [each.text for each in messages if isinstance(each, UserMessage) and each.kind != "note"]


# --- the pure steps ----------------------------------------------------------------------------------------------


def steps(cut: int, excess: int) -> list[Callable[[Sequence[Message]], Any]]:
    def whole(result: ToolResult) -> str:
        return result.content

    return [
        lambda given: shortened(given, cut, excess, whole),
        lambda given: without_old_reasoning(given, cut),
        lambda given: folded(given, cut, whole),
    ]


@settings(max_examples=150, deadline=None)
@given(
    drawn=histories(),
    room=st.integers(0, 12_000),
    excess=st.integers(0, 20_000),
    taken=st.sets(st.integers(0, 2)),
    sums=st.booleans(),
)
def test_any_history_cut_anywhere_keeps_the_rules_of_its_wire(
    drawn: tuple[WireName, tuple[Message, ...]], room: int, excess: int, taken: set[int], sums: bool
) -> None:
    """R46: the cut is at a pair border, the whole list holds, nothing from the cut on changed, and the size fell."""
    wire, before = drawn
    keeps_the_rules(wire, before)
    cut = cut_before(before, room)
    if cut < 1:
        return
    assert is_border(before, cut)
    after = before
    for number, step in enumerate(steps(cut, excess)):
        if number in taken:
            done = step(after)
            assert size(done.messages) < size(after) if done.said else done.messages == after
            after = done.messages
    assert all(a is b for a, b in zip(before[cut:], after[cut:], strict=True))
    assert said_by_people(before) == said_by_people(after)
    if sums:
        parts = split(after, cut)
        after = (*parts.first, note("a summary", writer="by:", handles=["a0k1"]), *parts.rest)
        assert said_by_people(before) == said_by_people(after)
        assert after[len(after) - len(parts.rest) :] == before[cut:]
    assert checked(after) == after
    keeps_the_rules(wire, after)


@settings(max_examples=150, deadline=None)
@given(drawn=histories(), cut=st.integers(0, 30))
def test_reasoning_is_dropped_as_whole_blocks_or_not_at_all(
    drawn: tuple[WireName, tuple[Message, ...]], cut: int
) -> None:
    """R45: a block of reasoning goes back byte for byte and in its place, or not at all; never half of one."""
    _, before = drawn
    after = without_old_reasoning(before, min(cut, len(before))).messages
    for was, now in zip(before, after, strict=True):
        assert blocks_of(now) in (blocks_of(was), [])
        if isinstance(was, AssistantMessage) and isinstance(now, AssistantMessage):
            assert [call.id for call in was.calls] == [call.id for call in now.calls]
            assert was.text == now.text


# --- the compactor itself ----------------------------------------------------------------------------------------


def compacted(small: Small, before: tuple[Message, ...], by_hand: bool) -> None:
    """A run that begins with a history, and compacts it at once."""
    small.tool(effects="none", private=True)(look)
    small.continues = Continuation("t0", before, 40, 1, agent="solo")
    small.compacts = by_hand


async def look(at: int) -> str:
    """Look."""
    return f"{at}"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=histories(least=6, most=16),
    window=st.sampled_from([2_000, 4_000, 8_000, None]),
    by_hand=st.booleans(),
    fails=st.booleans(),
)
async def test_any_history_is_made_smaller_or_the_run_ends(
    make_small: Callable[[], Small],
    Model: type[Lab],
    drawn: tuple[WireName, tuple[Message, ...]],
    window: int | None,
    by_hand: bool,
    fails: bool,
) -> None:
    """After any compaction of any history it is smaller and keeps its wire's rules, what a person said stands or its
    head does, and no request is larger than the window; or the run stops with `context_window`."""
    wire, before = drawn
    if isinstance(before[-1], AssistantMessage) and before[-1].finish == "stop":
        before = (*before, UserMessage("go on"))
    small = make_small()
    small.window = window
    small.model = Model(lambda request: "" if request.agent == "summary" and fails else "short", counts=True)
    compacted(small, before, by_hand)
    report = await small.run()
    last = before if by_hand else (*before, UserMessage(small.task))
    for event, after in small.histories():
        assert event.after < event.before
        assert checked(after) == after
        keeps_the_rules(wire, after)
        assert after[0] == before[0]
        assert len(said_by_people(after)) == len(said_by_people(last))
        for was, now in zip(said_by_people(last), said_by_people(after), strict=True):
            assert was == now or (now.startswith(was[:40]) and "characters left out" in now)
        last = after
    if window is not None and not by_hand:
        for request in small.model.turns:
            # What a last turn can always cut is what came since the last reply, but for a person's words.
            newest = max(
                (at for at, each in enumerate(request.messages) if isinstance(each, AssistantMessage)), default=0
            )
            behind = [each for each in request.messages[newest:] if isinstance(each, UserMessage)]
            fixed = size([*request.messages[: newest + 1], *behind]) // 4
            if request.tool_choice != "none" or fixed < window // 2:
                assert request.max_output_tokens + small.model.tokens(request) <= window
        assert report.status == "completed" or report.reason == "context_window", report
