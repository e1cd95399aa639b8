"""The words of the budget: what an actor asks of the ledger, and every answer it can get."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from runtime.messages import Usage
from runtime.report import StopReason

from .limits import LimitName, amount_text
from .price import Price

MIN_OUTPUT = 256
"""Tokens a reply must have room for; with less the wrap-up begins."""
LEAST_RESULTS = 512
"""Tokens a round's results, their framing and a request for the last answer must have room for."""
WRAP_UP_OUTPUT = 1024
"""Tokens kept for the last answer; under pressure it shrinks to MIN_OUTPUT."""

Purpose: TypeAlias = Literal["turn", "retry", "repair", "summary", "wrap_up"]


def _check_ask(instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    least = 1 if attribute.name == "output_cap" else 0
    if value < least:
        raise ValueError(f"{attribute.name} must be at least {least}, not {value}")


@attrs.frozen
class Ask:
    """A model call somebody wants to make, at its worst.

    `input_tokens` counted or estimated; `output_cap` the smaller of the model's and the agent's; `result_cap` what may
    enter the history, in estimated tokens, between this call's reply and the next request: results, their framing,
    notes (the wrap-up's own too). A `turn`, `retry` or `repair` takes a step and, beside itself, holds enough for one
    `wrap_up` after it. A `summary` takes no step. A `wrap_up` is the last turn, paid from the hold.
    """

    input_tokens: int = attrs.field(validator=_check_ask)
    output_cap: int = attrs.field(validator=_check_ask)
    price: Price | None = None
    result_cap: int = attrs.field(default=0, validator=_check_ask)
    purpose: Purpose = "turn"


@attrs.frozen
class Granted:
    """The call may start now.

    `output_cap` is what to ask the model for at most; the results of the round after it are to be cut to `result_cap`
    tokens, all together. `cost_usd` is the worst case, None where no price is known.
    """

    id: int
    output_cap: int
    result_cap: int
    input_tokens: int
    cost_usd: float | None


@attrs.frozen
class Wait:
    """Not now: `limit` of `scope` is taken by calls that are not settled yet, or by somebody who asked before."""

    limit: LimitName
    scope: str


@attrs.frozen
class Refused:
    """Not at all, unless a limit is raised.

    `limit` is the reason for a report, `name` the limit as it was set; `message` is for a person: what was used of how
    much, and whose limit it is.
    """

    limit: StopReason
    name: LimitName
    scope: str
    message: str


@attrs.frozen
class Opened:
    """An actor has its place in the tree; the root has depth 0."""

    path: str
    depth: int


@attrs.frozen
class Barred:
    """No child can be opened here: an answer for the parent's model, never an end."""

    limit: LimitName
    scope: str
    message: str


@attrs.frozen
class Overrun:
    """A limit was passed, `by` how much in its own unit: the call used more than anyone could know."""

    limit: LimitName
    scope: str
    by: float

    def __str__(self) -> str:
        return f"{self.limit} of {self.scope} was passed by {amount_text(self.limit, self.by)}"


@attrs.frozen
class Settled:
    """What a call used. `cost_usd` is None where neither the provider nor a price tells."""

    id: int
    path: str
    usage: Usage
    cost_usd: float | None
    overruns: tuple[Overrun, ...] = ()


@attrs.frozen
class Spent:
    """What an actor and all below it have used; `steps` are its own replies, `total_steps` everyone's.

    `cost_usd` is None as soon as one call's cost is unknown: a part of a sum is no sum.
    """

    usage: Usage
    cost_usd: float | None
    steps: int
    total_steps: int
    tool_calls: int
    children: int


@attrs.frozen
class Closed:
    """An actor's end: the sum of its subtree, and the calls that were still in flight."""

    spent: Spent
    settled: tuple[Settled, ...] = ()


@attrs.frozen
class Account:
    """One limit of one scope and what has become of it; `of` is the limit, all in its own unit.

    `reserved` is for calls in flight, `held` for the last turns of all live actors.
    """

    name: LimitName
    scope: str
    of: float
    spent: float
    reserved: float = 0
    held: float = 0
    source: str = ""

    @property
    def free(self) -> float:
        return self.of - self.spent - self.reserved - self.held

    @property
    def held_text(self) -> str:
        return self._text(self.held)

    def __str__(self) -> str:
        source = f" ({self.source})" if self.source else ""
        return f"{self.name}: {self._text(self.spent)} of {self._text(self.of)}{source}"

    def _text(self, value: float) -> str:
        return amount_text(self.name, value) if self.name == "cost_budget" else f"{round(value):,}"


@attrs.frozen
class Left:
    """What may still be used of a limit, an actor's own last turn included, and whose limit it is."""

    amount: float
    limit: LimitName
    scope: str
    source: str = ""


@attrs.frozen
class Remaining:
    """What an actor may still spend, own and inherited limits together; None where nothing bounds it."""

    steps: Left | None = None
    tokens: Left | None = None
    input: Left | None = None
    output: Left | None = None
    cost_usd: Left | None = None
    tool_calls: Left | None = None
    children: Left | None = None

    def text(self, seconds: float | None = None) -> str:
        """One line for an actor's prompt; empty where nothing bounds it. `seconds` is what the clock leaves."""
        parts: list[str] = []
        if self.steps is not None:
            parts.append(f"{amount_text('max_steps', self.steps.amount)} (the last one is for your final answer)")
        for left in (self.tokens, self.input, self.output, self.cost_usd, self.tool_calls):
            if left is not None:
                parts.append(amount_text(left.limit, left.amount))
        if seconds is not None:
            parts.append(amount_text("timeout", max(0.0, round(seconds))))
        return f"You may use at most {', '.join(parts)}." if parts else ""
