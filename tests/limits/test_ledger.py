"""The ledger's promises, one by one, in the small."""

from __future__ import annotations

import pytest

from runtime.errors import UsageError
from runtime.limits.budget import Ask, Barred, Granted, Opened, Overrun, Refused, Settled, Wait
from runtime.limits.ledger import Ledger
from runtime.limits.limits import Limits
from runtime.limits.price import Price
from runtime.messages import Usage

PRICE = Price(input=3.0, output=15.0)
WIDE = Limits()


def tree(root: Limits, *children: Limits) -> Ledger:
    """A root `r` with children `r/0`, `r/1`, …"""
    ledger = Ledger()
    ledger.open("r", None, root)
    for number, limits in enumerate(children):
        assert isinstance(ledger.open(f"r/{number}", "r", limits), Opened)
    return ledger


def grant(ledger: Ledger, path: str, ask: Ask) -> Granted:
    answer = ledger.reserve(path, ask)
    assert isinstance(answer, Granted), answer
    return answer


def test_a_call_reserves_its_worst_case_and_gives_back_what_it_did_not_use() -> None:
    """Reserved is input and output cap; what is charged in the end is what was used."""
    ledger = tree(Limits(token_budget=100_000))
    call = grant(ledger, "r", Ask(1000, 4000, result_cap=2000))
    account = ledger.account("r", "token_budget")
    assert account is not None
    assert (0, 5000) == (account.spent, account.reserved)
    assert 1000 + 4000 + 2000 + 1024 == account.held
    assert Settled(call.id, "r", Usage(900, 50), None) == ledger.settle(call.id, Usage(900, 50))
    account = ledger.account("r", "token_budget")
    assert account is not None
    assert (950, 0, 950 + 2000 + 1024) == (account.spent, account.reserved, account.held)


def test_the_last_of_max_steps_is_kept_for_the_wrap_up() -> None:
    """With six steps, five turns are granted; the sixth is refused as a turn and granted as the wrap-up."""
    ledger = tree(Limits(max_steps=6).said_by("agents/researcher.md"))
    for _ in range(5):
        ledger.settle(grant(ledger, "r", Ask(10, 300)).id, Usage(10, 10))
    refused = ledger.reserve("r", Ask(10, 300))
    assert isinstance(refused, Refused)
    assert ("max_steps", "max_steps", "r") == (refused.limit, refused.name, refused.scope)
    assert "max_steps: 5 of 6 (agents/researcher.md), 1 kept for last answers" == refused.message
    ledger.settle(grant(ledger, "r", Ask(10, 300, purpose="wrap_up")).id, Usage(10, 10))
    assert "max_steps: 6 of 6 (agents/researcher.md)" == str(ledger.account("r", "max_steps"))


def test_one_step_is_a_wrap_up_only() -> None:
    """An actor with a single step cannot take a turn, but can answer."""
    ledger = tree(Limits(max_steps=1))
    assert isinstance(ledger.reserve("r", Ask(10, 300)), Refused)
    assert isinstance(ledger.reserve("r", Ask(10, 300, purpose="wrap_up")), Granted)


def test_total_steps_count_the_whole_tree() -> None:
    """A parent's total is used up by its child, but for the parent's own last turn."""
    ledger = tree(Limits(total_steps=5), WIDE)
    ledger.close("r/0")
    ledger.settle(grant(ledger, "r", Ask(10, 300)).id, Usage(10, 10))
    ledger.open("r/1", "r", WIDE)
    for _ in range(2):
        ledger.settle(grant(ledger, "r/1", Ask(10, 300)).id, Usage(10, 10))
    refused = ledger.reserve("r/1", Ask(10, 300))
    assert isinstance(refused, Refused)
    assert ("total_steps", "r") == (refused.limit, refused.scope)
    ledger.settle(grant(ledger, "r/1", Ask(10, 300, purpose="wrap_up")).id, Usage(10, 10))
    assert 3 == ledger.close("r/1").spent.total_steps
    assert isinstance(ledger.reserve("r", Ask(10, 300)), Refused)
    ledger.settle(grant(ledger, "r", Ask(10, 300, purpose="wrap_up")).id, Usage(10, 10))
    spent = ledger.spent("r")
    assert (2, 5) == (spent.steps, spent.total_steps)


