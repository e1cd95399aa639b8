"""Faults of a file that its syntax does not show, each with its place: names nobody knows, rules nobody can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from .config import KEYS as CONFIG_KEYS
from .config import Config
from .definitions import KEYS, VARIABLES, Definition, OutputRules, Permissions, unknown_names
from .errors import DefinitionError, Fault, UsageError, did_you_mean
from .frontmatter import Fields, Source, Value, Wrong, parse, split
from .handwritten import read_text
from .nearness import misspelt
from .policy.rules import REACHES, RuleError, parse_rule

if TYPE_CHECKING:
    from .hooks.settings import Hook
    from .prices import ModelInfo

FITTED = ("read_result", "await_agent", "use_skill")
"""Tools that no file names: an actor has them where it needs them."""
_NO_HINTS: Mapping[str, str] = {}
_BRACES = re.compile(r"\{\s*([A-Za-z_-]+)\s*\}")


def vet_agent(
    definition: Definition,
    content: str,
    *,
    agents: Iterable[str],
    tools: Iterable[str] | None = None,
    servers: Iterable[str] | None = None,
    skills: Iterable[str] | None = None,
    strict: bool = False,
    check_model: Callable[[str], None] | None = None,
    workspace: Path | None = None,
    hints: Mapping[str, str] = _NO_HINTS,
) -> list[Fault]:
    """What is wrong with a readable agent file, in the order of its lines; `content` is the file's text.

    `check_model` raises UsageError for a model that cannot be meant. Names of tools, MCP servers and skills are looked
    at where `tools`, `servers` and `skills` say which there are; with `strict`, so are the tools that rules begin with.
    A file of another runtime has told its faults when it was read.
    A check of the output is looked for in `workspace`, then among what is installed. `hints` tell of names that are no
    agent's.
    """
    if definition.style != "native":
        return []
    skills = None if definition.skills == "all" else skills
    given = {"subagents": agents, "talks_to": agents, "tools": tools, "mcps": servers, "skills": skills}
    known = {key: list(names) for key, names in given.items() if names is not None}
    content = content.removeprefix("\ufeff").replace("\r\n", "\n")
    cut = split(content)
    fields = _fields(Source(definition.path, cut.header or "", cut.header_line), KEYS)
    faults = unknown_names(definition, content, hints, **known)
    names = rule_names(known["tools"], known["subagents"]) if strict and tools is not None else None
    faults += _rules(fields.place("permissions"), names, known.get("mcps", ()))
    faults += _model(fields.place("model"), check_model)
    faults += _matchers(fields.place("hooks"), definition.hooks, names, known.get("mcps", ()))
    if definition.loops:
        faults += _loops(fields.place("loops"), definition.loops)
    if definition.output is not None and (output := fields.place("output")) is not None:
        faults += _output(output, definition.output, workspace)
    return sorted(faults, key=lambda fault: (fault.line, fault.column))


def together(first: Iterable[Fault], further: Iterable[Fault]) -> list[Fault]:
    """Faults of one file in the order of its lines; where two are at one place, the first one tells enough."""
    found: dict[tuple[int, int], list[Fault]] = {}
    for fault in first:
        found.setdefault((fault.line, fault.column), []).append(fault)
    for fault in further:
        found.setdefault((fault.line, fault.column), [fault])
    return [fault for place in sorted(found) for fault in found[place]]


def near_placeholders(definition: Definition, content: str) -> list[Fault]:
    """Warnings for what stands in braces and is nearly a name that would be filled in; other braces are text."""
    if definition.style != "native":
        return []
    cut = split(content)
    found: dict[str, Fault] = {}
    for number, line in enumerate(cut.body.split("\n"), start=cut.body_line):
        for braces in _BRACES.finditer(line):
            meant = [f"'{{{name}}}'" for name in misspelt(braces[1], VARIABLES)]
            if braces[0].strip("{}") not in VARIABLES and meant:
                text = f"'{braces[0]}' stays as it is; did you mean {' or '.join(meant)}?"
                fault = Fault(definition.path, number, text, braces.start() + 1, line, len(braces[0]), warning=True)
                found.setdefault(braces[0], fault)
    return list(found.values())


def vet_config(
    config: Config,
    content: str,
    check_model: Callable[[str], None] | None = None,
    names: Iterable[str] | None = None,
    servers: Iterable[str] = (),
) -> list[Fault]:
    """What is wrong with a readable settings file, in the order of its lines.

    With `names`, those that rules may begin with, any other is a fault, but for the tools of MCP `servers`.
    """
    fields = _fields(Source(config.path, content.removeprefix("\ufeff").replace("\r\n", "\n")), CONFIG_KEYS)
    faults = _rules(fields.place("permissions"), names, servers) + _model(fields.place("model"), check_model)
    faults += _matchers(fields.place("hooks"), config.hooks, names, servers)
    inside = {key.plain(): value for key, value in _pairs(fields.place("context"))}
    faults += _model(inside.get("summary_model"), check_model) + _prices(fields.place("models"))
    if config.loops:
        faults += _loops(fields.place("loops"), config.loops)
    return sorted(faults, key=lambda fault: (fault.line, fault.column))


def _fields(source: Source, keys: Iterable[str]) -> Fields[Any]:
    root = parse(source)
    return Fields[Any](root if root is not None else _nothing(source), keys, [])


def _nothing(source: Source) -> Value:
    empty = parse(Source(source.path, "{}"))
    assert empty is not None
    return empty


def ring_of(name: str, subagents: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """How an agent's subagents lead back to it, the shortest way, beginning and ending with it; () if they do not."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    for way in ways:
        for child in subagents.get(way[-1], ()):
            if child == name:
                return (*way, name)
            if child not in seen:
                seen.add(child)
                ways.append((*way, child))
    return ()


