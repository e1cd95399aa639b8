"""Whether a model call fits all limits of its chain, and with how much room for the reply: pure arithmetic.

A call is measured at its worst, together with the wrap-up that must stay possible after it. Both grow by one token
with each token of output cap, so every limit leaves room for so many; a scope's room is shared among the calls that
could run there, and the least room of all scopes is the cap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from .amounts import NONE, OUTPUT, STEPS, Amounts, amounts, plus
from .budget import LEAST_RESULTS, MIN_OUTPUT, WRAP_UP_OUTPUT, Ask
from .limits import LimitName
from .price import Price
from .scope import Scope

_HOLDING = frozenset({"turn", "retry", "repair"})
_AMPLE = 1 << 62


@attrs.frozen
class Fit:
    """The call fits with these sizes, in tokens."""

    output_cap: int
    result_cap: int
    wrap_up_cap: int


@attrs.frozen
class Shortage:
    """A limit that leaves too little `room`, in output tokens, for a reply; waiting cannot help one that is `final`."""

    limit: LimitName
    scope: Scope
    room: int
    final: bool


def holds(ask: Ask) -> bool:
    """Whether a wrap-up must stay possible after this call."""
    return ask.purpose in _HOLDING


def call_amounts(ask: Ask, output_cap: int) -> Amounts:
    """What the call itself reserves."""
    return amounts(0 if ask.purpose == "summary" else 1, ask.input_tokens, output_cap, ask.price)


def hold_amounts(history: int, result_cap: int, wrap_up_cap: int, price: Price | None) -> Amounts:
    """What a last turn needs after a call that leaves a history of so many tokens."""
    return amounts(1, history + result_cap, wrap_up_cap, price)


def least_output(asker: Scope, output_cap: int) -> int:
    """Tokens a last answer must have room for: never more than what was kept for it."""
    return min(MIN_OUTPUT, output_cap, asker.hold[OUTPUT] or MIN_OUTPUT)


def admit(asker: Scope, ask: Ask) -> Fit | tuple[Shortage, ...]:
    """The sizes a call may have now, or every limit that stands against it."""
    floor = least_output(asker, ask.output_cap) if ask.purpose == "wrap_up" else min(MIN_OUTPUT, ask.output_cap)
    room, rooms, base, slope, sizes = 0, list[_Room](), NONE, NONE, (0, 0)
    for sizes in _sizes(ask):
        base, slope = _need(ask, *sizes)
        rooms = _rooms(asker, ask, base, slope)
        room = min([found for found, _, _ in rooms], default=_AMPLE)
        if room >= min(ask.output_cap, max(sizes[0], floor)):
            break
    crowded = [scope for scope in asker.chain if scope.slots is not None and scope.calls >= scope.slots]
    if room >= floor and not crowded:
        return Fit(min(ask.output_cap, room), *sizes)
    short = [
        Shortage(limit, scope, found, not scope.calls or not _could_fit(scope, limit, base, slope, floor))
        for found, limit, scope in rooms
        if found < floor
    ]
    return (*short, *(Shortage("max_concurrent_calls", scope, 0, False) for scope in crowded))


def kept(asker: Scope, ask: Ask) -> Amounts | None:
    """What to hold for the last turn of an actor that stands before `ask`; None where not even the least fits."""
    for sizes in _sizes(ask):
        hold = hold_amounts(ask.input_tokens, *sizes, ask.price)
        if all(room >= 0 for room, _, _ in _rooms(asker, ask, hold, NONE)):
            return hold
    return None


def _sizes(ask: Ask) -> Iterator[tuple[int, int]]:
    """Result cap and wrap-up output to try, from generous to least: under pressure a round's results shrink with the
    reply, rather than ending an actor that could do smaller work."""
    if not holds(ask):
        yield 0, 0
        return
    results, wrap_up = ask.result_cap, min(ask.output_cap, WRAP_UP_OUTPUT)
    least = min(results, LEAST_RESULTS), min(wrap_up, MIN_OUTPUT)
    yield results, wrap_up
    while (results, wrap_up) != least:
        results, wrap_up = max(least[0], results // 2), max(least[1], wrap_up // 2)
        yield results, wrap_up


def _need(ask: Ask, result_cap: int, wrap_up_cap: int) -> tuple[Amounts, Amounts]:
    """What the call needs with no output at all, and more for each token of output cap."""
    base = call_amounts(ask, 0)
    rate_in, rate_out = (0, 0) if ask.price is None else (ask.price.worst_input, ask.price.worst_output)
    if not holds(ask):
        return base, (0, 0, 1, 1, rate_out)
    # The reply is generated once, and read once more by the wrap-up.
    hold = hold_amounts(ask.input_tokens, result_cap, wrap_up_cap, ask.price)
    return plus(base, hold), (0, 1, 1, 2, rate_in + rate_out)


_Room: TypeAlias = tuple[int, LimitName, Scope]


def _rooms(asker: Scope, ask: Ask, base: Amounts, slope: Amounts) -> list[_Room]:
    """The tokens of output each limit of the chain leaves room for; below zero where not even none would fit."""
    own = NONE if ask.purpose == "summary" else asker.hold
    assured = own[OUTPUT] if ask.purpose == "wrap_up" else 0
    rooms: list[_Room] = []
    most = asker.limits.max_steps
    if most is not None and most - asker.own_steps - asker.own_reserved_steps < base[STEPS]:
        rooms.append((-1, "max_steps", asker))
    for scope in asker.chain:
        if not scope.bounds:
            continue
        sharing = scope.idle + (0 if asker.counts_as_idle else 1)
        if scope.slots is not None:
            sharing = min(sharing, max(1, scope.slots - scope.calls))
        spent, reserved, held = scope.spent, scope.reserved, scope.held
        for limit, axis, bound in scope.bounds:
            free = bound - spent[axis] - reserved[axis] - held[axis] + own[axis] - base[axis]
            if free < 0:
                rooms.append((-1, limit, scope))
            elif slope[axis]:
                room = free // slope[axis]
                rooms.append((max(room // sharing, min(room, assured)), limit, scope))
    return rooms


def _could_fit(scope: Scope, limit: LimitName, base: Amounts, slope: Amounts, floor: int) -> bool:
    """Whether the call would fit if all that is reserved and held were given back unused."""
    for name, axis, bound in scope.bounds:
        if name == limit:
            return bound - scope.spent[axis] - base[axis] - slope[axis] * floor >= 0
    return False