def test_the_output_cap_is_what_is_left_shared_among_those_who_could_call() -> None:
    """Of four idle siblings one gets a quarter of what is left; a lone actor all of it; nobody more than it asked."""
    lone = tree(Limits(output_budget=9000))
    assert 9000 - 1024 == grant(lone, "r", Ask(10, 100_000)).output_cap
    four = tree(Limits(output_budget=9000), WIDE, WIDE, WIDE, WIDE)
    assert (9000 - 1024) // 4 == grant(four, "r/0", Ask(10, 100_000)).output_cap
    assert 300 == grant(four, "r/1", Ask(10, 300)).output_cap
    slots = tree(Limits(output_budget=9000, max_concurrent_calls=1), WIDE, WIDE, WIDE, WIDE)
    assert 9000 - 1024 == grant(slots, "r/0", Ask(10, 100_000)).output_cap


def test_a_parent_that_waits_for_its_child_takes_no_share() -> None:
    """Of a parent and its only child just the child is expected to call."""
    ledger = tree(Limits(output_budget=9000), WIDE)
    assert 9000 - 1024 == grant(ledger, "r/0", Ask(10, 100_000)).output_cap


def test_below_256_tokens_of_output_the_wrap_up_begins() -> None:
    """A turn is granted with 256 tokens of room and refused with 255."""
    need = 2 * 100 + 2 * 256 + 256
    assert 256 == grant(tree(Limits(token_budget=need)), "r", Ask(100, 4000)).output_cap
    assert isinstance(tree(Limits(token_budget=need - 1)).reserve("r", Ask(100, 4000)), Refused)


def test_a_model_with_a_small_cap_of_its_own_needs_no_more() -> None:
    """An agent that asks for 50 output tokens is not refused for want of 256."""
    assert 50 == grant(tree(Limits(token_budget=400)), "r", Ask(100, 50)).output_cap


def test_under_pressure_results_are_shortened_before_an_actor_ends() -> None:
    """Where the full result cap does not fit, a smaller one is granted together with a smaller reply."""
    ledger = tree(Limits(token_budget=3000))
    call = grant(ledger, "r", Ask(200, 4096, result_cap=8000))
    assert 256 <= call.result_cap < 3000
    assert call.output_cap >= call.result_cap
    account = ledger.account("r", "token_budget")
    assert account is not None
    assert account.free >= 0


def test_a_wrap_up_always_has_what_its_reservation_foresaw() -> None:
    """Whatever siblings take meanwhile, an actor's last turn fits: its input, the reply, the results, 256 tokens."""
    ledger = tree(Limits(token_budget=20_000), WIDE, WIDE)
    call = grant(ledger, "r/0", Ask(1000, 1000, result_cap=1000))
    ledger.settle(call.id, Usage(1000, 1000))
    while isinstance(answer := ledger.reserve("r/1", Ask(500, 500)), Granted):
        ledger.settle(answer.id, Usage(500, 500))
    assert isinstance(answer, Refused)
    last = grant(ledger, "r/0", Ask(3000, 4096, purpose="wrap_up"))
    assert last.output_cap >= 256
    ledger.settle(last.id, Usage(3000, last.output_cap))
    account = ledger.account("r", "token_budget")
    assert account is not None
    assert account.free >= 0


def test_the_hold_of_a_parent_stays_while_its_children_work() -> None:
    """Children can use everything but what the parent needs for its own last turn."""
    ledger = tree(Limits(token_budget=10_000))
    ledger.settle(grant(ledger, "r", Ask(500, 500, result_cap=500)).id, Usage(500, 500))
    ledger.open("r/0", "r", WIDE)
    while isinstance(answer := ledger.reserve("r/0", Ask(300, 300)), Granted):
        ledger.settle(answer.id, Usage(300, 300))
    last = grant(ledger, "r/0", Ask(300, 300, purpose="wrap_up"))
    ledger.settle(last.id, Usage(300, last.output_cap))
    ledger.close("r/0")
    assert isinstance(ledger.reserve("r", Ask(1500, 4000, purpose="wrap_up")), Granted)


