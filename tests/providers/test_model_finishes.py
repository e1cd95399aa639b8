"""How a reply ends decides what the run does next: every finish of every wire, through whole runs."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.agent import MOST_CONTINUATIONS
from runtime.events import LoopStopped, ModelFinished, NoteAdded, ToolFinished
from runtime.limits.limits import Limits
from runtime.wire import WIRES, WireName
from runtime.words import CONTINUE

each_wire = pytest.mark.parametrize("wire", WIRES)
LENGTH = {"openai-chat": "length", "anthropic-messages": "max_tokens", "openai-responses": "max_output_tokens"}
FINAL = [
    ("openai-chat", "content_filter", "content_filter"),
    ("openai-responses", "content_filter", "content_filter"),
    ("anthropic-messages", "refusal", "refusal"),
    ("openai-chat", "model_length", "context_window"),
    ("anthropic-messages", "model_context_window_exceeded", "context_window"),
]


@each_wire
async def test_stop_completes_the_run(wire: WireName, run: Any, server: Any, answer: Any, say: Any) -> None:
    """A reply that simply ends is the answer."""
    server.answers(answer(say(wire, "that is it")))
    outcome = await run(wire)
    assert (outcome.report.status, outcome.report.text, outcome.report.steps) == ("completed", "that is it", 1)


@each_wire
async def test_calls_are_run_and_their_results_sent(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """A reply with calls has them run, and the next request holds both calls and results under one id of ours each."""
    server.answers(answer(call(wire, ("look", {"at": "a"}), ("look", {"at": "b"}))), answer(say(wire, "done")))
    outcome = await run(wire, ["look"])
    assert sorted(outcome.ran, key=str) == [("look", {"at": "a"}), ("look", {"at": "b"})]
    assert (outcome.report.status, outcome.report.text, outcome.report.steps) == ("completed", "done", 2)
    sent = server.seen[1].body.decode()
    assert [sent.count(f'"a0t0c{number}"') for number in (0, 1)] == [2, 2]


@each_wire
async def test_a_reply_cut_at_its_limit_is_continued(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """A text cut off by the output limit is continued, and the answer is both pieces in one."""
    server.answers(answer(say(wire, "The first half, ", finish=LENGTH[wire])), answer(say(wire, "the second half.")))
    outcome = await run(wire)
    assert (outcome.report.status, outcome.report.text) == ("completed", "The first half, the second half.")
    assert [event.text for event in outcome.of(NoteAdded)] == [CONTINUE]
    assert [event.finish for event in outcome.of(ModelFinished)] == ["length", "stop"]


@each_wire
async def test_a_reply_that_is_always_cut_is_reported_as_such(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """A model that never comes to an end within its limit ends as `length`, never as a success."""
    server.answers(*(answer(say(wire, f"part {number}. ", finish=LENGTH[wire])) for number in range(1, 9)))
    outcome = await run(wire)
    assert (outcome.report.status, outcome.report.reason) == ("stopped", "length")
    assert len(server.seen) == MOST_CONTINUATIONS + 1
    assert "part 1. part 2. " in outcome.report.text


@each_wire
@pytest.mark.parametrize("arguments", ["", '{"path": "a", "content": "xx', "[1", "nul"])
async def test_a_call_that_the_limit_cut_is_not_run(
    wire: WireName, arguments: str, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """A call cut off by the output limit is not run, not even without arguments; its error result says why."""
    pieces = b"".join(call(wire, ("write", arguments)))
    for before, after in (
        (b'"finish_reason": "tool_calls"', b'"finish_reason": "length"'),
        (b'"stop_reason": "tool_use"', b'"stop_reason": "max_tokens"'),
        (b'"response.completed"', b'"response.incomplete"'),
        (b"response.completed\n", b"response.incomplete\n"),
        (
            b'"status": "completed"}}',
            b'"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}',
        ),
    ):
        pieces = pieces.replace(before, after)
    server.answers(answer((pieces,)), answer(say(wire, "done")))
    outcome = await run(wire, ["write"])
    assert [event.finish for event in outcome.of(ModelFinished)] == ["length", "stop"]
    assert outcome.ran == []
    [result] = outcome.of(ToolFinished)
    assert result.is_error
    assert "output limit" in result.result
    assert (outcome.report.status, outcome.report.text) == ("completed", "done")


async def test_a_model_whose_calls_are_always_cut_does_not_go_on_for_ever(
    run: Any, server: Any, answer: Any, call: Any
) -> None:
    """The same cut call again and again is stopped by the guard or the limits, and never run."""
    pieces = b"".join(call("openai-chat", ("write", '{"content": "xx'))).replace(b'"tool_calls"}', b'"length"}')
    server.answers(answer((pieces,)))
    outcome = await run(tools=["write"], limits=Limits(max_steps=20))
    assert (outcome.report.status, outcome.ran) == ("stopped", [])
    assert outcome.report.reason in ("loop", "max_steps")
    assert outcome.of(LoopStopped) or len(server.seen) == 20


@pytest.mark.parametrize(("wire", "word", "reason"), FINAL)
async def test_a_reply_taken_back_stops_the_run(
    wire: WireName, word: str, reason: str, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """A filtered or refused reply, or one at the window's end, stops the run with its reason and what was said."""
    server.answers(answer(say(wire, "as far as it goes", finish=word)))
    outcome = await run(wire)
    assert (outcome.report.status, outcome.report.reason) == ("stopped", reason)
    assert (outcome.report.text, len(server.seen)) == ("as far as it goes", 1)


