"""The ledger against a model that adds everything up anew, under any order of calls."""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.limits.budget import Account, Ask, Barred, Granted, Opened, Refused, Wait
from runtime.limits.ledger import Ledger
from runtime.limits.limits import LimitName, Limits
from runtime.limits.price import Price
from runtime.messages import Usage

PRICE = Price(3.0, 15.0, 0.3, 3.75)
ROOT = "r"


@attrs.define
class Call:
    path: str
    ask: Ask
    granted: Granted
    usage: Usage | None = None
    cost: float = 0.0
    step: int = 0

    @property
    def takes_step(self) -> int:
        return int(self.ask.purpose != "summary")


def maybe(low: int, high: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(low, high)


limits = st.builds(
    Limits,
    max_steps=maybe(1, 12),
    total_steps=maybe(1, 20),
    token_budget=maybe(300, 30_000),
    input_budget=maybe(300, 20_000),
    output_budget=maybe(300, 5_000),
    cost_budget=st.none() | st.floats(0.001, 0.2),
    max_tool_calls=maybe(0, 5),
    max_depth=maybe(0, 2),
    max_children=maybe(0, 3),
    max_total_children=maybe(0, 5),
    max_concurrent_calls=maybe(1, 2),
)
asks = st.builds(
    Ask,
    input_tokens=st.integers(0, 2500),
    output_cap=st.integers(1, 3000),
    price=st.just(PRICE),
    result_cap=st.integers(0, 2000),
    purpose=st.sampled_from(["turn", "turn", "retry", "repair", "summary"]),
)


class LedgerMachine(RuleBasedStateMachine):
    """`honest` runs never use more than they reserved; the others do, by up to twice."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.honest = True
        self.limits: dict[str, Limits] = {}
        self.live: list[str] = []
        self.calls: dict[int, Call] = {}
        self.tools: list[str] = []
        self.opened: list[str] = []
        self.line: dict[str, tuple[Ask, str]] = {}
        self.promised: dict[str, int] = {}
        self.log: list[Callable[[Ledger], object]] = []

    # --- the model -------------------------------------------------------------------------------------------------

    def within(self, scope: str, path: str) -> bool:
        return path == scope or path.startswith(f"{scope}/")

    def scopes_of(self, path: str) -> list[str]:
        return [scope for scope in self.live if self.within(scope, path)]

    def in_flight(self, scope: str) -> list[Call]:
        return [call for call in self.calls.values() if call.usage is None and self.within(scope, call.path)]

    def spent(self, scope: str, name: str) -> float:
        calls = [call for call in self.calls.values() if call.usage and self.within(scope, call.path)]
        usages = [call.usage or Usage() for call in calls]
        match name:
            case "max_steps":
                return sum(call.step for call in calls if call.path == scope)
            case "total_steps":
                return sum(call.step for call in calls)
            case "token_budget":
                return sum(usage.input + usage.output for usage in usages)
            case "input_budget":
                return sum(usage.input for usage in usages)
            case "output_budget":
                return sum(usage.output for usage in usages)
            case "cost_budget":
                return sum(call.cost for call in calls)
            case "max_tool_calls":
                return sum(self.within(scope, path) for path in self.tools)
            case "max_children":
                return sum(path.rpartition("/")[0] == scope for path in self.live)
            case _:
                return sum(path != scope and self.within(scope, path) for path in self.opened)

    def reserved(self, scope: str, name: str) -> float:
        calls = self.in_flight(scope)
        match name:
            case "max_steps":
                return sum(call.takes_step for call in calls if call.path == scope)
            case "total_steps":
                return sum(call.takes_step for call in calls)
            case "token_budget":
                return sum(call.granted.input_tokens + call.granted.output_cap for call in calls)
            case "input_budget":
                return sum(call.granted.input_tokens for call in calls)
            case "output_budget":
                return sum(call.granted.output_cap for call in calls)
            case "cost_budget":
                return sum(call.granted.cost_usd or 0 for call in calls)
            case _:
                return 0

    def passed(self, scope: str) -> set[tuple[str, str]]:
        return {
            (scope, account.name)
            for account in self.ledger.accounts(scope)
            if self.spent(scope, account.name) > account.of + 1e-9
        }

    def do(self, action: Callable[[Ledger], object]) -> object:
        self.log.append(action)
        return action(self.ledger)

    # --- what may happen -------------------------------------------------------------------------------------------

    @initialize(limits=limits, honest=st.booleans())
    def start(self, limits: Limits, honest: bool) -> None:
        self.honest = honest
        assert self.do(lambda ledger: ledger.open(ROOT, None, limits)) == Opened(ROOT, 0)
        self.live.append(ROOT)

    @rule(data=st.data(), limits=limits)
    def open(self, data: st.DataObject, limits: Limits) -> None:
        parent = data.draw(st.sampled_from(self.live))
        path = f"{parent}/{len(self.opened)}"
        answer = self.do(lambda ledger: ledger.open(path, parent, limits))
        above = self.scopes_of(parent)
        depth = path.count("/")
        full = [
            scope
            for scope in above
            if _over(self.ledger.limits(scope).max_depth, depth - scope.count("/"))
            or _over(self.ledger.limits(scope).max_total_children, self.spent(scope, "max_total_children") + 1)
            or self.passed(scope)
        ]
        crowded = _over(self.ledger.limits(parent).max_children, self.spent(parent, "max_children") + 1)
        if isinstance(answer, Barred):
            assert full or crowded, answer
            return
        assert not full
        assert not crowded
        self.live.append(path)
        self.opened.append(path)

    def idle(self) -> list[str]:
        busy = {call.path for call in self.calls.values() if call.usage is None} | set(self.line)
        return [path for path in self.live if path not in busy]

    @precondition(lambda self: self.idle())
    @rule(data=st.data(), ask=asks)
    def call(self, data: st.DataObject, ask: Ask) -> None:
        self.reserve(data.draw(st.sampled_from(self.idle())), ask)
        self.retry()

    @precondition(lambda self: any(path in self.promised for path in self.idle()))
    @rule(data=st.data(), share=st.floats(0, 1), output_cap=st.integers(1, 3000))
    def wrap_up(self, data: st.DataObject, share: float, output_cap: int) -> None:
        """A last turn that needs no more than its reservation foresaw always fits; at most it waits for a slot."""
        path = data.draw(st.sampled_from([path for path in self.idle() if path in self.promised]))
        ask = Ask(int(self.promised[path] * share), output_cap, PRICE, purpose="wrap_up")
        answer = self.reserve(path, ask)
        if self.honest:
            assert isinstance(answer, Granted | Wait), answer
            assert isinstance(answer, Granted) or answer.limit == "max_concurrent_calls"
        self.retry()

    @precondition(lambda self: self.in_flight(ROOT))
    @rule(
        data=st.data(),
        share=st.floats(0, 1),
        error=st.floats(0.5, 2),
        output=st.floats(0, 1),
        replied=st.booleans(),
        known=st.booleans(),
    )
    def settle(
        self, data: st.DataObject, share: float, error: float, output: float, replied: bool, known: bool
    ) -> None:
        id = data.draw(st.sampled_from([id for id, call in self.calls.items() if call.usage is None]))
        call = self.calls[id]
        factor = share if self.honest else error
        real = Usage(int(call.granted.input_tokens * factor), int(call.granted.output_cap * output))
        usage = real if known else None
        before = {scope: self.passed(scope) for scope in self.scopes_of(call.path)}
        settled = self.do(lambda ledger: ledger.settle(id, usage, replied=replied))
        charged = real if known else Usage(call.granted.input_tokens, call.granted.output_cap, estimated=True)
        self.charge(call, charged, replied)
        over = set[tuple[str, str]]().union(*(self.passed(scope) for scope in before))
        reported = {(overrun.scope, overrun.limit) for overrun in getattr(settled, "overruns")}  # noqa: B009
        new = over - set[tuple[str, str]]().union(*before.values())
        assert new <= reported <= over, "an overrun is reported exactly when more is spent than allowed"
        assert not (self.honest and over)
        if replied and call.ask.purpose != "wrap_up" and call.path in self.promised and call.takes_step:
            self.promised[call.path] = min(self.promised[call.path], charged.total + call.granted.result_cap)
        self.retry()

    @precondition(lambda self: len(self.live) > 1)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(self.live[1:]))
        self.do(lambda ledger: ledger.close(path))
        for call in self.in_flight(path):
            usage = Usage(call.granted.input_tokens, call.granted.output_cap, estimated=True)
            self.charge(call, usage, replied=False)
        for gone in [each for each in self.live if self.within(path, each)]:
            self.live.remove(gone)
            self.line.pop(gone, None)
            self.promised.pop(gone, None)
        self.retry()

    @rule(data=st.data(), count=st.integers(1, 3))
    def use_tools(self, data: st.DataObject, count: int) -> None:
        path = data.draw(st.sampled_from(self.live))
        above = self.scopes_of(path)
        fits = all(
            not _over(self.ledger.limits(scope).max_tool_calls, self.spent(scope, "max_tool_calls") + count)
            and not self.passed(scope)
            for scope in above
        )
        refused = self.do(lambda ledger: ledger.tool_calls(path, count))
        assert (refused is None) == fits
        self.tools.extend([path] * count if fits else [])

    @rule(data=st.data(), more=st.integers(1, 5000))
    def raise_a_limit(self, data: st.DataObject, more: int) -> None:
        path = data.draw(st.sampled_from(self.live))
        names: list[LimitName] = [account.name for account in self.ledger.accounts(path)]
        names = [name for name in names if name not in {"cost_budget"}]
        if names:
            name = data.draw(st.sampled_from(names))
            before = self.ledger.limits(path).get(name)
            new = self.do(lambda ledger: ledger.change_limits(path, {name: f"+{more}"}, "resume"))
            assert isinstance(new, Limits)
            assert new.get(name) == (before or 0) + more
            assert new.source(name) == "resume"
            self.retry()

    @rule()
    def restart(self) -> None:
        """A ledger written down and read again is the same; only the line is asked anew."""
        data = json.loads(json.dumps(self.ledger.snapshot()))
        self.ledger = Ledger.restore(data)
        assert self.ledger.snapshot() == data
        line, self.line = self.line, {}
        for path, (ask, _) in line.items():
            self.reserve(path, ask)
        self.retry()

    # --- how it happens --------------------------------------------------------------------------------------------

    def reserve(self, path: str, ask: Ask) -> Granted | Wait | Refused:
        ahead = [scope for other, (_, scope) in self.line.items() if other != path]
        position = list(self.line).index(path) if path in self.line else len(self.line)
        answer = self.do(lambda ledger: ledger.reserve(path, ask))
        assert isinstance(answer, Granted | Wait | Refused)
        if isinstance(answer, Wait):
            assert self.in_flight(ROOT), "a call waits only while another is in flight"
            self.line[path] = (ask, answer.scope)
            return answer
        self.line.pop(path, None)
        if isinstance(answer, Granted):
            assert answer.output_cap >= (1 if ask.purpose == "wrap_up" else min(256, ask.output_cap))
            assert answer.output_cap <= ask.output_cap
            assert answer.result_cap <= ask.result_cap
            if ask.purpose != "wrap_up":
                assert not any(self.within(scope, path) for scope in ahead[:position]), "nobody is overtaken"
            assert not any(self.passed(scope) for scope in self.scopes_of(path)), "nothing after an overrun"
            self.calls[answer.id] = Call(path, ask, answer)
            if ask.purpose == "wrap_up":
                self.promised.pop(path, None)
            elif ask.purpose != "summary":
                self.promised[path] = ask.input_tokens + answer.output_cap + answer.result_cap
        return answer

    def charge(self, call: Call, usage: Usage, replied: bool) -> None:
        call.usage = usage
        call.cost = (call.granted.cost_usd or 0.0) if usage.estimated else PRICE.cost(usage)
        call.step = call.takes_step if replied else 0

    def retry(self) -> None:
        answered = True
        while answered:
            answered = False
            for path in self.ledger.waiting:
                if not isinstance(self.reserve(path, self.line[path][0]), Wait):
                    answered = True
                    break

    # --- what was promised -----------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_right(self) -> None:
        for scope in self.live:
            for account in self.ledger.accounts(scope):
                assert abs(self.spent(scope, account.name) - account.spent) < 1e-9, account
                assert abs(self.reserved(scope, account.name) - account.reserved) < 1e-9, account
            assert self.ledger.calls_in_flight(scope) == len(self.in_flight(scope))

    @invariant()
    def honest_counts_are_never_overspent(self) -> None:
        if self.honest:
            for scope in self.live:
                for account in self.ledger.accounts(scope):
                    assert account.free >= -1e-9, account

    @invariant()
    def children_never_outspend_the_parent(self) -> None:
        for scope in self.live:
            below = [path for path in self.live if path.rpartition("/")[0] == scope]
            total = sum(self.ledger.spent(path).usage.total for path in below)
            assert total <= self.ledger.spent(scope).usage.total
            assert total + self.spent_alone(scope) <= self.ledger.spent(scope).usage.total

    def spent_alone(self, scope: str) -> int:
        return sum(call.usage.total for call in self.calls.values() if call.usage and call.path == scope)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        assert list(self.line) == list(self.ledger.waiting)
        if not self.in_flight(ROOT):
            assert not self.line

    @invariant()
    def no_more_calls_than_slots(self) -> None:
        for scope in self.live:
            assert not _over(self.ledger.limits(scope).max_concurrent_calls, len(self.in_flight(scope)))

    @invariant()
    def what_remains_is_what_the_accounts_leave(self) -> None:
        for path in self.live:
            remaining = self.ledger.remaining(path)
            for left in (remaining.steps, remaining.tokens, remaining.tool_calls):
                if left is not None:
                    account = self.ledger.account(left.scope, left.limit)
                    assert isinstance(account, Account)
                    assert account.free <= left.amount or left.amount == 0

    def teardown(self) -> None:
        """The same calls in the same order give the same state."""
        again = Ledger()
        for action in self.log:
            action(again)
        assert again.snapshot() == self.ledger.snapshot()


def _over(limit: int | None, value: float) -> bool:
    return limit is not None and value > limit


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
