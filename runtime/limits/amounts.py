"""What is spent, reserved and held, counted together: one short vector of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .price import Price

STEPS, INPUT, OUTPUT, TOKENS, COST = range(5)

Amounts: TypeAlias = tuple[int, int, int, int, int]
"""Steps, input tokens, output tokens, both together, picodollars."""

NONE: Amounts = (0, 0, 0, 0, 0)


def amounts(steps: int, input_tokens: int, output_tokens: int, price: Price | None) -> Amounts:
    """The worst this many tokens can cost; nothing where no price is known."""
    cost = 0 if price is None else input_tokens * price.worst_input + output_tokens * price.worst_output
    return (steps, input_tokens, output_tokens, input_tokens + output_tokens, cost)


def plus(left: Amounts, right: Amounts) -> Amounts:
    return (
        left[0] + right[0],
        left[1] + right[1],
        left[2] + right[2],
        left[3] + right[3],
        left[4] + right[4],
    )


def at_most(left: Amounts, right: Amounts) -> Amounts:
    return (
        min(left[0], right[0]),
        min(left[1], right[1]),
        min(left[2], right[2]),
        min(left[3], right[3]),
        min(left[4], right[4]),
    )


def add(total: list[int], more: Amounts) -> None:
    """Written out, here and below: these run for each scope of each call."""
    total[0] += more[0]
    total[1] += more[1]
    total[2] += more[2]
    total[3] += more[3]
    total[4] += more[4]


def change(total: list[int], old: Amounts, new: Amounts) -> None:
    total[0] += new[0] - old[0]
    total[1] += new[1] - old[1]
    total[2] += new[2] - old[2]
    total[3] += new[3] - old[3]
    total[4] += new[4] - old[4]


def vector(values: Sequence[int]) -> Amounts:
    """Amounts that were written down as a list."""
    steps, input_tokens, output_tokens, tokens, cost = values
    return (steps, input_tokens, output_tokens, tokens, cost)