async def test_the_calls_of_a_filtered_reply_are_not_run(run: Any, server: Any, answer: Any, call: Any) -> None:
    """What the provider took back is not acted upon, however complete its calls are."""
    pieces = b"".join(call("openai-chat", ("write", {"path": "a"}))).replace(b'"tool_calls"}', b'"content_filter"}')
    server.answers(answer((pieces,)))
    outcome = await run(tools=["write"])
    assert (outcome.report.status, outcome.report.reason, outcome.ran) == ("stopped", "content_filter", [])
    assert outcome.of(ToolFinished) == []


async def test_a_paused_turn_goes_on(run: Any, server: Any, answer: Any, say: Any) -> None:
    """A turn the server paused is sent back as it is, and goes on."""
    wire = "anthropic-messages"
    server.answers(answer(say(wire, "Searching. ", finish="pause_turn")), answer(say(wire, "Found.")))
    outcome = await run(wire)
    assert (outcome.report.status, outcome.report.text) == ("completed", "Searching. Found.")
    messages = server.seen[1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert outcome.of(NoteAdded) == []


async def test_a_prompt_that_no_longer_fits_stops_the_run(run: Any, server: Any, answer: Any, call: Any) -> None:
    """A request the model has no room for is not tried again: the run stops and says so, with what it had."""
    refused = b'{"error":{"code":"context_length_exceeded","message":"too long"}}'
    pieces = call("openai-chat", ("look", {}))
    server.answers(answer(pieces), answer((refused,), 400, {"content-type": "application/json"}))
    outcome = await run(tools=["look"])
    assert (outcome.report.status, outcome.report.reason) == ("stopped", "context_window")
    assert "too long" in outcome.report.detail
    assert len(server.seen) == 2


@each_wire
async def test_an_empty_reply_is_asked_about_once(wire: WireName, run: Any, server: Any, answer: Any, say: Any) -> None:
    """A reply without a word is no answer: it is asked for once more, then the run fails."""
    server.answers(answer(say(wire, "")), answer(say(wire, "here it is")))
    assert (await run(wire)).report.text == "here it is"
    server.seen.clear()
    server.answers(answer(say(wire, "")))
    outcome = await run(wire)
    assert (outcome.report.status, len(server.seen)) == ("failed", 2)