def test_a_call_that_does_not_fit_waits_for_calls_in_flight_and_is_answered_when_they_end() -> None:
    """A sibling is told to wait while another's call may still give something back, then gets its turn."""
    ledger = tree(Limits(token_budget=8500), WIDE, WIDE)
    first = grant(ledger, "r/0", Ask(1000, 2000))
    assert Wait("token_budget", "r") == ledger.reserve("r/1", Ask(1000, 2000))
    assert ("r/1",) == ledger.waiting
    ledger.settle(first.id, Usage(1000, 10))
    assert isinstance(ledger.reserve("r/1", Ask(1000, 2000)), Granted)
    assert not ledger.waiting


def test_a_call_is_refused_when_nobody_is_in_flight() -> None:
    """With no call to wait for, what does not fit is refused at once."""
    ledger = tree(Limits(token_budget=2000), WIDE, WIDE)
    assert isinstance(ledger.reserve("r/1", Ask(1000, 2000)), Refused)


def test_a_call_that_could_not_fit_even_if_all_were_given_back_does_not_wait() -> None:
    """Waiting that cannot help is spared: what is spent for good leaves too little."""
    ledger = tree(Limits(total_steps=4), WIDE, WIDE)
    for _ in range(2):
        ledger.settle(grant(ledger, "r/0", Ask(10, 300)).id, Usage(10, 10))
    ledger.settle(grant(ledger, "r/0", Ask(10, 300, purpose="wrap_up")).id, Usage(10, 10))
    grant(ledger, "r/0", Ask(10, 300, purpose="wrap_up"))
    assert isinstance(ledger.reserve("r/1", Ask(10, 300)), Refused)


def test_nobody_is_overtaken_where_he_waits() -> None:
    """While a large call waits, a small one that would fit stands behind it; a wrap-up, paid already, does not."""
    ledger = tree(Limits(token_budget=30_000), WIDE, WIDE, WIDE)
    ledger.settle(grant(ledger, "r/2", Ask(10, 256)).id, Usage(10, 10))
    first = grant(ledger, "r/0", Ask(5000, 3000))
    assert isinstance(ledger.reserve("r/1", Ask(10_000, 300)), Wait)
    assert Wait("token_budget", "r") == ledger.reserve("r/2", Ask(20, 256))
    assert ("r/1", "r/2") == ledger.waiting
    ledger.withdraw("r/2")
    last = grant(ledger, "r/2", Ask(20, 256, purpose="wrap_up"))
    ledger.settle(last.id, Usage(20, 10))
    ledger.settle(first.id, Usage(100, 100))
    assert isinstance(ledger.reserve("r/1", Ask(10_000, 300)), Granted)


def test_one_who_closes_while_waiting_leaves_the_line() -> None:
    """Nobody stands behind an actor that is gone."""
    ledger = tree(Limits(token_budget=20_000), WIDE, WIDE, WIDE)
    grant(ledger, "r/0", Ask(3000, 3000))
    assert isinstance(ledger.reserve("r/1", Ask(9000, 300)), Wait)
    assert isinstance(ledger.reserve("r/2", Ask(10, 256)), Wait)
    ledger.close("r/1")
    assert isinstance(ledger.reserve("r/2", Ask(10, 256)), Granted)


def test_concurrent_calls_are_bounded_per_scope() -> None:
    """A third call waits for a slot of its scope, and is never refused for want of one."""
    ledger = tree(Limits(max_concurrent_calls=2), WIDE, WIDE, WIDE)
    first = grant(ledger, "r/0", Ask(10, 300))
    grant(ledger, "r/1", Ask(10, 300))
    assert Wait("max_concurrent_calls", "r") == ledger.reserve("r/2", Ask(10, 300))
    ledger.settle(first.id, Usage(10, 10))
    assert isinstance(ledger.reserve("r/2", Ask(10, 300)), Granted)


def test_a_failed_attempt_costs_tokens_but_no_step() -> None:
    """What a failed attempt used counts, unknown use counts in full, and a step is a reply."""
    ledger = tree(Limits(token_budget=100_000, max_steps=2))
    ledger.settle(grant(ledger, "r", Ask(100, 300)).id, Usage(100, 7), replied=False)
    call = grant(ledger, "r", Ask(100, 300, purpose="retry"))
    settled = ledger.settle(call.id, None, replied=False)
    assert Usage(100, 300, estimated=True) == settled.usage
    spent = ledger.spent("r")
    assert (Usage(200, 307, estimated=True), 0) == (spent.usage, spent.steps)
    assert isinstance(ledger.reserve("r", Ask(100, 300, purpose="retry")), Granted)


