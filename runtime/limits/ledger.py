"""The budget tree: who may call a model now, what every call has used, and what is kept so that each run can end well.

Pure and deterministic: no clock, no I/O; the same calls in the same order give the same state. One task owns a ledger.

Whoever is told to Wait asks again after each `settle`, `close` and `change_limits`, and whenever one that had waited
got its answer; `waiting` gives the order. Asked so, the first in line is answered at the latest when no call of the
scope it waits for is in flight: nobody waits for ever, and nobody is overtaken where he waits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from runtime.errors import UsageError
from runtime.messages import JsonObject, Usage

from . import accounts
from .admission import Fit, Shortage, admit, kept, least_output
from .amounts import STEPS
from .budget import (
    MIN_OUTPUT,
    Account,
    Ask,
    Barred,
    Closed,
    Granted,
    Opened,
    Refused,
    Remaining,
    Settled,
    Spent,
    Wait,
)
from .limits import LimitName, Limits, changed, stop_reason
from .openings import barred
from .price import Price, to_pico
from .reservation import Reservation, granted
from .scope import Scope


@attrs.frozen
class _Waiter:
    limit: LimitName
    scopes: frozenset[str]


class Ledger:
    """The ledger of one run. Methods raise KeyError for an actor that is not open and a call that is not in flight."""

    def __init__(self) -> None:
        self._scopes: dict[str, Scope] = {}
        self._calls: dict[int, Reservation] = {}
        self._line: dict[str, _Waiter] = {}
        self._next_id = 1

    # --- actors --------------------------------------------------------------------------------------------------

    def open(self, path: str, parent: str | None, limits: Limits) -> Opened | Barred:
        """Give an actor its place, unless depth or width say no, or a limit above was passed already.

        Raises ValueError for a path that is open, and for a second root.
        """
        if path in self._scopes:
            raise ValueError(f"{path} is open already")
        if parent is None and self._scopes:
            raise ValueError("a ledger has one root")
        above = None if parent is None else self._scopes[parent]
        if above is not None and (no := barred(above)) is not None:
            return no
        scope = self._scopes[path] = Scope(path, above, limits)
        for each in scope.chain[1:]:
            each.opened += 1
        scope.attach()
        return Opened(path, scope.depth)

    def close(self, path: str) -> Closed:
        """End an actor and whatever is still open below it; calls in flight are charged in full.

        What it held is free again and its memory too; what it spent stays with those above.
        """
        scope = self._scopes[path]
        calls = [call.id for call in self._calls.values() if scope in call.scope.chain] if scope.calls else []
        settled = tuple(self.settle(id, None, replied=False) for id in calls)
        for each in reversed(scope.subtree()):
            each.detach()
            del self._scopes[each.path]
            self._line.pop(each.path, None)
        return Closed(accounts.spent(scope), settled)

    # --- model calls ---------------------------------------------------------------------------------------------

    def reserve(self, path: str, ask: Ask) -> Granted | Wait | Refused:
        """Take the worst case of a call out of its scope and all above, and size the hold of the wrap-up after it.

        A call that does not fit waits while a call of the limiting scope is in flight whose end could make it fit.
        Who waits is in line until the next answer, `withdraw` or `close`. An actor asks for one call at a time.
        """
        scope = self._scopes[path]
        if ask.price is None and (bound := accounts.cost_bound(scope)) is not None:
            self.withdraw(path)
            text = f"cost_budget of {bound.path} cannot be kept: no price is known for the model of {path}"
            return Refused("cost_budget", "cost_budget", bound.path, text)
        found = admit(scope, ask)
        if not isinstance(found, Fit):
            final = [shortage for shortage in found if shortage.final]
            if final:
                self.withdraw(path)
                return _refused(min(final, key=lambda shortage: shortage.room))
            return self._wait(path, found[0].limit, *(shortage.scope.path for shortage in found))
        if self._line and ask.purpose != "wrap_up" and (ahead := self._ahead_of(scope)) is not None:
            return self._wait(path, ahead.limit, ahead.scope)
        self.withdraw(path)
        call = granted(self._next_id, scope, ask, found)
        self._next_id += 1
        self._calls[call.id] = call
        scope.take(call.amounts, call.hold())
        return Granted(call.id, found.output_cap, found.result_cap, ask.input_tokens, call.cost_usd)

    def settle(self, id: int, usage: Usage | None, cost_usd: float | None = None, *, replied: bool = True) -> Settled:
        """A call ended: charge what it used, give the rest back.

        No usage means unknown: the reservation is charged in full, as an estimate. `cost_usd` is what the provider
        billed; else the price given with the Ask tells. A failed attempt (`replied` False) takes no step.
        """
        call = self._calls.pop(id)
        scope, price = call.scope, call.ask.price
        known = cost_usd is not None and math.isfinite(cost_usd) and cost_usd >= 0
        if usage is None:
            usage = Usage(call.ask.input_tokens, call.fit.output_cap, estimated=True)
            cost_usd = cost_usd if known else call.cost_usd
        elif not known:
            cost_usd = None if price is None else price.cost(usage)
        used = call.used(usage, cost_usd, replied)
        scope.give_back(call.amounts, call.hold_after(usage) if replied else scope.hold)
        scope.spend(used, usage, cost_usd is not None)
        return Settled(id, scope.path, usage, cost_usd, tuple(accounts.overruns(scope, used)))

    def recall(
        self,
        path: str,
        usage: Usage,
        cost_usd: float | None,
        *,
        own_steps: int = 0,
        steps: int = 0,
        tool_calls: int = 0,
        opened: int = 0,
    ) -> None:
        """Take over what an earlier process spent here; nothing is asked, for it is spent.

        `own_steps` are replies of the actor itself, `steps` those of ended actors below it, `opened` their number.
        """
        scope = self._scopes[path]
        pico = 0 if cost_usd is None else to_pico(cost_usd)
        scope.spend((own_steps, usage.input, usage.output, usage.total, pico), usage, cost_usd is not None)
        for each in scope.chain:
            each.spent[STEPS] += steps
            each.tool_calls += tool_calls
            each.opened += opened

    def keep(self, path: str, ask: Ask) -> bool:
        """Hold enough for a last turn again, for an actor taken over from an earlier process; False where none fits.

        `ask` is the turn it would ask for next. Without this a parent that waits would hold nothing until its own
        next call, and its children could use up its last turn.
        """
        scope = self._scopes[path]
        hold = kept(scope, ask)
        if hold is not None:
            scope.resize_hold(hold)
        return hold is not None

    def charge_unsettled(self) -> tuple[Settled, ...]:
        """Charge every call in flight in full: after a crash nobody knows how far it came."""
        return tuple(self.settle(id, None, replied=False) for id in list(self._calls))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Those who wait for a call, first come first."""
        return tuple(self._line)

    def short_of(self, path: str) -> str:
        """The limit that keeps a waiting actor from its call; "" for one who does not wait."""
        waiter = self._line.get(path)
        return "" if waiter is None else waiter.limit

    def withdraw(self, path: str) -> None:
        """Leave the line without an answer; nothing happens to one who is not in it."""
        self._line.pop(path, None)

    def wrap_up_room(self, path: str, price: Price | None, output_cap: int = MIN_OUTPUT) -> int:
        """Input tokens a wrap-up could have now; below zero where none fits.

        One with what its reservation foresaw always fits. For what nobody foresaw, a long steering message say, this
        is the size to shorten the history to.
        """
        scope = self._scopes[path]
        return accounts.wrap_up_room(scope, price, least_output(scope, output_cap))

    # --- tool calls ----------------------------------------------------------------------------------------------

    def tool_calls(self, path: str, count: int = 1) -> Refused | None:
        """Count tool calls that are about to run; None when they may, else none of them is counted."""
        scope = self._scopes[path]
        if (over := accounts.passed(scope)) is not None:
            return _refuse(over, str(over))
        for each in scope.chain:
            most = each.limits.max_tool_calls
            if most is not None and each.tool_calls + count > most:
                account = accounts.account(each, "max_tool_calls")
                return _refuse(account, str(account))
        for each in scope.chain:
            each.tool_calls += count
        return None

    # --- limits --------------------------------------------------------------------------------------------------

    def change_limits(self, path: str, changes: Mapping[str, float | str], source: str = "") -> Limits:
        """Raise (or lower) limits of a live actor, by name: a number, or text such as `120` or `+20`; returns the new.

        Raises UsageError for what is no change, and for lowering a limit under what is spent or promised already.
        """
        scope = self._scopes[path]
        old, new = scope.limits, changed(scope.limits, changes, source)
        scope.limit_to(new)
        for account in self.accounts(path):
            was = old.get(account.name)
            if account.name in changes and account.free < 0 and (was is None or account.of < was):
                scope.limit_to(old)
                taken = account.of - account.free
                raise UsageError(f"{account.name} of {path} cannot go below {taken:,}: so much is spent or promised")
        return new

    def limits(self, path: str) -> Limits:
        return self._scopes[path].limits

    def needs_price(self, path: str) -> bool:
        """Whether a cost budget binds this actor: a model whose price is unknown cannot work under it."""
        return accounts.cost_bound(self._scopes[path]) is not None

    # --- what there is -------------------------------------------------------------------------------------------

    def is_open(self, path: str) -> bool:
        return path in self._scopes

    def spent(self, path: str) -> Spent:
        """What a live actor and all below it have used so far; calls in flight are not in it."""
        return accounts.spent(self._scopes[path])

    def remaining(self, path: str) -> Remaining:
        """What an actor may still spend, and whose limit it is; what others reserve or hold is taken off."""
        return accounts.remaining(self._scopes[path])

    def accounts(self, path: str) -> tuple[Account, ...]:
        """Every counting limit set on a live actor itself, with what has become of it; `str` of one fits a report."""
        return tuple(accounts.accounts(self._scopes[path]))

    def account(self, path: str, name: str) -> Account | None:
        """One limit of a live actor; None where it is not set or counts nothing."""
        return next((account for account in self.accounts(path) if account.name == name), None)

    def calls_in_flight(self, path: str) -> int:
        """Unsettled calls of an actor and all below it."""
        return self._scopes[path].calls

    # --- to JSON and back ----------------------------------------------------------------------------------------

    def snapshot(self) -> JsonObject:
        """The whole state as JSON. Who waits is not part of it: after a restart everybody asks anew."""
        return {
            "next_id": self._next_id,
            "scopes": [scope.as_json() for scope in self._scopes.values()],
            "calls": [call.as_json() for call in self._calls.values()],
        }

    @classmethod
    def restore(cls, data: JsonObject) -> Ledger:
        """The ledger of a snapshot. Calls in flight are still so: settle them, or `charge_unsettled`."""
        ledger = cls()
        for row in data["scopes"]:
            ledger._scopes[row["path"]] = Scope.from_json(row, ledger._scopes)
        for row in data["calls"]:
            call = ledger._calls[row["id"]] = Reservation.from_json(row, ledger._scopes[row["path"]])
            call.scope.take(call.amounts, call.scope.hold)
        ledger._next_id = data["next_id"]
        return ledger

    # --- the line ------------------------------------------------------------------------------------------------

    def _wait(self, path: str, limit: LimitName, *scopes: str) -> Wait:
        self._line[path] = _Waiter(limit, frozenset(scopes))
        return Wait(limit, scopes[0])

    def _ahead_of(self, scope: Scope) -> Wait | None:
        """Somebody who asked before and waits for what this scope would take."""
        for path, waiter in self._line.items():
            if path == scope.path:
                return None
            for each in scope.chain:
                if each.path in waiter.scopes:
                    return Wait(waiter.limit, each.path)
        return None


def _refused(shortage: Shortage) -> Refused:
    account = accounts.account(shortage.scope, shortage.limit)
    kept = f", {account.held_text} kept for last answers" if account.held else ""
    return _refuse(account, f"{account}{kept}")


def _refuse(account: Account, message: str) -> Refused:
    reason = stop_reason(account.name)
    assert reason is not None, account.name
    return Refused(reason, account.name, account.scope, message)
