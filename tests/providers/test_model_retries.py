"""When a model is asked again, through whole runs: after which errors, how soon, how often, and at whose cost."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.events import (
    BudgetSettled,
    ModelDelta,
    ModelFailed,
    ModelRetried,
    ModelWithdrawn,
)
from runtime.limits.limits import Limits
from runtime.messages import UserMessage
from runtime.model import ModelRequest, ProviderError
from runtime.providers.http import HttpProvider, Server
from runtime.providers.transport import RoutedTransport, Timeouts
from runtime.wire import COMPATIBLE, WIRES, WireName

each_wire = pytest.mark.parametrize("wire", WIRES)
JSON = {"content-type": "application/json"}
ORDER = ("model.requested", "model.withdrawn", "model.retried", "model.finished")


def fault(answer: Any, status: int, kind: str = "overloaded_error", **headers: str) -> Any:
    body = b'{"error":{"type":"%s","message":"not now"}}' % kind.encode()
    return answer((body,), status, {**JSON, **headers})


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:40 GMT", "date": "Mon, 30 Nov 2026 00:00:10 GMT"}, 30),
    ],
)
async def test_a_server_is_asked_again_when_it_says(
    headers: dict[str, str], least: float, run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Retry-After in seconds, in milliseconds or as a date is waited out, with a little jitter, and shown."""
    server.answers(fault(answer, 429, "rate_limit_error", **headers), answer(say("openai-chat", "done")))
    outcome = await run()
    [retried] = outcome.of(ModelRetried)
    assert (retried.kind, retried.attempt, retried.limit) == ("rate_limit", 0, 4)
    assert least <= retried.wait < least + 0.5
    assert skipping_clock.current_time() >= retried.wait
    assert outcome.report.text == "done"


async def test_a_longer_pause_than_we_wait_is_final(run: Any, server: Any, answer: Any, say: Any) -> None:
    """A server that wants to be left alone for an hour is not waited for, and the report says why."""
    server.answers(fault(answer, 429, "rate_limit_error", **{"retry-after": "3600"}))
    outcome = await run()
    assert (outcome.report.status, len(server.seen), outcome.of(ModelRetried)) == ("failed", 1, [])
    assert "pause of 3600 s" in outcome.report.detail


async def test_waits_grow_and_tries_end(run: Any, server: Any, answer: Any, skipping_clock: MockClock) -> None:
    """An overloaded server is tried four times, with longer and longer waits, then the run fails and says so."""
    server.answers(fault(answer, 503))
    outcome = await run()
    waits = [event.wait for event in outcome.of(ModelRetried)]
    assert len(server.seen) == 4
    assert [0.75 * 2**n <= wait <= 1.25 * 2**n for n, wait in enumerate(waits)] == [True] * 3
    [failed] = outcome.of(ModelFailed)
    assert (outcome.report.status, failed.kind, failed.status) == ("failed", "overloaded", 503)
    assert "given up: 4 tries" in outcome.report.detail


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "insufficient_quota"), (429, "billing_hard_limit_reached"), (402, "billing_error")]
)
async def test_no_money_is_final(status: int, kind: str, run: Any, server: Any, answer: Any) -> None:
    """A refusal about money is not tried again."""
    server.answers(fault(answer, status, kind))
    outcome = await run()
    assert (outcome.report.status, len(server.seen)) == ("failed", 1)


async def test_nobody_retries_into_the_deadline(run: Any, server: Any, answer: Any, skipping_clock: MockClock) -> None:
    """A pause that would outlast the run's time is not begun."""
    server.answers(fault(answer, 429, "rate_limit_error", **{"retry-after": "60"}))
    outcome = await run(limits=Limits(timeout=30))
    assert (outcome.report.status, len(server.seen)) == ("failed", 1)
    assert "the deadline comes first" in outcome.report.detail
    assert skipping_clock.current_time() < 30


async def test_a_stalled_server_ends_with_the_deadline(
    run: Any, server: Any, answer: Any, skipping_clock: MockClock
) -> None:
    """A server that never answers is waited for until the run's time is up, and no longer."""
    server.answers(answer(then="stall", head=False))
    outcome = await run(limits=Limits(timeout=30))
    assert (outcome.report.status, outcome.report.reason) == ("stopped", "deadline")
    assert skipping_clock.current_time() <= 31