def test_a_summary_counts_but_takes_no_step_and_leaves_the_hold() -> None:
    """Compaction is paid from the same budget, and the last turn stays possible throughout."""
    ledger = tree(Limits(token_budget=20_000, max_steps=2))
    ledger.settle(grant(ledger, "r", Ask(1000, 300, result_cap=500)).id, Usage(1000, 300))
    held = ledger.accounts("r")
    call = grant(ledger, "r", Ask(1300, 1000, purpose="summary"))
    ledger.settle(call.id, Usage(1300, 200))
    assert [account.held for account in held] == [account.held for account in ledger.accounts("r")]
    spent = ledger.spent("r")
    assert (2800, 1) == (spent.usage.total, spent.steps)


def test_an_overrun_is_reported_and_ends_every_grant_in_its_scope() -> None:
    """When a call used more than anyone could know, the excess is told once and nothing follows it."""
    ledger = tree(Limits(token_budget=10_000, max_children=9), Limits(token_budget=3000), WIDE)
    call = grant(ledger, "r/0", Ask(500, 300))
    settled = ledger.settle(call.id, Usage(3500, 100))
    assert (Overrun("token_budget", "r/0", 600),) == settled.overruns
    assert "token_budget of r/0 was passed by 600 tokens" == str(settled.overruns[0])
    for purpose in ("turn", "summary", "wrap_up"):
        assert isinstance(ledger.reserve("r/0", Ask(0, 1, purpose=purpose)), Refused)
    assert isinstance(ledger.tool_calls("r/0"), Refused)
    assert isinstance(ledger.open("r/0/x", "r/0", WIDE), Barred)
    assert isinstance(ledger.reserve("r/1", Ask(10, 300)), Granted)


def test_unknown_cost_is_none_and_never_zero() -> None:
    """One call without a price makes the sum unknown, for its actor and all above, not for others."""
    ledger = tree(WIDE, WIDE, WIDE)
    ledger.settle(grant(ledger, "r/0", Ask(10, 300)).id, Usage(10, 10))
    ledger.settle(grant(ledger, "r/1", Ask(10, 300, PRICE)).id, Usage(1_000_000, 0))
    assert ledger.spent("r/0").cost_usd is None
    assert ledger.spent("r").cost_usd is None
    assert 3.0 == ledger.spent("r/1").cost_usd
    assert ledger.spent("r").usage.total == 1_000_020


def test_the_cost_the_provider_billed_goes_before_the_price() -> None:
    """A reported cost is taken as it is; nonsense is not."""
    ledger = tree(Limits(cost_budget=100.0))
    ledger.settle(grant(ledger, "r", Ask(10, 300, PRICE)).id, Usage(10, 10), 0.25)
    assert 0.25 == ledger.spent("r").cost_usd
    ledger.settle(grant(ledger, "r", Ask(10, 300, PRICE)).id, Usage(1_000_000, 0), float("nan"))
    assert 3.25 == ledger.spent("r").cost_usd


def test_a_cost_budget_needs_a_price() -> None:
    """A model whose price is unknown is refused under a cost budget, with the reason, and nobody has to find out so."""
    ledger = tree(Limits(cost_budget=1.0), WIDE)
    assert ledger.needs_price("r/0")
    refused = ledger.reserve("r/0", Ask(10, 300))
    assert isinstance(refused, Refused)
    assert ("cost_budget", "r") == (refused.limit, refused.scope)
    assert "no price is known" in refused.message
    assert not tree(WIDE).needs_price("r")


def test_cost_is_reserved_at_the_dearest_rate() -> None:
    """A cache write can cost more than plain input: the reservation foresees it."""
    ledger = tree(Limits(cost_budget=1.0))
    call = grant(ledger, "r", Ask(100_000, 300, Price(3.0, 15.0, 0.3, 3.75)))
    assert call.cost_usd == pytest.approx(0.375 + 0.0045)
    ledger.settle(call.id, Usage(100_000, 300, cache_write=100_000))
    assert ledger.spent("r").cost_usd == call.cost_usd


