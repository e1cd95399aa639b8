"""Public faults of other systems' budgets (C1, 17 to 26), each in the shape it was reported in."""

from __future__ import annotations

from runtime.limits.budget import Ask, Barred, Granted, Opened, Refused
from runtime.limits.ledger import Ledger
from runtime.limits.limits import Limits, tightest
from runtime.limits.price import Price
from runtime.messages import Usage


def test_r17_a_child_that_passes_the_parents_limit_is_seen_at_its_first_reply() -> None:
    """Under the parent's 1000 tokens, a child that uses 1500 is an overrun of the parent, told at once."""
    ledger = Ledger()
    ledger.open("r", None, Limits(token_budget=1000))
    call = ledger.reserve("r", Ask(5, 50))
    assert isinstance(call, Granted)
    ledger.settle(call.id, Usage(5, 1))
    ledger.open("r/0", "r", Limits())
    call = ledger.reserve("r/0", Ask(10, 50))
    assert isinstance(call, Granted)
    settled = ledger.settle(call.id, Usage(1000, 500))
    assert [("token_budget", "r", 506)] == [(each.limit, each.scope, each.by) for each in settled.overruns]
    assert isinstance(ledger.reserve("r/0", Ask(10, 50)), Refused)
    assert isinstance(ledger.reserve("r", Ask(10, 50)), Refused)


def test_r17_a_limit_too_small_for_any_reply_spends_nothing() -> None:
    """With 100 tokens in all no reply of 256 is possible: refused before a token is used."""
    ledger = Ledger()
    ledger.open("r", None, Limits(token_budget=100))
    assert isinstance(ledger.reserve("r", Ask(5, 4096)), Refused)
    assert isinstance(ledger.reserve("r", Ask(5, 4096, purpose="wrap_up")), Refused)
    assert 0 == ledger.spent("r").usage.total


def test_r18_the_tree_stops_at_the_parents_limit() -> None:
    """With five steps for the whole tree, a looping child with 90 of its own is stopped; the parent answers fifth."""
    ledger = Ledger()
    ledger.open("r", None, Limits(total_steps=5))
    for path in ("r", "r/0"):
        if path == "r/0":
            ledger.open(path, "r", Limits(max_steps=90))
        while isinstance(answer := ledger.reserve(path, Ask(10, 300)), Granted):
            ledger.settle(answer.id, Usage(10, 10))
            if path == "r":
                break
    last = ledger.reserve("r/0", Ask(10, 300, purpose="wrap_up"))
    assert isinstance(last, Granted)
    ledger.settle(last.id, Usage(10, 10))
    ledger.close("r/0")
    assert isinstance(ledger.reserve("r", Ask(10, 300)), Refused)
    last = ledger.reserve("r", Ask(10, 300, purpose="wrap_up"))
    assert isinstance(last, Granted)
    ledger.settle(last.id, Usage(10, 10))
    assert 5 == ledger.spent("r").total_steps


def test_r19_a_child_stopped_by_cost_leaves_its_parent_able_to_end() -> None:
    """When money runs out inside a child, the child's last turn and then the parent's are still paid for."""
    price = Price(3.0, 15.0)
    ledger = Ledger()
    ledger.open("r", None, Limits(cost_budget=0.10))
    call = ledger.reserve("r", Ask(500, 1000, price, 500))
    assert isinstance(call, Granted)
    ledger.settle(call.id, Usage(500, 100))
    ledger.open("r/0", "r", Limits())
    size = 500
    while isinstance(answer := ledger.reserve("r/0", Ask(size, 1000, price, 500)), Granted):
        ledger.settle(answer.id, Usage(size, answer.output_cap))
        size += answer.output_cap
    assert isinstance(answer, Refused)
    assert ("cost_budget", "r") == (answer.limit, answer.scope)
    for path, tokens in (("r/0", size), ("r", 1100)):
        last = ledger.reserve(path, Ask(tokens, 1000, price, purpose="wrap_up"))
        assert isinstance(last, Granted)
        ledger.settle(last.id, Usage(tokens, last.output_cap))
        if path == "r/0":
            ledger.close(path)
    cost = ledger.spent("r").cost_usd
    assert cost is not None
    assert cost <= 0.10


