"""Limits an actor works under, and how those of several sources compose: the tightest wins and says whose it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs

from runtime.errors import UsageError, did_you_mean
from runtime.messages import JsonObject
from runtime.report import StopReason

LimitName: TypeAlias = Literal[
    "max_steps",
    "total_steps",
    "token_budget",
    "input_budget",
    "output_budget",
    "cost_budget",
    "timeout",
    "max_tool_calls",
    "max_depth",
    "max_children",
    "max_total_children",
    "max_concurrent_calls",
]
LIMIT_NAMES: tuple[LimitName, ...] = get_args(LimitName)
_BY_NAME: Mapping[str, LimitName] = {name: name for name in LIMIT_NAMES}

_MAY_BE_ZERO = frozenset({"max_depth", "max_children", "max_total_children", "max_tool_calls", "cost_budget"})
_REASONS: Mapping[str, StopReason] = {
    "max_steps": "max_steps",
    "total_steps": "total_steps",
    "token_budget": "token_budget",
    "input_budget": "token_budget",
    "output_budget": "token_budget",
    "cost_budget": "cost_budget",
    "timeout": "deadline",
    "max_tool_calls": "max_tool_calls",
}
_NOUNS: Mapping[str, tuple[str, str]] = {
    "max_steps": ("step", "steps"),
    "total_steps": ("step in all", "steps in all"),
    "max_tool_calls": ("tool call", "tool calls"),
    "max_depth": ("level below", "levels below"),
    "max_children": ("child at once", "children at once"),
    "max_total_children": ("child in all", "children in all"),
    "max_concurrent_calls": ("call at once", "calls at once"),
}


def _check_whole(instance: object, attribute: attrs.Attribute[int | None], value: int | None) -> None:
    if value is None:
        return
    least = 0 if attribute.name in _MAY_BE_ZERO else 1
    if type(value) is not int or value < least:
        raise ValueError(f"{attribute.name} must be a whole number of at least {least}, not {value!r}")


def _check_number(instance: object, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is None:
        return
    if (
        type(value) not in (int, float)
        or not math.isfinite(value)
        or value < 0
        or (value == 0 and attribute.name not in _MAY_BE_ZERO)
    ):
        raise ValueError(f"{attribute.name} must be a positive number, not {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """What bounds an actor; None where nothing does. `sources` says, by limit, who set it.

    `max_steps` counts the replies of the actor alone, `max_children` its own children alive at once, `max_depth` the
    levels below it. Everything else is of the actor and all below it: `total_steps`, tokens (`token_budget` input +
    output), `cost_budget` in USD, `max_tool_calls`, `max_total_children` (ended ones too), `max_concurrent_calls`
    (model calls at once). `timeout` is in seconds. Raises ValueError for a value that can be no limit.
    """

    max_steps: int | None = attrs.field(default=None, validator=_check_whole)
    total_steps: int | None = attrs.field(default=None, validator=_check_whole)
    token_budget: int | None = attrs.field(default=None, validator=_check_whole)
    input_budget: int | None = attrs.field(default=None, validator=_check_whole)
    output_budget: int | None = attrs.field(default=None, validator=_check_whole)
    cost_budget: float | None = attrs.field(default=None, validator=_check_number)
    timeout: float | None = attrs.field(default=None, validator=_check_number)
    max_tool_calls: int | None = attrs.field(default=None, validator=_check_whole)
    max_depth: int | None = attrs.field(default=None, validator=_check_whole)
    max_children: int | None = attrs.field(default=None, validator=_check_whole)
    max_total_children: int | None = attrs.field(default=None, validator=_check_whole)
    max_concurrent_calls: int | None = attrs.field(default=None, validator=_check_whole)
    sources: Mapping[str, str] = attrs.field(factory=dict[str, str])

    def said_by(self, source: str) -> Limits:
        """The same limits, each of them set by `source`: a file, a flag, a delegation."""
        return attrs.evolve(self, sources={name: source for name in LIMIT_NAMES if self.get(name) is not None})

    def or_else(self, defaults: Limits) -> Limits:
        """These limits, and where nothing is said, the default: a default never tightens what was chosen."""
        return _build({name: _first((self, defaults), name) for name in LIMIT_NAMES})

    def get(self, name: LimitName) -> float | None:
        value: float | None = getattr(self, name)
        return value

    def source(self, name: LimitName) -> str:
        return self.sources.get(name, "")

    def as_json(self) -> JsonObject:
        """The limits that are set, by name, and their `sources`."""
        found: dict[str, Any] = {name: value for name in LIMIT_NAMES if (value := self.get(name)) is not None}
        return {**found, "sources": dict(self.sources)} if self.sources else found

    @classmethod
    def from_json(cls, data: JsonObject) -> Limits:
        """Raises ValueError for a wrong value; names of a newer version are left out."""
        found: dict[str, Any] = {name: data[name] for name in LIMIT_NAMES if name in data}
        return cls(**found, sources=dict(data.get("sources", {})))

    def __str__(self) -> str:
        """What can end an actor, on one line: `90 steps, 200k tokens, 10 min`."""
        return ", ".join(
            amount_text(name, value)
            for name in LIMIT_NAMES
            if name in _REASONS and (value := self.get(name)) is not None
        )


ROOT_DEFAULTS = Limits(
    max_steps=90, token_budget=200_000, timeout=600, max_depth=3, max_children=8, max_total_children=64
).said_by("default")
CHILD_DEFAULTS = Limits(max_steps=90, max_children=8).said_by("default")


def tightest(*limits: Limits) -> Limits:
    """All limits at once: of each the smallest, with the source it came from; the first wins a tie."""
    return _build({name: _least(limits, name) for name in LIMIT_NAMES})


def per_actor(limits: Limits) -> Limits:
    """The part of a run's own limits that holds for each of its actors anew; the root's ledger enforces the rest."""
    return _build({name: _first((limits,), name) for name in ("max_steps", "max_children")})


def needs_price(*limits: Limits) -> bool:
    """Whether a cost budget is among these limits: it cannot be enforced for a model whose price is unknown."""
    return any(each.cost_budget is not None for each in limits)


def stop_reason(name: LimitName) -> StopReason | None:
    """What a report gives as the reason when this limit ends an actor; None where it only refuses."""
    return _REASONS.get(name)


def changed(limits: Limits, changes: Mapping[str, float | str], source: str) -> Limits:
    """Limits after `changes`: a number, or text such as `120` or `+20` (that much more than now).

    Raises UsageError for an unknown name, for no number, and for more of what has no limit.
    """
    values: dict[LimitName, tuple[float, str] | None] = {
        name: (value, limits.source(name)) for name in LIMIT_NAMES if (value := limits.get(name)) is not None
    }
    for key, change in changes.items():
        name = _BY_NAME.get(key)
        if name is None:
            raise UsageError(f"unknown limit '{key}'{did_you_mean(key, LIMIT_NAMES)}")
        text = str(change).strip()
        now = limits.get(name)
        if text.startswith("+") and now is None:
            raise UsageError(f"{name} has no limit that {text} could raise")
        step = _number(name, text)
        values[name] = (step + now if text.startswith("+") and now is not None else step, source)
    try:
        return _build(values)
    except ValueError as error:
        raise UsageError(str(error)) from error


def amount_text(name: LimitName, value: float) -> str:
    """An amount of what a limit counts, for a person: `6 steps`, `18.4k tokens`, `$0.02`, `10 min`."""
    match name:
        case "cost_budget":
            return f"${value:.4f}".rstrip("0").rstrip(".") if value < 0.01 else f"${value:.2f}"
        case "timeout":
            return f"{value / 60:g} min" if value >= 60 and value % 60 == 0 else f"{value:.4g} s"
        case "token_budget":
            return f"{count_text(value)} {'token' if value == 1 else 'tokens'}"
        case "input_budget" | "output_budget":
            return f"{count_text(value)} {name.removesuffix('_budget')} {'token' if value == 1 else 'tokens'}"
        case _:
            one, many = _NOUNS[name]
            return f"{value:g} {one if value == 1 else many}"


def count_text(value: float) -> str:
    """A count in three digits or so: 950, 18.4k, 200k, 1.2M."""
    if value < 1000:
        return f"{value:g}"
    if value < 999_950:
        return f"{value / 1000:.1f}".removesuffix(".0") + "k"
    return f"{value / 1_000_000:.1f}".removesuffix(".0") + "M"


def _number(name: LimitName, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{name} must be a number, not '{text}'") from None
    if name in ("cost_budget", "timeout"):
        return value
    if not value.is_integer():
        raise UsageError(f"{name} must be a whole number, not '{text}'")
    return int(value)


def _least(limits: tuple[Limits, ...], name: LimitName) -> tuple[float, str] | None:
    found = [(value, each.source(name)) for each in limits if (value := each.get(name)) is not None]
    return min(found, key=lambda entry: entry[0], default=None)


def _first(limits: tuple[Limits, ...], name: LimitName) -> tuple[float, str] | None:
    return next(((value, each.source(name)) for each in limits if (value := each.get(name)) is not None), None)


def _build(values: Mapping[LimitName, tuple[float, str] | None]) -> Limits:
    found: dict[str, Any] = {name: entry[0] for name, entry in values.items() if entry is not None}
    sources: dict[str, str] = {name: entry[1] for name, entry in values.items() if entry is not None and entry[1]}
    return Limits(**found, sources=sources)