def test_tool_calls_count_for_all_above() -> None:
    """A tool call of a child counts for its parent too; a round that does not fit is refused whole."""
    ledger = tree(Limits(max_tool_calls=3), Limits(max_tool_calls=9), WIDE)
    assert ledger.tool_calls("r/0", 2) is None
    refused = ledger.tool_calls("r/1", 2)
    assert isinstance(refused, Refused)
    assert ("max_tool_calls", "r", "max_tool_calls: 2 of 3") == (refused.limit, refused.scope, refused.message)
    assert ledger.tool_calls("r/1", 1) is None
    assert 3 == ledger.spent("r").tool_calls


def test_a_child_sees_what_it_may_spend_and_whose_limit_it_is() -> None:
    """What remains is the least of own and inherited limits, with its scope; one line tells a model."""
    ledger = tree(Limits(token_budget=50_000, total_steps=9).said_by("--token-budget"), Limits(max_steps=20))
    ledger.settle(grant(ledger, "r", Ask(1000, 300, result_cap=676)).id, Usage(1000, 300))
    remaining = ledger.remaining("r/0")
    assert remaining.tokens is not None
    assert (50_000 - 1300 - (1976 + 300), "r") == (remaining.tokens.amount, remaining.tokens.scope)
    assert remaining.steps is not None
    assert (7, "total_steps", "r") == (remaining.steps.amount, remaining.steps.limit, remaining.steps.scope)
    assert (
        "You may use at most 7 steps (the last one is for your final answer), 46.4k tokens, 2 min."
        == remaining.text(120)
    )
    assert "" == tree(WIDE).remaining("r").text()


def test_what_remains_can_be_used() -> None:
    """The steps an actor is told are the steps it gets, the last as its wrap-up."""
    ledger = tree(Limits(total_steps=9, max_steps=4), Limits(max_steps=5))
    ledger.settle(grant(ledger, "r", Ask(10, 300)).id, Usage(10, 10))
    remaining = ledger.remaining("r/0").steps
    assert remaining is not None
    turns = 0
    while isinstance(answer := ledger.reserve("r/0", Ask(10, 300)), Granted):
        ledger.settle(answer.id, Usage(10, 10))
        turns += 1
    assert turns + 1 == remaining.amount


def test_raising_a_limit_goes_on_where_it_stopped() -> None:
    """A run that ended at its limit takes up again with more, its sums unbroken."""
    ledger = tree(Limits(max_steps=2, token_budget=100_000).said_by("default"))
    ledger.settle(grant(ledger, "r", Ask(10, 300)).id, Usage(10, 10))
    ledger.settle(grant(ledger, "r", Ask(10, 300, purpose="wrap_up")).id, Usage(10, 10))
    assert isinstance(ledger.reserve("r", Ask(10, 300)), Refused)
    limits = ledger.change_limits("r", {"max_steps": "+20"}, "resume --max-steps")
    assert (22, "resume --max-steps") == (limits.max_steps, limits.source("max_steps"))
    assert "default" == limits.source("token_budget")
    ledger.settle(grant(ledger, "r", Ask(10, 300)).id, Usage(10, 10))
    assert 3 == ledger.spent("r").steps


def test_a_limit_cannot_be_lowered_under_what_is_spent_or_promised() -> None:
    """The promise of a last turn is kept: lowering stops where it begins."""
    ledger = tree(Limits(token_budget=100_000))
    ledger.settle(grant(ledger, "r", Ask(1000, 300)).id, Usage(1000, 300))
    with pytest.raises(UsageError, match="token_budget of r cannot go below 2,900"):
        ledger.change_limits("r", {"token_budget": 2899})
    assert 2900 == ledger.change_limits("r", {"token_budget": 2900}).token_budget
    with pytest.raises(UsageError, match="unknown limit 'max_step'; did you mean 'max_steps'"):
        ledger.change_limits("r", {"max_step": 3})


def test_a_passed_limit_can_be_raised_out_of_its_overrun() -> None:
    """After an overrun, a higher limit lets the run go on, even while it is still below what was spent."""
    ledger = tree(Limits(token_budget=2000))
    ledger.settle(grant(ledger, "r", Ask(100, 300)).id, Usage(9000, 10))
    ledger.change_limits("r", {"token_budget": "+1000"})
    assert isinstance(ledger.reserve("r", Ask(10, 300)), Refused)
    ledger.change_limits("r", {"token_budget": "+40000"})
    assert isinstance(ledger.reserve("r", Ask(9010, 300)), Granted)


