"""A run without files, sockets or threads: agents, tools and models given as values become a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from runtime.app import Plan
from runtime.cast import Cast, Member
from runtime.config import Humans
from runtime.definitions import Definition
from runtime.hiring import limits_of
from runtime.hooks.settings import Hook
from runtime.known import ModelFlags
from runtime.limits.limits import ROOT_DEFAULTS, tightest
from runtime.limits.price import Price
from runtime.model import Provider
from runtime.models import Models
from runtime.outline import RunOptions
from runtime.policy.paths import Workspace
from runtime.policy.rules import parse_permissions
from runtime.prices import ModelInfo
from runtime.tools import Tool


def staged(
    options: RunOptions,
    agents: Iterable[Definition],
    *,
    model: str,
    providers: Mapping[str, Provider],
    price: Price | None = None,
    window: int | None = None,
    tools: Iterable[Tool] = (),
    environment: Mapping[str, str] | None = None,
    humans: Humans | None = None,
    hooks: Iterable[Hook] = (),
) -> Plan:
    """The plan of a run whose root is the agent the options name; `price` and `window` are those of every model.

    Nothing but the workspace's folder is looked at. Raises UsageError for a model nobody gave, PathError.
    """
    members = {each.name: Member(each.name, Path(f"{each.name}.md"), each.path, "workspace", each) for each in agents}
    cast = Cast(members)
    root = cast.get(options.agent)
    names = {model, *(each.model for each in cast.closure(root.name) if each.model)}
    prices = {name: ModelInfo(window=window, price=price) for name in names}
    return Plan(
        options=options,
        cast=cast,
        root=root,
        limits=tightest(options.limits, limits_of(root)).or_else(ROOT_DEFAULTS),
        model=model,
        models=Models(ModelFlags(model), None, prices, environment or {}, given=providers),
        rules=parse_permissions(options.allow, options.ask, options.deny, origin="flag"),
        tools={tool.name: tool for tool in tools},
        workspace=Workspace(options.workspace),
        humans=humans or Humans(),
        hooks=tuple(hooks),
    )
