"""A call in flight: what was asked, in which sizes it was granted, and what that takes out of every scope."""

from __future__ import annotations

from typing import Any

import attrs

from runtime.messages import JsonObject, Usage

from .admission import Fit, call_amounts, hold_amounts, holds
from .amounts import COST, NONE, STEPS, Amounts, at_most
from .budget import Ask
from .price import Price, to_pico, to_usd
from .scope import Scope


@attrs.frozen
class Reservation:
    """A granted call. `amounts` is its worst case."""

    id: int
    scope: Scope
    ask: Ask
    fit: Fit
    amounts: Amounts

    @property
    def cost_usd(self) -> float | None:
        return None if self.ask.price is None else to_usd(self.amounts[COST])

    def hold(self) -> Amounts:
        """What its actor keeps for a last turn from now on."""
        match self.ask.purpose:
            case "wrap_up":
                return NONE
            case "summary":
                return self.scope.hold
            case _:
                history = self.ask.input_tokens + self.fit.output_cap
                return hold_amounts(history, self.fit.result_cap, self.fit.wrap_up_cap, self.ask.price)

    def hold_after(self, usage: Usage) -> Amounts:
        """What its actor keeps once the reply is there: what is known now, never more than before."""
        if not holds(self.ask):
            return self.scope.hold
        known = hold_amounts(usage.total, self.fit.result_cap, self.fit.wrap_up_cap, self.ask.price)
        return at_most(self.scope.hold, known)

    def used(self, usage: Usage, cost_usd: float | None, replied: bool) -> Amounts:
        """What to charge; a failed attempt is no step."""
        steps = self.amounts[STEPS] if replied else 0
        cost = 0 if cost_usd is None else to_pico(cost_usd)
        return (steps, usage.input, usage.output, usage.total, cost)

    def as_json(self) -> JsonObject:
        return {
            "id": self.id,
            "path": self.scope.path,
            "ask": attrs.asdict(self.ask, filter=lambda attribute, _: attribute.init),
            "fit": attrs.asdict(self.fit),
        }

    @classmethod
    def from_json(cls, row: JsonObject, scope: Scope) -> Reservation:
        ask: dict[str, Any] = dict(row["ask"])
        if ask["price"] is not None:
            ask["price"] = Price(**ask["price"])
        return granted(row["id"], scope, Ask(**ask), Fit(**row["fit"]))


def granted(id: int, scope: Scope, ask: Ask, fit: Fit) -> Reservation:
    """The reservation of a call in the sizes that fit."""
    return Reservation(id, scope, ask, fit, call_amounts(ask, fit.output_cap))