def test_closing_charges_what_was_in_flight_and_frees_what_was_held() -> None:
    """A cancelled subtree is charged in full; its holds and its memory are gone, its sums stay above."""
    ledger = tree(Limits(token_budget=100_000), WIDE)
    ledger.open("r/0/0", "r/0", WIDE)
    grant(ledger, "r/0/0", Ask(100, 300))
    closed = ledger.close("r/0")
    assert [Settled(1, "r/0/0", Usage(100, 300, estimated=True), None)] == list(closed.settled)
    assert 400 == closed.spent.usage.total
    assert not ledger.is_open("r/0")
    assert not ledger.is_open("r/0/0")
    account = ledger.account("r", "token_budget")
    assert account is not None
    assert (400, 0, 0) == (account.spent, account.reserved, account.held)
    with pytest.raises(KeyError):
        ledger.settle(1, Usage())
    assert isinstance(ledger.open("r/0", "r", WIDE), Opened)
    assert 0 == ledger.spent("r/0").usage.total


def test_calls_found_unsettled_after_a_crash_are_charged_in_full() -> None:
    """Nobody knows how far a call came when the process died."""
    ledger = tree(Limits(token_budget=100_000, cost_budget=9.0), WIDE)
    grant(ledger, "r/0", Ask(100, 300, PRICE))
    again = Ledger.restore(ledger.snapshot())
    (settled,) = again.charge_unsettled()
    assert Usage(100, 300, estimated=True) == settled.usage
    assert settled.cost_usd == pytest.approx(0.0048)
    spent = again.spent("r")
    assert (400, 0, settled.cost_usd) == (spent.usage.total, spent.total_steps, spent.cost_usd)
    assert () == again.charge_unsettled()


def test_what_nobody_foresaw_is_told_in_tokens() -> None:
    """After a long steering message the last turn's room says how short the history must become; so short, it fits."""
    ledger = tree(Limits(token_budget=6000, cost_budget=0.02))
    call = grant(ledger, "r", Ask(1000, 300, PRICE, 500))
    ledger.settle(call.id, Usage(1000, 300))
    assert isinstance(ledger.reserve("r", Ask(50_000, 300, PRICE, purpose="wrap_up")), Refused)
    room = ledger.wrap_up_room("r", PRICE)
    assert room >= 1800
    assert isinstance(ledger.reserve("r", Ask(room + 1, 256, PRICE, purpose="wrap_up")), Refused)
    assert isinstance(ledger.reserve("r", Ask(room, 256, PRICE, purpose="wrap_up")), Granted)


def test_there_is_no_room_for_a_last_turn_without_a_step_or_a_price() -> None:
    """No step left, or a cost budget and no price: the room is below zero."""
    ledger = tree(Limits(max_steps=1))
    ledger.settle(grant(ledger, "r", Ask(1, 300, purpose="wrap_up")).id, Usage(1, 1))
    assert ledger.wrap_up_room("r", PRICE) < 0
    assert tree(Limits(cost_budget=1.0)).wrap_up_room("r", None) < 0
    assert tree(Limits(output_budget=100)).wrap_up_room("r", None) < 0
    assert tree(Limits(input_budget=100)).wrap_up_room("r", None) == 100


def test_a_tree_has_one_root_and_each_path_once() -> None:
    """Opening twice is a mistake of the program, not of a model."""
    ledger = tree(WIDE, WIDE)
    with pytest.raises(ValueError, match="r/0 is open"):
        ledger.open("r/0", "r", WIDE)
    with pytest.raises(ValueError, match="one root"):
        ledger.open("other", None, WIDE)
    with pytest.raises(KeyError):
        ledger.open("x/0", "x", WIDE)


def test_an_ask_below_nothing_is_refused() -> None:
    """No call has fewer tokens than none, and none a reply of none."""
    with pytest.raises(ValueError, match="input_tokens"):
        Ask(-1, 1)
    with pytest.raises(ValueError, match="output_cap"):
        Ask(1, 0)
    with pytest.raises(ValueError, match="result_cap"):
        Ask(1, 1, result_cap=-1)


def test_a_last_turn_fits_however_many_siblings_are_idle() -> None:
    """What was kept for one actor is not shared among those who could call."""
    ledger = tree(Limits(output_budget=900), WIDE)
    ledger.settle(grant(ledger, "r/0", Ask(10, 300)).id, Usage(10, 300))
    for number in range(1, 5):
        ledger.open(f"r/{number}", "r", WIDE)
    assert 300 == grant(ledger, "r/0", Ask(10, 300, purpose="wrap_up")).output_cap


