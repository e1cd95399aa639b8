"""One live actor's place in the budget tree: its limits, and what its subtree has spent, reserved and kept."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from runtime.messages import JsonObject, Usage

from .amounts import COST, INPUT, NONE, OUTPUT, STEPS, TOKENS, Amounts, add, change, vector
from .limits import LimitName, Limits
from .price import to_pico

_AXIS: tuple[tuple[LimitName, int], ...] = (
    ("total_steps", STEPS),
    ("token_budget", TOKENS),
    ("input_budget", INPUT),
    ("output_budget", OUTPUT),
    ("cost_budget", COST),
)


def _nothing() -> list[int]:
    return list(NONE)


@attrs.define(eq=False)
class Scope:
    """Mutable, owned by its ledger. `spent`, `reserved` and `held` are of the whole subtree, closed actors included."""

    path: str
    parent: Scope | None
    limits: Limits
    depth: int = attrs.field(init=False)
    chain: tuple[Scope, ...] = attrs.field(init=False)
    children: dict[str, Scope] = attrs.field(init=False, factory=dict[str, "Scope"])

    spent: list[int] = attrs.field(init=False, factory=_nothing)
    reserved: list[int] = attrs.field(init=False, factory=_nothing)
    held: list[int] = attrs.field(init=False, factory=_nothing)
    hold: Amounts = attrs.field(init=False, default=NONE)
    """What this actor's own wrap-up keeps; part of `held`."""

    own_steps: int = attrs.field(init=False, default=0)
    own_reserved_steps: int = attrs.field(init=False, default=0)
    own_calls: int = attrs.field(init=False, default=0)
    calls: int = attrs.field(init=False, default=0)
    """Calls in flight in the subtree."""
    idle: int = attrs.field(init=False, default=0)
    """Actors of the subtree that could ask for a call: no child alive, no call in flight."""
    counts_as_idle: bool = attrs.field(init=False, default=False)

    tool_calls: int = attrs.field(init=False, default=0)
    opened: int = attrs.field(init=False, default=0)
    cached_input: int = attrs.field(init=False, default=0)
    cache_write: int = attrs.field(init=False, default=0)
    reasoning: int = attrs.field(init=False, default=0)
    estimated: bool = attrs.field(init=False, default=False)
    cost_known: bool = attrs.field(init=False, default=True)
    bounds: tuple[tuple[LimitName, int, int], ...] = attrs.field(init=False)
    """The limits on what is spent: name, axis, value in the axis's unit."""
    slots: int | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1
        self.chain = (self,) if self.parent is None else (self, *self.parent.chain)
        self.limit_to(self.limits)

    def limit_to(self, limits: Limits) -> None:
        self.limits = limits
        bounds: list[tuple[LimitName, int, int]] = []
        for name, axis in _AXIS:
            if (value := limits.get(name)) is not None:
                bounds.append((name, axis, to_pico(value) if axis == COST else int(value)))
        self.bounds = tuple(bounds)
        self.slots = limits.max_concurrent_calls

    def subtree(self) -> list[Scope]:
        """This scope and all below it, parents first."""
        found: list[Scope] = [self]
        for scope in found:
            found += scope.children.values()
        return found

    def take(self, call: Amounts, hold: Amounts) -> None:
        """A call starts: reserve it, and size this actor's own hold anew, here and above."""
        old, self.hold = self.hold, hold
        self.own_reserved_steps += call[STEPS]
        self.own_calls += 1
        for scope in self.chain:
            scope.calls += 1
            add(scope.reserved, call)
            change(scope.held, old, hold)
        self.count_idle()

    def give_back(self, call: Amounts, hold: Amounts) -> None:
        """A call has ended: what it reserved is free."""
        old, self.hold = self.hold, hold
        self.own_reserved_steps -= call[STEPS]
        self.own_calls -= 1
        for scope in self.chain:
            scope.calls -= 1
            change(scope.reserved, call, NONE)
            if hold != old:
                change(scope.held, old, hold)
        self.count_idle()

    def spend(self, used: Amounts, usage: Usage, cost_known: bool) -> None:
        self.own_steps += used[STEPS]
        for scope in self.chain:
            add(scope.spent, used)
            scope.cached_input += usage.cached_input
            scope.cache_write += usage.cache_write
            scope.reasoning += usage.reasoning
            scope.estimated |= usage.estimated
            scope.cost_known &= cost_known

    def resize_hold(self, hold: Amounts) -> None:
        old, self.hold = self.hold, hold
        for scope in self.chain:
            change(scope.held, old, hold)

    def count_idle(self) -> None:
        idle = not self.children and not self.own_calls
        if idle == self.counts_as_idle:
            return
        self.counts_as_idle = idle
        for scope in self.chain:
            scope.idle += 1 if idle else -1

    def attach(self) -> None:
        """Take the place in the tree: a parent with a child at work is not expected to call."""
        if self.parent is not None:
            self.parent.children[self.path] = self
            self.parent.count_idle()
        self.count_idle()

    def detach(self) -> None:
        """Leave the tree; what was spent stays with those above."""
        self.resize_hold(NONE)
        if self.counts_as_idle:
            self.counts_as_idle = False
            for scope in self.chain:
                scope.idle -= 1
        if self.parent is not None:
            del self.parent.children[self.path]
            self.parent.count_idle()

    def as_json(self) -> JsonObject:
        """What cannot be worked out again from the calls in flight."""
        return {
            "path": self.path,
            "parent": None if self.parent is None else self.parent.path,
            "limits": self.limits.as_json(),
            "spent": list(self.spent),
            "hold": list(self.hold),
            **{name: getattr(self, name) for name in _KEPT},
        }

    @classmethod
    def from_json(cls, row: JsonObject, above: Mapping[str, Scope]) -> Scope:
        """A scope as it was written down, in its place under a parent that is there already."""
        parent = None if row["parent"] is None else above[row["parent"]]
        scope = cls(row["path"], parent, Limits.from_json(row["limits"]))
        scope.spent = list(row["spent"])
        for name in _KEPT:
            setattr(scope, name, row[name])
        scope.resize_hold(vector(row["hold"]))
        scope.attach()
        return scope


_KEPT = (
    "own_steps",
    "tool_calls",
    "opened",
    "cached_input",
    "cache_write",
    "reasoning",
    "estimated",
    "cost_known",
)
