"""What a call cost, through whole runs: each token once, at its own rate; a guess is marked, a bill is believed."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from runtime.cli import closing
from runtime.events import BudgetOverrun, BudgetSettled, ModelFinished
from runtime.known import KNOWN
from runtime.limits.limits import Limits
from runtime.prices import lookup
from runtime.wire import WIRES, WireName

each_wire = pytest.mark.parametrize("wire", WIRES)


def usage_events(events: Any, usage: dict[str, Any], text: str = "done") -> Any:
    finished = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return events(finished, {"choices": [], "usage": usage}, "[DONE]")


@each_wire
async def test_reported_usage_is_what_the_run_reports(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """Tokens as the server counted them reach the events and the report, and are marked as no guess."""
    server.answers(answer(say(wire, "done", (1234, 56))))
    outcome = await run(wire)
    [settled], [finished] = outcome.of(BudgetSettled), outcome.of(ModelFinished)
    expected = {"input": 1234, "output": 56, "cached_input": 0, "cache_write": 0, "reasoning": 0, "estimated": False}
    assert settled.usage == finished.usage == expected
    assert (outcome.report.usage.input, outcome.report.usage.output) == (1234, 56)


@each_wire
@pytest.mark.parametrize("usage", [None, (0, 0)])
async def test_missing_usage_is_guessed_and_marked(
    wire: WireName, usage: Any, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """A reply without usage, or with zeros, is never free: it is estimated, and shown with a tilde."""
    server.answers(answer(say(wire, "a text of twenty-eight bytes", usage)))
    outcome = await run(wire, model="openai/gpt-6.1-sol")
    [settled] = outcome.of(BudgetSettled)
    assert settled.usage["estimated"] is True
    assert settled.usage["input"] > 20
    assert settled.usage["output"] == 14
    assert settled.cost_usd is not None
    assert settled.cost_usd > 0
    assert outcome.report.usage.estimated
    assert all(text.startswith("~") for text in closing.spent(outcome.report.usage, 0.5, "openai/gpt-6.1-sol"))


async def test_usage_of_the_prompt_alone_leaves_only_the_reply_to_guess(
    run: Any, server: Any, answer: Any, events: Any
) -> None:
    """Where only the output's count is missing, only that is guessed."""
    server.answers(answer(usage_events(events, {"prompt_tokens": 99, "completion_tokens": 0}, "eight by")))
    outcome = await run()
    assert (outcome.report.usage.input, outcome.report.usage.output, outcome.report.usage.estimated) == (99, 4, True)


