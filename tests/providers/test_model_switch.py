"""A conversation goes on with another model: over the socket goes a request that model takes, without foreign parts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from trio.testing import MockClock

from runtime import wire
from runtime.events import ModelRetried, Warned
from runtime.messages import (
    AssistantMessage,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    assign_call_ids,
)
from runtime.model import Emit, ModelRequest, Provider, ProviderError, Reply, ToolSpec
from runtime.providers.http import HttpProvider, Server
from runtime.providers.transport import RoutedTransport
from runtime.wire import WIRES, WireName

CASES = sorted((Path(__file__).parents[1] / "cases" / "wire" / "cases").glob("*.json"))
TOOLS = (ToolSpec("look", "looks", {"type": "object", "properties": {}}),)
HOMES: dict[WireName, str] = {
    "openai-chat": "openrouter",
    "openai-responses": "openai",
    "anthropic-messages": "anthropic",
}
PAIRS = [(a, b) for a in WIRES for b in WIRES if a != b]
SECRET_KEYS = ("signature", "encrypted_content", "data", "thought_signature")


def marks(value: Any) -> Iterator[str]:
    """The provider's own strings in an opaque part: signatures, encrypted and redacted data."""
    if isinstance(value, dict):
        for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            if key in SECRET_KEYS and isinstance(each, str) and len(each) > 3:
                yield each
            yield from marks(each)
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from marks(each)


def opaque_of(message: AssistantMessage) -> list[Any]:
    found: list[Any] = []
    for part in message.parts:
        match part:
            case Opaque(data=opaque) | Reasoning(opaque=opaque) | Text(opaque=opaque) | ToolCall(extra=opaque):
                if opaque is not None:
                    found.append(opaque)
    return found


def replies(name: WireName) -> list[AssistantMessage]:
    """What the cases of a wire say, as messages of a history, those with opaque parts first."""
    found: list[AssistantMessage] = []
    for path in CASES:
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["wire"] != name or case["expect"]["error"] is not None or case["expect"].get("finish") == "pause":
            continue
        decoder = wire.decoder(name, case["status"], case["headers"], n=case.get("request", {}).get("n", 1))
        for chunk in case["chunks"]:
            decoder.feed(base64.b64decode(chunk) if case["encoding"] == "base64" else chunk.encode())
        reply = decoder.close()
        message = AssistantMessage(reply.parts, reply.finish, reply.usage, f"{HOMES[name]}/some-model", reply.wire)
        found.append(assign_call_ids(message, f"a0t{len(found)}"))
    return sorted(found, key=lambda message: not opaque_of(message))


def history(name: WireName) -> tuple[Message, ...]:
    """A conversation made of every case of a wire, each call with its result."""
    messages: list[Message] = [UserMessage("the task")]
    for said in replies(name):
        messages.append(said)
        if said.calls:
            messages.append(ToolResults(tuple(ToolResult(call.id, call.name, "found") for call in said.calls)))
        else:
            messages.append(UserMessage("go on", "steer"))
    return tuple(messages)


def provider(name: WireName, server: Any, transport: RoutedTransport) -> HttpProvider:
    return HttpProvider(Server(HOMES[name], name, wire.DIALECTS[HOMES[name]], server.url, key="k"), transport)


async def ask(name: WireName, server: Any, messages: tuple[Message, ...]) -> Reply:
    transport = RoutedTransport(trust_env=False)
    try:
        request = ModelRequest("some-model", ("You are one.",), messages, TOOLS, actor="solo")
        return await provider(name, server, transport).complete(request, lambda deltas: None)
    finally:
        await transport.aclose()


