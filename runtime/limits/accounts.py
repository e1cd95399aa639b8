"""What a scope's books say: spent, free, passed, and what an actor may still use of its own and inherited limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runtime.messages import Usage

from .amounts import COST, INPUT, OUTPUT, STEPS, TOKENS, Amounts
from .budget import Account, Left, Overrun, Remaining, Spent
from .limits import LimitName
from .price import Price, to_usd
from .scope import Scope

_AXES: Mapping[LimitName, int] = {
    "max_steps": STEPS,
    "total_steps": STEPS,
    "token_budget": TOKENS,
    "input_budget": INPUT,
    "output_budget": OUTPUT,
    "cost_budget": COST,
}
_COUNTED: tuple[LimitName, ...] = (*_AXES, "max_tool_calls", "max_children", "max_total_children")
_OWN: frozenset[LimitName] = frozenset({"max_steps", "max_children"})
_UNBOUNDED = 1 << 62


def spent(scope: Scope) -> Spent:
    """What the scope's actor and all below it have used."""
    total = scope.spent
    usage = Usage(total[INPUT], total[OUTPUT], scope.cached_input, scope.cache_write, scope.reasoning, scope.estimated)
    cost = to_usd(total[COST]) if scope.cost_known else None
    return Spent(usage, cost, scope.own_steps, total[STEPS], scope.tool_calls, scope.opened)


def accounts(scope: Scope) -> Iterator[Account]:
    """Every limit set here that counts something; depth, time and concurrency are states, not sums."""
    return (account(scope, name) for name in _COUNTED if scope.limits.get(name) is not None)


def account(scope: Scope, name: LimitName) -> Account:
    """One limit that is set here."""
    limit, source = scope.limits.get(name), scope.limits.source(name)
    assert limit is not None, name
    match name:
        case "max_steps":
            own = (scope.own_steps, scope.own_reserved_steps, scope.hold[STEPS])
            return Account(name, scope.path, limit, *own, source)
        case "max_tool_calls":
            return Account(name, scope.path, limit, scope.tool_calls, source=source)
        case "max_children":
            return Account(name, scope.path, limit, len(scope.children), source=source)
        case "max_total_children":
            return Account(name, scope.path, limit, scope.opened, source=source)
        case _:
            axis = _AXES[name]
            sums = (scope.spent[axis], scope.reserved[axis], scope.held[axis])
            used, reserved, held = (to_usd(total) if axis == COST else total for total in sums)
            return Account(name, scope.path, limit, used, reserved, held, source)


def remaining(scope: Scope) -> Remaining:
    """The least that is left of each limit of the chain; what others reserve or hold is taken off."""
    left: dict[LimitName, Left] = {}
    for each in scope.chain:
        for found in accounts(each):
            if found.name in _OWN and each is not scope:
                continue
            amount = max(0.0, found.free + _own_hold(scope, found.name))
            if found.name not in left or amount < left[found.name].amount:
                left[found.name] = Left(amount, found.name, each.path, found.source)
    return Remaining(
        steps=_smaller(left.get("max_steps"), left.get("total_steps")),
        tokens=left.get("token_budget"),
        input=left.get("input_budget"),
        output=left.get("output_budget"),
        cost_usd=left.get("cost_budget"),
        tool_calls=left.get("max_tool_calls"),
        children=_smaller(left.get("max_children"), left.get("max_total_children")),
    )


def wrap_up_room(scope: Scope, price: Price | None, floor: int) -> int:
    """Input tokens a last turn of this actor could have now beside `floor` of output; below zero where none fits."""
    most = scope.limits.max_steps
    room = _UNBOUNDED if most is None or scope.own_steps + scope.own_reserved_steps < most else -1
    for each in scope.chain:
        for _, axis, bound in each.bounds:
            free = bound - each.spent[axis] - each.reserved[axis] - each.held[axis] + scope.hold[axis]
            if axis == COST:
                room = min(room, -1 if price is None else _affordable(free, price, floor))
            elif axis == INPUT:
                room = min(room, free)
            elif axis == TOKENS:
                room = min(room, free - floor)
            elif free < (1 if axis == STEPS else floor):
                room = -1
    return room


def passed(scope: Scope) -> Account | None:
    """A limit of the chain that more was spent of than it allows: nothing is granted there any more."""
    for each in scope.chain:
        for name, axis, bound in each.bounds:
            if each.spent[axis] > bound:
                return account(each, name)
    return None


def overruns(scope: Scope, used: Amounts) -> Iterator[Overrun]:
    """Every limit of the chain that is passed, now that `used` was added to it."""
    for each in scope.chain:
        for name, axis, bound in each.bounds:
            excess = each.spent[axis] - bound
            if excess > 0 and used[axis]:
                yield Overrun(name, each.path, to_usd(excess) if axis == COST else excess)


def cost_bound(scope: Scope) -> Scope | None:
    """The nearest scope whose cost budget binds this actor."""
    return next((each for each in scope.chain if each.limits.cost_budget is not None), None)


def _affordable(free: int, price: Price, floor: int) -> int:
    left = free - floor * price.worst_output
    if left < 0:
        return -1
    return left // price.worst_input if price.worst_input else _UNBOUNDED


def _own_hold(scope: Scope, name: LimitName) -> float:
    axis = _AXES.get(name)
    if axis is None:
        return 0
    return to_usd(scope.hold[axis]) if axis == COST else scope.hold[axis]


def _smaller(left: Left | None, right: Left | None) -> Left | None:
    if left is None or right is None:
        return left or right
    return left if left.amount <= right.amount else right
