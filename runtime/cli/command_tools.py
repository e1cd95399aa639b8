"""`elenco tools`: the tools there are, or what one agent really gets and what becomes of its calls."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import attrs

from runtime.background import AWAIT, START
from runtime.cast import Cast
from runtime.definitions import Definition
from runtime.errors import DefinitionError, Fault
from runtime.outline import RunOptions, outline, refuse_faulty
from runtime.policy.decision import Ceiling, Decision, decide
from runtime.policy.rules import Permissions, RuleError, parse_permissions
from runtime.policy.subjects import AgentSubject, PathSubject, PathUse, PlainSubject, Subject
from runtime.tools import Tool
from runtime.tools.delegate import PREFIX, tool_name
from runtime.tools.registry import built_in

from .table import columns
from .visible import one_line

SAMPLE = "any/file"


@attrs.frozen
class Granted:
    """One tool of an agent, what becomes of a call that no pattern speaks of, and the rules with patterns on it."""

    name: str
    effects: str
    decision: Decision
    rules: tuple[str, ...]
    under: tuple[tuple[str, Decision], ...] = ()


def run(arguments: argparse.Namespace) -> int:
    """Print the list. Raises UsageError, DefinitionError."""
    options = RunOptions(
        agent=arguments.agent or "coordinator",
        task="-",
        workspace=Path(arguments.workspace or "."),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        mode=arguments.mode,
    )
    if arguments.agent is None:
        return _all(arguments.json)
    seen = outline(attrs.evolve(options, model=attrs.evolve(options.model, model="offline/extract")))
    refuse_faulty(seen.cast, seen.root, tools=[tool.name for tool in built_in()])
    granted = list(granted_to(seen.root, seen.cast, seen.rules, options))
    if arguments.json:
        for each in granted:
            print(json.dumps(_data(each)))
        return 0
    root = seen.root
    print(f"{root.name}   {one_line(root.path, 80)}   {len(granted)} tools, no other is offered to its model\n")
    print(columns([("TOOL", "EFFECTS", "A CALL", "BECAUSE"), *(row for each in granted for row in _rows(each))], 90))
    print("a child stays under every ask and deny of those above it; deny > ask > allow", file=sys.stderr)
    return 0


def granted_to(definition: Definition, cast: Cast, rules: Permissions, options: RunOptions) -> Iterator[Granted]:
    """What an agent's model is offered, in order, with the decision on each as the run's root and below others."""
    ceiling = Ceiling(options.mode, rules.ask, rules.deny, root=str(options.workspace))
    own = _own(definition) + rules
    parents = [
        member.definition
        for member in cast.members.values()
        if member.definition is not None and definition.name in member.definition.subagents
    ]
    for name, effects, subject in _subjects(definition):
        decision = decide(subject, own, ceiling, yes=options.yes)
        under = (
            (parent.name, decide(subject, own, ceiling.narrowed(_own(parent) + rules), yes=options.yes))
            for parent in parents
        )
        yield Granted(
            name,
            effects,
            decision,
            tuple(_with_patterns(own, subject)),
            tuple((parent, other) for parent, other in under if other.verdict != decision.verdict),
        )


def _subjects(definition: Definition) -> Iterator[tuple[str, str, Subject]]:
    known = {tool.name: tool for tool in built_in()}
    for name in dict.fromkeys(definition.tools):
        tool = known[name]
        yield name, tool.effects, _sample(tool)
    for prefix in (PREFIX, START):
        for child in definition.subagents:
            name = tool_name(prefix, child)
            yield name, "idempotent", AgentSubject(name, child)
    if definition.subagents:
        yield AWAIT, "none", PlainSubject(AWAIT, changes=False, private=True)
    if definition.tools or definition.subagents:
        yield "read_result", "none", PlainSubject("read_result", changes=False, private=True)


def _sample(tool: Tool) -> Subject:
    """A call as the rules see it, of a path that no pattern names."""
    uses = tool.uses(dict.fromkeys(tool.parameters.get("properties", {}), SAMPLE))
    if uses:
        return PathSubject(tool.name, tuple(PathUse(use, path) for path, use in uses), tool.mutates)
    if tool.subject is not None:
        return tool.subject(dict.fromkeys(tool.parameters.get("properties", {}), ""))
    return PlainSubject(tool.name, changes=tool.mutates, private=tool.private)


def _own(definition: Definition) -> Permissions:
    written = definition.permissions
    try:
        return parse_permissions(written.allow, written.ask, written.deny, origin=definition.path)
    except RuleError as error:
        raise DefinitionError([Fault(definition.path, 1, str(error))]) from None


def _with_patterns(rules: Permissions, subject: Subject) -> Iterator[str]:
    families = {subject.tool}
    if isinstance(subject, PathSubject):
        families |= {"write_file" if each.use in ("write", "delete") else "read_file" for each in subject.uses}
        if subject.tool == "list_files":
            families.discard("read_file")
    for effect in ("deny", "ask", "allow"):
        for rule in getattr(rules, effect):
            if rule.pattern is not None and any(fnmatchcase(name, rule.tool) for name in families):
                yield f"{effect}: {rule}   {rule.origin}".rstrip()


def _rows(each: Granted) -> Iterator[tuple[str, ...]]:
    decision = each.decision
    yield (each.name, each.effects, _verb(decision), one_line(f"{decision.rule} ({decision.by})", 90))
    for rule in each.rules:
        yield ("", "", "but", one_line(rule, 90))
    for parent, other in each.under:
        yield ("", "", _verb(other), one_line(f"under {parent}: {other.rule} ({other.by})", 90))


def _verb(decision: Decision) -> str:
    return {"allow": "runs", "ask": "asks", "deny": "is refused"}[decision.verdict]


def _all(as_json: bool) -> int:
    tools = built_in()
    if as_json:
        for tool in tools:
            print(json.dumps({"name": tool.name, "effects": tool.effects, "description": tool.description}))
        return 0
    first = [(tool.name, tool.effects, _verb(decide(_sample(tool), Permissions())), _headline(tool)) for tool in tools]
    more = [
        ("delegate_to_AGENT", "idempotent", "runs", "Give a declared subagent a task and wait for its report."),
        ("start_AGENT", "idempotent", "runs", "The same in the background; await_agent waits for it."),
        ("read_result", "none", "runs", "Read more of a result that was too long to show in full."),
    ]
    print(columns([("TOOL", "EFFECTS", "A CALL", "WHAT IT DOES"), *first, *more], last_width=90))
    print("what an agent really gets: elenco tools --agent NAME", file=sys.stderr)
    return 0


def _headline(tool: Tool) -> str:
    return one_line(tool.description.split("\n\n", 1)[0], 200)


def _data(each: Granted) -> dict[str, object]:
    return {
        "name": each.name,
        "effects": each.effects,
        "verdict": each.decision.verdict,
        "rule": each.decision.rule,
        "by": each.decision.by,
        "rules": list(each.rules),
        "under": {parent: other.verdict for parent, other in each.under},
    }