def test_r21_depth_is_refused_whoever_starts_the_child() -> None:
    """With depth 1 the root may have children and they may not; there is one way into the tree, and it asks."""
    ledger = Ledger()
    ledger.open("r", None, Limits(max_depth=1).said_by("--max-depth"))
    assert Opened("r/0", 1) == ledger.open("r/0", "r", Limits(max_depth=9))
    barred = ledger.open("r/0/0", "r/0", Limits())
    assert isinstance(barred, Barred)
    assert ("max_depth", "r") == (barred.limit, barred.scope)
    assert "no child can be started" in barred.message
    assert "max_depth 1 of r, --max-depth" in barred.message


def test_r22_a_tree_in_which_everyone_asks_for_three_children_stays_small() -> None:
    """Exponential fan-out ends at the caps on depth, width and total; ended children count for the total."""
    ledger = Ledger()
    ledger.open("r", None, Limits(max_depth=6, max_children=2, max_total_children=20))
    reasons: set[str] = set()
    waiting = ["r"]
    started = 0
    while waiting:
        parent = waiting.pop(0)
        for number in range(3):
            path = f"{parent}/{number}"
            answer = ledger.open(path, parent, Limits(max_children=2))
            if isinstance(answer, Opened):
                started += 1
                waiting.append(path)
            else:
                reasons.add(answer.limit)
    assert 20 == started
    assert {"max_children", "max_total_children"} == reasons
    ledger.close("r/0")
    answer = ledger.open("r/0", "r", Limits())
    assert isinstance(answer, Barred)
    assert "max_total_children" == answer.limit


def test_r23_a_limit_has_one_value_with_its_source_and_is_hard() -> None:
    """Set by flag, file and config, the tightest counts and says so; a model that goes on anyway gets nothing."""
    limits = tightest(
        Limits(max_steps=9).said_by("--max-steps"),
        Limits(max_steps=4).said_by("agents/a.md"),
        Limits(max_steps=7).said_by("elenco.yaml"),
    )
    assert (4, "agents/a.md") == (limits.max_steps, limits.source("max_steps"))
    ledger = Ledger()
    ledger.open("r", None, limits)
    replies = 0
    for _ in range(50):
        answer = ledger.reserve("r", Ask(1, 300))
        if isinstance(answer, Refused):
            answer = ledger.reserve("r", Ask(1, 300, purpose="wrap_up"))
        if isinstance(answer, Granted):
            ledger.settle(answer.id, Usage(1, 1))
            replies += 1
    assert 4 == replies


def test_r24_cached_tokens_are_billed_once() -> None:
    """2000 prompt tokens, 500 read and 300 written: 1200 at the input rate, each class once."""
    ledger = Ledger()
    ledger.open("r", None, Limits(cost_budget=1.0))
    answer = ledger.reserve("r", Ask(2000, 300, Price(10.0, 20.0, 1.0, 12.5)))
    assert isinstance(answer, Granted)
    settled = ledger.settle(answer.id, Usage(2000, 0, cached_input=500, cache_write=300))
    assert (1200 * 10.0 + 500 * 1.0 + 300 * 12.5) / 1e6 == settled.cost_usd
    assert Usage(2000, 0, 500, 300) == ledger.spent("r").usage


def test_r26_missing_usage_is_charged_in_full_and_marked() -> None:
    """A stream without usage is not free: the reservation is charged, as an estimate, and the sum says so."""
    ledger = Ledger()
    ledger.open("r", None, Limits(token_budget=10_000))
    answer = ledger.reserve("r", Ask(500, 300))
    assert isinstance(answer, Granted)
    settled = ledger.settle(answer.id, None)
    assert Usage(500, 300, estimated=True) == settled.usage
    assert settled.cost_usd is None
    spent = ledger.spent("r")
    assert spent.usage.estimated
    assert (800, 1) == (spent.usage.total, spent.steps)