@each_wire
async def test_what_was_shown_is_withdrawn_before_it_is_said_again(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Text of an attempt that broke is withdrawn before the next one begins, and counts as spent."""
    whole = say(wire, "the very answer")
    server.answers(answer(whole[: -3 if wire == "openai-chat" else -2], then="reset"), answer(whole))
    outcome = await run(wire)
    kinds = [event.type for event in outcome.events if event.type in ORDER]
    assert kinds == [ORDER[n] for n in (0, 1, 2, 0, 3)]
    lost, kept = outcome.of(BudgetSettled)
    assert (lost.replied, lost.usage["estimated"], kept.replied, kept.usage["estimated"]) == (False, True, True, False)
    assert lost.usage["input"] > 0
    assert lost.usage["output"] >= len("the very answer") // 2
    assert outcome.report.usage.input == lost.usage["input"] + kept.usage["input"]
    assert outcome.report.usage.output == lost.usage["output"] + kept.usage["output"]
    assert (outcome.report.text, outcome.report.steps) == ("the very answer", 1)


async def test_watchers_see_the_withdrawn_text_go(
    run: Any, server: Any, answer: Any, say: Any, nursery: trio.Nursery, skipping_clock: MockClock
) -> None:
    """Whoever follows the stream sees the pieces of the broken attempt, their withdrawal, then the new ones."""
    whole = say("openai-chat", "abc")
    server.answers(answer(whole[:1], then="hang_up", pause=0.5), answer(whole, pause=0.5))
    seen: list[str] = []

    async def follow(live: Any, *, task_status: trio.TaskStatus[None]) -> None:
        async with live.stream.subscribe() as reader:
            task_status.started()
            async for record in reader:
                match record.event:
                    case ModelDelta(text=text):
                        seen.append(text)
                    case ModelWithdrawn() | ModelRetried() as event:
                        seen.append(event.type)
                    case _:
                        pass

    async with run.opened(run.outcome) as live:
        await nursery.start(follow, live)
    assert seen == ["abc", "model.withdrawn", "model.retried", "abc"]


async def test_a_failed_attempt_costs_what_it_reported(
    run: Any, server: Any, answer: Any, events: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Usage that came before the break is what the attempt cost; nothing was shown, so nothing is withdrawn."""
    reported = events({"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 30}})
    server.answers(answer(reported, then="hang_up"), answer(say("openai-chat", "done")))
    outcome = await run()
    lost, _ = outcome.of(BudgetSettled)
    assert (lost.usage["input"], lost.usage["output"], lost.usage["estimated"]) == (700, 30, False)
    assert outcome.of(ModelWithdrawn) == []


async def test_comments_and_pings_keep_a_silent_stream_alive(
    run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """A model that thinks for ten minutes is not cut off as long as something comes every now and then."""
    quiet = (b": still thinking\n\n",) * 10
    server.answers(answer((*quiet, *say("openai-chat", "done")), pause=100))
    outcome = await run(limits=Limits(timeout=7200))
    assert (outcome.report.status, outcome.of(ModelRetried)) == ("completed", [])
    assert skipping_clock.current_time() >= 1000


async def test_a_stream_that_falls_silent_is_cut_off(
    run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Silence in the middle of a reply ends the attempt after the idle time-out, and the event says so."""
    whole = say("openai-chat", "a longer answer")
    server.answers(answer(whole[:1], then="stall"), answer(whole))
    outcome = await run()
    [retried] = outcome.of(ModelRetried)
    assert retried.kind == "truncated"
    assert "nothing more of the response for 120 s" in retried.message
    assert 120 <= skipping_clock.current_time() < 130


async def test_the_first_word_may_take_longer_than_the_next(
    run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """A server that has sent its head may still read a long prompt: its first piece has the time of a first byte."""
    whole = say("openai-chat", "done")
    server.answers(answer(whole, pause=0, first=500))
    outcome = await run(limits=Limits(timeout=7200))
    assert (outcome.report.text, outcome.of(ModelRetried)) == ("done", [])


async def test_a_finished_reply_does_not_wait_for_the_body_to_end(
    run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Once the wire's own end has come, a server that keeps the body open is not waited for."""
    server.answers(answer(say("openai-chat", "done"), then="stall"))
    outcome = await run()
    assert (outcome.report.text, outcome.of(ModelRetried)) == ("done", [])
    assert skipping_clock.current_time() < 5


async def test_a_refused_connection_is_told_from_a_lost_one(run: Any, server: Any, skipping_clock: MockClock) -> None:
    """Where nothing listens the kind is `connect`, there are three tries, and nothing was spent."""
    server.port = 9
    outcome = await run()
    assert [event.kind for event in outcome.of(ModelRetried)] == ["connect"] * 2
    assert (outcome.report.status, outcome.report.usage.total) == ("failed", 0)


async def test_time_outs_are_one_for_each_wait(server: Any, answer: Any, skipping_clock: MockClock) -> None:
    """Connect, first byte and idle time-outs of a provider are separate arguments."""
    for timeouts, reply, seconds in (
        (Timeouts(first_byte=3), answer(head=False, then="stall"), 3),
        (Timeouts(first_byte=5, read=2), answer((b": hello\n\n",), then="stall"), 2),
        (Timeouts(first_byte=5, read=2), answer(then="stall"), 5),
    ):
        server.answers(reply)
        transport = RoutedTransport(trust_env=False)
        provider = HttpProvider(Server("server", "openai-chat", COMPATIBLE, server.url), transport, timeouts)
        began = skipping_clock.current_time()
        with pytest.raises(ProviderError) as failed:
            await provider.complete(ModelRequest("m", (), (UserMessage("hi"),)), lambda deltas: None)
        assert failed.value.kind == "truncated"
        assert skipping_clock.current_time() - began == pytest.approx(seconds, abs=0.1)
        await transport.aclose()