async def test_a_bill_of_the_servers_own_is_believed(run: Any, server: Any, answer: Any, events: Any) -> None:
    """OpenRouter's cost is what a call cost, whatever the price table says."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.0123}
    server.answers(answer(usage_events(events, usage)))
    outcome = await run(model="openrouter/anthropic/claude-sonnet-5.5")
    assert [event.cost_usd for event in outcome.of(BudgetSettled, ModelFinished)] == [0.0123, 0.0123]
    assert outcome.report.cost_usd == pytest.approx(0.0123)
    server.answers(
        answer(usage_events(events, {**usage, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.1}}))
    )
    outcome = await run(model="openrouter/some/unknown-model")
    assert outcome.report.cost_usd == pytest.approx(0.1123)


async def test_a_cost_nobody_knows_is_none(run: Any, server: Any, answer: Any, say: Any) -> None:
    """Without a bill and without a price the cost is unknown, never nothing."""
    server.answers(answer(say("openai-chat", "done")))
    outcome = await run(model="nobody/knows-it")
    assert outcome.report.cost_usd is None
    assert [event.cost_usd for event in outcome.of(BudgetSettled)] == [None]


@pytest.mark.parametrize(
    ("model", "wire", "usage", "counted", "cost"),
    [
        (
            "openai/gpt-6.1-sol",
            "openai-chat",
            {
                "prompt_tokens": 2000,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 500, "cache_write_tokens": 300},
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
            (2000, 100, 500, 300, 60),
            1200 * 2.0 + 500 * 0.10 + 300 * 2.5 + 100 * 10.0,
        ),
        (
            "xai/grok-4.6",
            "openai-chat",
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 150,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            (100, 50, 0, 0, 40),
            100 * 2.0 + 50 * 6.0,
        ),
        (
            "deepseek/deepseek-flash",
            "openai-chat",
            {"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100, "completion_tokens": 5},
            (1000, 5, 900, 0, 0),
            100 * 0.30 + 900 * 0.006 + 5 * 1.20,
        ),
        (
            "anthropic/claude-sonnet-5-5",
            "anthropic-messages",
            {"input_tokens": 10, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500},
            (9510, 7, 9000, 500, 0),
            10 * 2.0 + 9000 * 0.10 + 500 * 2.5 + 7 * 10.0,
        ),
        (
            "openai/gpt-6.1-sol",
            "openai-chat",
            {"prompt_tokens": 300_000, "completion_tokens": 10},
            (300_000, 10, 0, 0, 0),
            300_000 * 4.0 + 10 * 15.0,
        ),
    ],
    ids=["openai", "xai", "deepseek", "anthropic", "long-prompt"],
)
async def test_each_token_is_billed_once_at_its_own_rate(
    model: str,
    wire: WireName,
    usage: dict[str, Any],
    counted: tuple[int, ...],
    cost: float,
    run: Any,
    server: Any,
    answer: Any,
    events: Any,
) -> None:
    """Cached, written and reasoning tokens are counted by the provider's convention and billed at their rates."""
    if wire == "openai-chat":
        server.answers(answer(usage_events(events, usage)))
    else:
        server.answers(
            answer(
                events(
                    {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}},
                    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "done"}},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
                    {"type": "message_stop"},
                )
            )
        )
    outcome = await run(wire, model=model, limits=Limits(token_budget=10_000_000))
    found = outcome.report.usage
    assert (found.input, found.output, found.cached_input, found.cache_write, found.reasoning) == counted
    assert outcome.report.cost_usd == pytest.approx(cost / 1_000_000)
    assert [event.cost_usd for event in outcome.of(BudgetSettled)] == [outcome.report.cost_usd]


async def test_a_bill_over_the_budget_ends_the_run(run: Any, server: Any, answer: Any, events: Any) -> None:
    """A call that is billed above its reservation is reported as an overrun, and nothing more is granted."""
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.9}
    server.answers(
        answer(
            events(
                {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]},
                {"choices": [], "usage": usage},
                "[DONE]",
            )
        )
    )
    outcome = await run(tools=["look"], model="openrouter/anthropic/claude-sonnet-5.5", limits=Limits(cost_budget=0.5))
    assert [event.limit for event in outcome.of(BudgetOverrun)] == ["cost_budget"]
    assert (outcome.report.status, outcome.report.reason, len(server.seen)) == ("stopped", "cost_budget", 1)
    assert outcome.report.cost_usd == pytest.approx(0.9)


async def test_failed_attempts_count_towards_the_budget(
    run: Any, server: Any, answer: Any, events: Any, skipping_clock: MockClock
) -> None:
    """Broken attempts use up a token budget like any other call: trying again ends with it."""
    reported = events(
        {"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": 4000, "completion_tokens": 5}}
    )
    server.answers(answer(reported, then="hang_up"))
    outcome = await run(limits=Limits(token_budget=10_000))
    assert len(server.seen) < 4
    assert (outcome.report.status, outcome.report.reason) == ("stopped", "token_budget")
    assert outcome.report.usage.input == 4000 * len(server.seen)


@pytest.mark.parametrize("provider", [name for name, known in KNOWN.items() if known.default])
def test_every_default_model_has_a_window_and_a_price(provider: str) -> None:
    """The model taken where none is named can be kept within a cost budget."""
    default = KNOWN[provider].default
    assert default is not None
    info = lookup(provider, default)
    assert info is not None
    assert info.price is not None
    assert info.window is not None
    assert info.max_output is not None


async def test_a_run_without_a_model_spends_no_token(run: Any) -> None:
    """The offline policy asks nobody: nothing is counted, nothing is guessed, and it costs nothing."""
    outcome = await run(model="offline/extract", base_url=None)
    assert outcome.of(BudgetSettled)
    assert {event.usage["input"] + event.usage["output"] for event in outcome.of(BudgetSettled)} == {0}
    assert (outcome.report.usage.estimated, outcome.report.cost_usd) == (False, 0.0)