def pairs_of_calls(name: WireName, body: Any) -> Iterator[tuple[list[str], list[str]]]:
    """The ids of each round's calls, and those of the results right behind; checks that nothing comes between."""
    calls: list[str] = []
    results: list[str] = []
    items: list[tuple[str, str]] = []
    for message in body["messages"] if "messages" in body else body["input"]:
        match name:
            case "openai-chat":
                items += [("call", entry["id"]) for entry in message.get("tool_calls", ())]
                items += [("result", message["tool_call_id"])] if message["role"] == "tool" else [("other", "")]
            case "anthropic-messages":
                for block in message["content"]:
                    kind = {"tool_use": "call", "tool_result": "result"}.get(block["type"], "other")
                    items.append((kind, block.get("id") or block.get("tool_use_id") or ""))
            case "openai-responses":
                kind = {"function_call": "call", "function_call_output": "result"}.get(message["type"], "other")
                items.append((kind, message.get("call_id", "")))
    for kind, id in items:
        if kind == "call":
            if results:
                yield calls, results
                calls, results = [], []
            calls.append(id)
        elif kind == "result":
            results.append(id)
    yield calls, results


@pytest.mark.parametrize(("before", "after"), PAIRS)
async def test_a_history_of_one_wire_goes_on_over_another(
    before: WireName, after: WireName, server: Any, answer: Any, say: Any
) -> None:
    """Everything readable goes along, every call keeps its result under an id of ours, nothing opaque is sent."""
    server.answers(answer(say(after, "done")))
    messages = history(before)
    said = [message for message in messages if isinstance(message, AssistantMessage)]
    opaque = [each for message in said for each in opaque_of(message)]
    assert opaque, "the cases have something to leave out"
    reply = await ask(after, server, messages)
    [seen] = server.seen
    text = seen.body.decode()
    for mark in (mark for each in opaque for mark in marks(each)):
        assert json.dumps(mark)[1:-1] not in text
    assert 0 < reply.left_out <= len(opaque)
    rounds = [(calls, results) for calls, results in pairs_of_calls(after, seen.json) if calls or results]
    assert [calls for calls, _ in rounds] == [results for _, results in rounds]
    assert [len(calls) for calls, _ in rounds] == [len(message.calls) for message in said if message.calls]
    ids = [id for calls, _ in rounds for id in calls]
    assert len(set(ids)) == len(ids)
    assert ids == [call.id for message in said for call in message.calls]
    for words in (message.text for message in said if message.text.strip().isalpha()):
        assert words in text


@pytest.mark.parametrize("name", WIRES)
async def test_a_history_goes_home_with_all_its_opaque_parts(
    name: WireName, server: Any, answer: Any, say: Any
) -> None:
    """Back at the provider it came from, every signature and every encrypted block goes along byte for byte."""
    server.answers(answer(say(name, "done")))
    messages = history(name)
    reply = await ask(name, server, messages)
    text = server.seen[0].body.decode()
    said = [message for message in messages if isinstance(message, AssistantMessage)]
    found = [mark for message in said for each in opaque_of(message) for mark in marks(each)]
    assert found
    assert [json.dumps(mark, ensure_ascii=False)[1:-1] in text for mark in found] == [True] * len(found)
    everything = [each for message in said for each in opaque_of(message)]
    unsealed = [each for each in everything if each.get("type") == "reasoning" and not each.get("encrypted_content")]
    assert reply.left_out == len(unsealed), "what a server keeps no copy of must come sealed"


@attrs.define(eq=False)
class Switched:
    """A provider that hands over to another one after the first reply, as a person would who picks another model."""

    first: Provider
    then: Provider
    transport: RoutedTransport
    name: str = "switched"

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        return await (self.then if request.turn else self.first).complete(request, emit)

    def count(self, request: ModelRequest) -> int | None:
        return None

    def forget(self, actor: str) -> None:
        self.first.forget(actor)
        self.then.forget(actor)


