"""Which calls of one reply may run together: a pure split into rounds, in call order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from runtime.messages import ToolCall

from ._tool import Effects

Kind: TypeAlias = Effects | Literal["delegation"]


def rounds(calls: Iterable[ToolCall], effects_of: Callable[[ToolCall], Kind]) -> tuple[tuple[ToolCall, ...], ...]:
    """Split calls into rounds: those of one run together, each round waits for the one before it.

    Neighbouring calls with effects `none` and delegations share a round; any other call has one of its own.
    """
    split: list[list[ToolCall]] = []
    open_round = False
    for call in calls:
        shares = effects_of(call) in ("none", "delegation")
        if shares and open_round:
            split[-1].append(call)
        else:
            split.append([call])
        open_round = shares
    return tuple(tuple(each) for each in split)