def test_a_wrong_count_takes_nothing_from_what_others_keep() -> None:
    """One whose reply was far longer than foreseen does not keep more for that: others' last turns still fit."""
    ledger = tree(Limits(token_budget=12_000), WIDE, WIDE)
    ledger.settle(grant(ledger, "r/0", Ask(2000, 500)).id, Usage(2000, 500))
    call = grant(ledger, "r/1", Ask(300, 300))
    ledger.settle(call.id, Usage(4500, 300))
    assert isinstance(ledger.reserve("r/0", Ask(2500, 500, purpose="wrap_up")), Granted)


def test_what_remains_includes_the_own_last_turn_and_not_those_of_others() -> None:
    """An actor's own hold is its to use; a sibling's is not."""
    ledger = tree(Limits(token_budget=50_000, total_steps=10), WIDE, WIDE)
    ledger.settle(grant(ledger, "r/0", Ask(1000, 300)).id, Usage(1000, 300))
    own, other = ledger.remaining("r/0"), ledger.remaining("r/1")
    assert own.tokens is not None
    assert other.tokens is not None
    assert own.steps is not None
    assert other.steps is not None
    assert (50_000 - 1300, 50_000 - 1300 - 1600) == (own.tokens.amount, other.tokens.amount)
    assert (9, 8) == (own.steps.amount, other.steps.amount)


def test_one_who_waits_in_two_scopes_is_overtaken_in_neither() -> None:
    """A call short in its parent and in the root goes before later ones in both."""
    ledger = tree(Limits(token_budget=20_000), Limits(token_budget=15_000), WIDE)
    for path in ("r/0/0", "r/0/1"):
        ledger.open(path, "r/0", WIDE)
    first = grant(ledger, "r/0/0", Ask(4000, 1000))
    assert isinstance(ledger.reserve("r/0/1", Ask(6000, 1000)), Wait)
    assert isinstance(ledger.reserve("r/1", Ask(10, 256)), Wait)
    ledger.settle(first.id, Usage(10, 10))
    ledger.close("r/0/0")
    assert isinstance(ledger.reserve("r/0/1", Ask(6000, 1000)), Granted)
    assert isinstance(ledger.reserve("r/1", Ask(10, 256)), Granted)


def test_what_an_earlier_process_spent_is_taken_over() -> None:
    """Sums told to a new ledger are those of the old one, live actors and ended ones alike."""
    limits = Limits(token_budget=100_000, max_total_children=2)
    old = tree(limits, WIDE, WIDE)
    for path in ("r/1", "r/0", "r", "r/0"):
        old.settle(grant(old, path, Ask(100, 300, PRICE)).id, Usage(90, 20, 5, 6, 7))
        old.tool_calls(path)
    old.close("r/1")
    new = tree(limits, WIDE)
    each = Usage(90, 20, 5, 6, 7)
    cost = PRICE.cost(each)
    new.recall("r", each, cost, own_steps=1, tool_calls=1)
    new.recall("r", each, cost, steps=1, tool_calls=1, opened=1)
    new.recall("r/0", each + each, 2 * cost, own_steps=2, tool_calls=2)
    assert [old.spent(path) for path in ("r", "r/0")] == [new.spent(path) for path in ("r", "r/0")]
    assert isinstance(new.open("r/2", "r", WIDE), Barred)


def test_an_actor_taken_over_keeps_its_last_turn() -> None:
    """After a restart a parent that waits holds its wrap-up again, in the size that fits."""
    ledger = tree(Limits(token_budget=10_000), WIDE)
    assert ledger.keep("r", Ask(1000, 500, result_cap=8000))
    while isinstance(answer := ledger.reserve("r/0", Ask(300, 300)), Granted):
        ledger.settle(answer.id, Usage(300, 300))
    assert isinstance(ledger.reserve("r", Ask(1500, 4000, purpose="wrap_up")), Granted)
    assert not tree(Limits(token_budget=1000)).keep("r", Ask(1000, 500))
    assert not tree(Limits(max_steps=1, token_budget=900)).keep("r", Ask(1000, 500))