@pytest.mark.parametrize(("before", "after"), PAIRS)
async def test_a_switch_in_flight_is_told_once(
    before: WireName, after: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """A run whose model is changed goes on, and one warning says what the new one does not get."""
    pieces = b"".join(call(before, ("look", {})))
    match before:
        case "anthropic-messages":
            block = {"type": "redacted_thinking", "data": "sealed"}
            start = {"type": "content_block_start", "index": 7, "content_block": block}
            stop = {"type": "content_block_stop", "index": 7}
            extra = b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in (start, stop))
            pieces = pieces.replace(b"event: message_delta", extra + b"event: message_delta")
        case "openai-responses":
            item: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
            pieces = pieces.replace(b'"output": [{', b'"output": [%s, {' % json.dumps(item).encode())
        case "openai-chat":
            detail = {"type": "reasoning.encrypted", "data": "sealed", "id": "r", "index": 0}
            chunk = {"choices": [{"index": 0, "delta": {"reasoning_details": [detail]}}]}
            pieces = b"data: %s\n\n" % json.dumps(chunk).encode() + pieces
    server.answers(answer((pieces,)), answer(call(after, ("look", {"at": "b"}))), answer(say(after, "done")))
    transport = RoutedTransport(trust_env=False)
    switched = Switched(provider(before, server, transport), provider(after, server, transport), transport)
    outcome = run.outcome
    async with run.opened(outcome, after, ["look"], model="switched/some-model", providers={"switched": switched}):
        pass
    await switched.transport.aclose()
    assert (outcome.report.status, outcome.report.text, len(server.seen)) == ("completed", "done", 3)
    assert [b"sealed" in seen.body for seen in server.seen] == [False] * 3
    [warned] = outcome.of(Warned)
    assert warned.text.endswith("opaque parts of earlier replies do not go to switched/some-model")
    for seen in server.seen[1:]:
        rounds = [pair for pair in pairs_of_calls(after, seen.json) if pair[0]]
        assert [calls == results for calls, results in rounds] == [True] * len(rounds)


async def test_what_a_server_refuses_to_take_back_is_left_out(
    run: Any, server: Any, answer: Any, say: Any, call: Any, skipping_clock: MockClock
) -> None:
    """A conversation is not stuck on a signature its own server no longer takes: it goes on without."""
    name: WireName = "anthropic-messages"
    thinking = {"type": "thinking", "thinking": "hm", "signature": "STALE-SIGNATURE"}
    extra = b"".join(
        b"data: %s\n\n" % json.dumps(each).encode()
        for each in (
            {"type": "content_block_start", "index": 9, "content_block": thinking},
            {"type": "content_block_stop", "index": 9},
        )
    )
    pieces = b"".join(call(name, ("look", {}))).replace(
        b"event: content_block_start", extra + b"event: content_block_start", 1
    )
    refusal = (
        b'{"type":"error","error":{"type":"invalid_request_error","message":"Invalid `signature` in `thinking` block"}}'
    )

    def respond(seen: Any) -> Any:
        if len(server.seen) == 1:
            return answer((pieces,))
        if b"STALE-SIGNATURE" in seen.body:
            return answer((refusal,), 400, {"content-type": "application/json"})
        return answer(say(name, "done"))

    server.respond = respond
    outcome = await run(name, ["look"], model="anthropic/some-model")
    assert (outcome.report.status, outcome.report.text) == ("completed", "done")
    assert [b"STALE-SIGNATURE" in seen.body for seen in server.seen] == [False, True, False]
    assert [event.kind for event in outcome.of(ModelRetried)] == ["http"]
    assert len(outcome.of(Warned)) == 1


async def test_a_refusal_with_nothing_to_leave_out_is_final(server: Any, answer: Any) -> None:
    """The same words about a history that holds nothing opaque are an ordinary refusal."""
    refusal = b'{"error":{"message":"Invalid `signature`"}}'
    server.answers(answer((refusal,), 400, {"content-type": "application/json"}))
    with pytest.raises(ProviderError) as failed:
        await ask("openai-chat", server, (UserMessage("hi"),))
    assert failed.value.retryable is False
