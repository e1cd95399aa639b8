"""`elenco check --effective`: what counts in the end, value by value, and which file or default said so."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from runtime.cast import Cast, find
from runtime.config import Config
from runtime.definitions import Definition
from runtime.errors import DefinitionError, UsageError
from runtime.known import OFFLINE, ModelFlags, default_model
from runtime.limits.limits import CHILD_DEFAULTS, LIMIT_NAMES, ROOT_DEFAULTS, Limits, tightest
from runtime.outline import RunOptions, settings_of
from runtime.policy.rules import Permissions, RuleError, parse_permissions
from runtime.trust import counting

from .granted import granted_to, verb
from .table import columns
from .visible import one_line

ORDER = "flags > agent file > elenco.yaml > config.yaml > built in; of limits and denies the tightest"


def show_effective(workspace: Path) -> None:
    """Print the settings and every usable agent as a run would have them; what has a fault is left to the check."""
    try:
        here, user = settings_of(workspace)
    except DefinitionError:
        print("the settings have a fault: what counts in the end cannot be told")
        return
    here, cast, notice = counting(workspace, here, find(workspace))
    try:
        rules = _rules(here, user)
    except RuleError as error:
        print(f"a rule of the settings has a fault: {one_line(str(error), 200)}")
        return
    print(f"what counts   {ORDER}")
    print(_columns([*_settings(here, user, rules), *([("trust", notice, "")] if notice else [])]))
    for member in cast.members.values():
        if member.definition is not None:
            _agent(member.definition, cast, here, user, rules, workspace)


def _columns(rows: Iterable[tuple[str, str, str]]) -> str:
    """What it is, who said so, the value: the longest comes last."""
    return columns([(label, one_line(source, 60), value) for label, value, source in rows], 200)


def _settings(here: Config, user: Config, rules: Permissions) -> Iterator[tuple[str, str, str]]:
    chosen = next((each for each in (here, user) if each.model), None)
    try:
        model = default_model(ModelFlags(), chosen.model if chosen else None, os.environ)
    except UsageError as error:
        model = str(error)
    origin = chosen.path if chosen else "built in" if model == OFFLINE else "the first key that is set"
    yield "model", one_line(model, 80), origin
    for effect in ("deny", "ask", "allow"):
        for rule in getattr(rules, effect):
            yield effect, one_line(str(rule), 80), rule.origin
    for name in ("timeout", "answer"):
        found = next((each for each in (here, user) if getattr(each.approvals, name) is not None), None)
        if found is not None:
            yield f"approvals.{name}", one_line(str(getattr(found.approvals, name)), 80), found.path
    for key in dict.fromkeys([*here.loops, *user.loops]):
        source = here if key in here.loops else user
        yield f"loops.{key}", one_line(str(source.loops[key]), 80), source.path
    for name in dict.fromkeys([*here.providers, *user.providers]):
        source = here if name in here.providers else user
        yield "provider", one_line(name, 80), source.path
    for label, kept in (("hook", "hooks"), ("MCP server", "mcp_servers"), ("price", "models")):
        mine, theirs = getattr(here, kept), getattr(user, kept)
        for name in dict.fromkeys([*mine, *theirs]):
            yield label, one_line(str(name), 80), (here if name in mine else user).path


def _rules(here: Config, user: Config) -> Permissions:
    found = Permissions()
    for config in (here, user):
        written = config.permissions
        found += parse_permissions(written.allow, written.ask, written.deny, origin=config.path)
    return found


def _agent(definition: Definition, cast: Cast, here: Config, user: Config, rules: Permissions, workspace: Path) -> None:
    from runtime.hiring import limits_from, limits_of

    print(f"\n{definition.name}   {one_line(definition.path, 80)}")
    own = limits_of(definition)
    first = tightest(own, limits_from(here.limits, here.path), limits_from(user.limits, user.path))
    rows = [("model", one_line(definition.model, 80), definition.path)] if definition.model else []
    rows += _limits("limit", first.or_else(ROOT_DEFAULTS))
    below = own.or_else(CHILD_DEFAULTS)
    rows += [row for row in _limits("as a child", below) if ("limit", *row[1:]) not in rows]
    try:
        granted = list(granted_to(definition, cast, rules, RunOptions(task="-", workspace=workspace)))
    except (DefinitionError, KeyError):
        print(_columns(rows))
        print("its tools or rules have a fault")
        return
    for verdict in ("allow", "ask", "deny"):
        named = [each for each in granted if each.decision.verdict == verdict]
        if named:
            text = ", ".join(f"{each.name}{' …' if each.rules or each.under else ''}" for each in named)
            rows.append((verb(named[0].decision), text, f"elenco tools --agent {definition.name}"))
    print(_columns(rows))


def _limits(label: str, limits: Limits) -> list[tuple[str, str, str]]:
    return [
        (label, f"{name} {value:g}", limits.source(name))
        for name in LIMIT_NAMES
        if (value := limits.get(name)) is not None
    ]