def rule_names(tools: Iterable[str], agents: Iterable[str]) -> frozenset[str]:
    """The names a rule may begin with: tools, those that no file names, and the ways to reach agents."""
    ways = (f"{prefix}{agent}" for agent in agents for prefix in (REACHES, "start_", "message_"))
    return frozenset((*tools, *FITTED, *ways))


def _rules(permissions: Value | None, names: Iterable[str] | None = None, servers: Iterable[str] = ()) -> list[Fault]:
    served = tuple(f"{server}_" for server in servers)
    found: list[Fault] = []
    for _, rules in _pairs(permissions):
        for rule in _entries(rules):
            written = rule.plain()
            if isinstance(written, str):
                try:
                    parse_rule(written, known=None if written.lstrip().startswith(served) else names)
                except RuleError as error:
                    found.append(rule.fault(str(error)))
    return found


def _matchers(
    place: Value | None, hooks: Iterable[Hook], names: Iterable[str] | None, servers: Iterable[str]
) -> list[Fault]:
    """Matchers that fit nothing and are nearly a name: such a hook would never run."""
    served = tuple(f"{server}_" for server in servers)
    if place is None or names is None:
        return []
    tools = frozenset(names)
    agents = frozenset(name.removeprefix(REACHES) for name in tools if name.startswith(REACHES))
    found: list[Fault] = []
    for hook in hooks:
        known, what = (tools, "tool") if hook.moment.subject == "tool" else (agents, "agent")
        for name in hook.matcher.patterns:
            if {*name} & {"*", "?"} or name in known or name.startswith(served):
                continue
            if near := did_you_mean(name, known):
                at = next((each for each in _below(place) if name in str(each.plain())), place)
                found.append(at.fault(f"hook at {hook.written}: unknown {what} '{name}'{near}"))
    return found


def _below(value: Value) -> Iterator[Value]:
    """The single values inside, in their order."""
    plain = value.plain()
    if isinstance(plain, dict):
        for _, inner in value.pairs():
            yield from _below(inner)
    elif isinstance(plain, list):
        for inner in value.items():
            yield from _below(inner)
    else:
        yield value


def _model(place: Value | None, check: Callable[[str], None] | None) -> list[Fault]:
    if place is None or check is None:
        return []
    try:
        check(str(place.plain()).strip())
    except UsageError as error:
        return [place.fault(str(error).replace(f" in {place.source.path}", "", 1))]
    return []


def doubtful_models(source: Source, keys: Iterable[str], known: Mapping[str, ModelInfo]) -> list[Fault]:
    """Warnings for a model that is in no table and named nearly like one that is; `known` are the person's own."""
    place = _fields(source, keys).place("model")
    if place is None:
        return []
    from .prices import doubt

    told = doubt(str(place.plain()).strip(), known)
    return [] if not told else [attrs.evolve(place.fault(told), warning=True)]


def refuse_settings(config: Config, path: Path, names: Iterable[str] | None = None) -> None:
    """Look at what the settings in a file say beyond their syntax. Raises DefinitionError with every fault's place."""
    if not (config.models or config.loops or config.hooks or config.permissions != Permissions()):
        return  # Nothing in it that could be wrong: its YAML need not be read a second time.
    if faults := vet_config(config, read_text(path), names=names):
        raise DefinitionError(faults)


def _loops(place: Value | None, loops: Mapping[str, Any] | str) -> list[Fault]:
    from .limits.loops import guard_settings

    try:
        guard_settings(loops)
    except ValueError as error:
        return [place.fault(str(error))] if place is not None else []
    return []


def _output(place: Value, rules: OutputRules, workspace: Path | None) -> list[Fault]:
    inside = {str(key.plain()): value for key, value in _pairs(place)}
    found: list[Fault] = []
    if rules.schema is not None:
        from .output.place import located
        from .output.schema import faults_of_schema

        top = inside.get("schema", place)
        found += located(faults_of_schema(rules.schema), top, place.fault(""))
    if rules.check is not None:
        from .output.python import fault_of_check

        if why := fault_of_check(rules.check, workspace):
            found.append(inside.get("check", place).fault(why))
    return found


def _prices(place: Value | None) -> list[Fault]:
    from .prices import models_from

    found: list[Fault] = []
    for name, entry in _pairs(place):
        try:
            models_from({str(name.plain()): entry.plain()}, "")
        except UsageError as error:
            found += [name.fault(line) for line in str(error).split("\n")]
    return found


def _pairs(value: Value | None) -> list[tuple[Value, Value]]:
    try:
        return value.pairs() if value is not None else []
    except Wrong:
        return []


def _entries(value: Value) -> Iterator[Value]:
    try:
        yield from value.items()
    except Wrong:
        yield value
