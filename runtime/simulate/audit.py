"""A record read by a sceptic who adds everything up anew: were limits held, calls answered, asks settled?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from runtime.events import (
    ActorFinished,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetOverrun,
    BudgetReserved,
    BudgetSettled,
    LimitsChanged,
    ModelFinished,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    Record,
    RunFinished,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolRequested,
)
from runtime.limits.limits import LimitName, Limits
from runtime.limits.price import to_pico

STEPS, INPUT, OUTPUT, TOKENS, COST = range(5)
BOUNDS: tuple[tuple[LimitName, int], ...] = (
    ("total_steps", STEPS),
    ("token_budget", TOKENS),
    ("input_budget", INPUT),
    ("output_budget", OUTPUT),
    ("cost_budget", COST),
)


class Fault(AssertionError):
    """A promise that does not hold."""


@attrs.define(eq=False)
class Account:
    """What a sceptic knows of one actor; sums are of its subtree."""

    path: str
    parent: Account | None
    limits: Limits
    started: float
    depth: int
    spent: list[int] = attrs.Factory(lambda: [0] * 5)
    own_steps: int = 0
    tool_calls: int = 0
    opened: int = 0
    alive: set[str] = attrs.Factory(set[str])
    flying: dict[int, BudgetReserved] = attrs.Factory(dict[int, BudgetReserved])
    wrong: list[int] = attrs.Factory(lambda: [0] * 5)
    """By how much the calls that were in flight at the last grant turned out larger than reserved."""
    passed: set[LimitName] = attrs.Factory(set[LimitName])
    told: set[str] = attrs.Factory(set[str])
    ended: float | None = None
    again: bool = False

    @property
    def chain(self) -> Iterator[Account]:
        account: Account | None = self
        while account is not None:
            yield account
            account = account.parent


class Audit:
    """Reads the records of one run, all lives of it. Raises Fault at the first thing that must not be."""

    def __init__(self, *, honest: bool) -> None:
        self.accounts: dict[str, Account] = {}
        self._honest = honest
        self._limits = Limits()
        self._calls: dict[tuple[str, str], int] = {}
        self._counted: set[tuple[str, str]] = set()
        self._asked: dict[str, tuple[str, str]] = {}
        self._decided: set[str] = set()
        self.finished = 0

    def read(self, records: Iterable[Record]) -> None:
        expected = 1
        for record in records:
            if record.seq != expected:
                raise Fault(f"record {record.seq} where {expected} is due")
            expected += 1
            self._take(record)

    def close(self) -> None:
        """The run has ended: nothing may be open. Raises Fault."""
        for account in self.accounts.values():
            if account.ended is None:
                raise Fault(f"{account.path} has not ended")
            if account.flying:
                raise Fault(f"{account.path} left the reservations {list(account.flying)} unsettled")
            for limit in account.passed:
                if limit not in account.told:
                    raise Fault(f"{limit} of {account.path} was passed and no overrun was reported")
        for (actor, call), results in self._calls.items():
            if results != 1:
                raise Fault(f"{call} of {actor} has {results} results")
        for id, place in self._asked.items():
            if id not in self._decided and not self._calls.get(place):
                raise Fault(f"the question {id} is still open")
        if self.finished != 1:
            raise Fault(f"the run was finished {self.finished} times")

    def _take(self, record: Record) -> None:
        match record.event:
            case RunStarted(limits=limits):
                self._limits = Limits.from_json(limits)
            case RunResumed():
                self.finished = 0
                for account in self.accounts.values():
                    account.again = account.parent is None
            case RunFinished():
                self.finished += 1
            case ActorStarted() as event:
                self._start(event, record.at)
            case ActorFinished(actor=path):
                self._finish(self._open(path), record.at)
            case LimitsChanged(actor=path, limits=limits) if path in self.accounts:
                account = self.accounts[path]
                account.limits = Limits.from_json({**account.limits.as_json(), **limits})
                for limit, axis in BOUNDS:
                    if self._excess(account, limit, axis) <= 0:
                        account.passed.discard(limit)
            case BudgetReserved() as event:
                self._reserve(self._open(event.actor), event)
            case BudgetSettled() as event:
                self._settle(self.accounts[event.actor], event)
            case BudgetOverrun() as event:
                self.accounts[event.scope].told.add(event.limit)
            case ToolRequested() as event:
                self._calls.setdefault((event.actor, event.call_id), 0)
            case PermissionDecided() as event:
                self._count(self._open(event.actor), event)
            case ToolFinished() as event:
                self._calls[event.actor, event.call_id] = self._calls.get((event.actor, event.call_id), 0) + 1
            case ApprovalRequested() as event:
                self._asked[event.id] = (event.actor, event.call_id)
            case QuestionAsked() as event:
                self._asked[event.id] = (event.actor, event.call_id)
            case ApprovalDecided() | QuestionAnswered() as event:
                if event.id in self._decided:
                    raise Fault(f"{event.id} was decided twice")
                self._decided.add(event.id)
            case ModelFinished() as event:
                for call in event.tool_calls:
                    self._calls.setdefault((event.actor, call["id"]), 0)
            case _:
                pass

    def _open(self, path: str) -> Account:
        account = self.accounts.get(path)
        if account is not None and account.again:
            account.ended, account.again = None, False  # a root that had ended goes on
        if account is None or account.ended is not None:
            raise Fault(f"{path} does something and is not there")
        return account

    # --- actors --------------------------------------------------------------------------------------------------

    def _start(self, event: ActorStarted, at: float) -> None:
        if event.actor in self.accounts:
            raise Fault(f"{event.actor} started twice")
        parent = self._open(event.parent) if event.parent is not None else None
        depth = 0 if parent is None else parent.depth + 1
        limits = Limits.from_json(event.limits)
        account = self.accounts[event.actor] = Account(event.actor, parent, limits, at, depth)
        if parent is None:
            return
        parent.alive.add(account.path)
        self._at_most(parent, "max_children", len(parent.alive))
        for above in parent.chain:
            above.opened += 1
            self._at_most(above, "max_total_children", above.opened)
            self._at_most(above, "max_depth", depth - above.depth)

    def _finish(self, account: Account, at: float) -> None:
        if account.alive:
            raise Fault(f"{account.path} ended before {account.alive}")
        account.ended = at
        if account.parent is not None:
            account.parent.alive.discard(account.path)

    def _at_most(self, account: Account, name: LimitName, count: int) -> None:
        most = account.limits.get(name)
        if most is not None and count > most:
            raise Fault(f"{account.path} has {count} where {name} allows {most:g}")

    # --- spending ------------------------------------------------------------------------------------------------

    def _reserve(self, account: Account, event: BudgetReserved) -> None:
        account.flying[event.id] = event
        for above in account.chain:
            flying = sum(len(each.flying) for each in self.accounts.values() if above in each.chain)
            self._at_most(above, "max_concurrent_calls", flying)
            above.wrong = [0] * 5
            if above.passed:
                raise Fault(f"{account.path} was granted a call although {above.passed} of {above.path} is passed")
        self._at_most(account, "max_steps", account.own_steps + len(account.flying))

    def _settle(self, account: Account, event: BudgetSettled) -> None:
        reserved = account.flying.pop(event.id, None)
        if reserved is None:
            raise Fault(f"{account.path} settled {event.id} which it had not reserved")
        usage = event.usage
        steps = 1 if event.replied and reserved.purpose != "summary" else 0
        cost = to_pico(event.cost_usd or 0.0)
        used = [steps, usage["input"], usage["output"], usage["input"] + usage["output"], cost]
        held = [1, reserved.input, reserved.output_cap, reserved.input + reserved.output_cap]
        held.append(to_pico(reserved.cost_usd or 0.0))
        account.own_steps += steps
        self._at_most(account, "max_steps", account.own_steps)
        for above in account.chain:
            for axis, amount in enumerate(used):
                above.spent[axis] += amount
                above.wrong[axis] += max(0, amount - held[axis])
            for limit, axis in BOUNDS:
                self._check(above, limit, axis)

    def _check(self, account: Account, limit: LimitName, axis: int) -> None:
        excess = self._excess(account, limit, axis)
        if excess <= 0:
            return
        if self._honest:
            raise Fault(f"{limit} of {account.path} is passed by {excess} although all counts were honest")
        account.passed.add(limit)
        if excess > account.wrong[axis]:
            raise Fault(f"{limit} of {account.path} is passed by {excess}, more than what was in flight was wrong by")

    @staticmethod
    def _excess(account: Account, limit: LimitName, axis: int) -> int:
        bound = account.limits.get(limit)
        if bound is None:
            return 0
        return account.spent[axis] - (to_pico(bound) if axis == COST else int(bound))

    def _count(self, account: Account, event: PermissionDecided) -> None:
        place = (event.actor, event.call_id)
        if place in self._counted:
            return
        self._counted.add(place)
        for above in account.chain:
            above.tool_calls += 1
            self._at_most(above, "max_tool_calls", above.tool_calls)
