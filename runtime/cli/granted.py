"""What one agent really gets: each tool with the decision on its calls, as the run's root and below others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import attrs

from runtime.background import AWAIT, START
from runtime.cast import Cast
from runtime.definitions import Definition
from runtime.errors import DefinitionError, Fault
from runtime.outline import RunOptions
from runtime.peers import TELLS
from runtime.permits import judge_shell
from runtime.plugins import plugins
from runtime.policy.decision import Ceiling, Decision, decide
from runtime.policy.rules import Permissions, RuleError, parse_permissions
from runtime.policy.subjects import (
    AgentSubject,
    McpSubject,
    PathSubject,
    PathUse,
    PlainSubject,
    ShellSubject,
    Subject,
)
from runtime.tools import Tool, answered_for
from runtime.tools.delegate import PREFIX, tool_name
from runtime.tools.registry import built_in
from runtime.tools.skill import USE_SKILL

from .visible import one_line

SAMPLE = "any/file"
SAMPLE_COMMAND = "any-command"


@attrs.frozen
class Granted:
    """One tool of an agent, what becomes of a call that no pattern speaks of, and the rules with patterns on it."""

    name: str
    effects: str
    decision: Decision
    rules: tuple[str, ...]
    under: tuple[tuple[str, Decision], ...] = ()


def granted_to(
    definition: Definition, cast: Cast, rules: Permissions, options: RunOptions, above: Sequence[Definition] = ()
) -> Iterator[Granted]:
    """What an agent's model is offered, in order, with the decision on each as the run's root and below others.

    `above` are those the agent works for, the run's root first: then it is decided below them alone.
    """
    ceiling = Ceiling(options.mode, rules.ask, rules.deny, root=str(options.workspace))
    for each in above:
        ceiling = ceiling.narrowed(_own(each) + rules)
    own = _own(definition) + rules
    parents = [
        member.definition
        for member in cast.members.values()
        if member.definition is not None and definition.name in member.definition.subagents and not above
    ]
    for name, effects, subject in _subjects(definition):
        decision = decide(subject, own, ceiling, yes=options.yes, shell=judge_shell)
        under = (
            (
                parent.name,
                decide(subject, own, ceiling.narrowed(_own(parent) + rules), yes=options.yes, shell=judge_shell),
            )
            for parent in parents
        )
        yield Granted(
            name,
            effects,
            decision,
            tuple(_with_patterns(own, ceiling, subject)),
            tuple((parent, other) for parent, other in under if other.verdict != decision.verdict),
        )


def below(root: Definition, cast: Cast) -> Iterator[tuple[Definition, ...]]:
    """Everyone the root may set to work, each once, by the shortest way from the root to it."""
    seen = {root.name}
    waiting: list[list[Definition]] = [[root]]
    while waiting:
        chain = waiting.pop(0)
        if len(chain) > 1:
            yield tuple(chain)
        for name in chain[-1].subagents:
            member = cast.members.get(name)
            if member is not None and member.definition is not None and name not in seen:
                seen.add(name)
                waiting.append([*chain, member.definition])


def _subjects(definition: Definition) -> Iterator[tuple[str, str, Subject]]:
    known = {tool.name: tool for tool in (*built_in(), *map(answered_for, plugins().tools))}
    for name in dict.fromkeys(definition.tools):
        tool = known[name]
        yield name, tool.effects, sample(tool)
    for server in dict.fromkeys(definition.mcps):
        yield f"{server}_*", "once", McpSubject(f"{server}_*", server, "*")
    if definition.skills:
        yield USE_SKILL, "none", PlainSubject(USE_SKILL, changes=False, private=True)
    for prefix in (PREFIX, START):
        for child in definition.subagents:
            name = tool_name(prefix, child)
            yield name, "idempotent", AgentSubject(name, child)
    if definition.subagents:
        yield AWAIT, "none", PlainSubject(AWAIT, changes=False, private=True)
    for peer in definition.talks_to:
        name = tool_name(TELLS, peer)
        yield name, "idempotent", AgentSubject(name, peer)
    if definition.tools or definition.mcps or definition.subagents or definition.talks_to or definition.skills:
        yield "read_result", "none", PlainSubject("read_result", changes=False, private=True)


def sample(tool: Tool) -> Subject:
    """A call as the rules see it, of a path that no pattern names."""
    uses = tool.uses(dict.fromkeys(tool.parameters.get("properties", {}), SAMPLE))
    if uses:
        return PathSubject(tool.name, tuple(PathUse(use, path) for path, use in uses), tool.mutates)
    if tool.subject is not None:
        subject = tool.subject(dict.fromkeys(tool.parameters.get("properties", {}), ""))
        if isinstance(subject, ShellSubject):
            return ShellSubject(SAMPLE_COMMAND, tool.name)
        return subject
    return PlainSubject(tool.name, changes=tool.mutates, private=tool.private)


def _own(definition: Definition) -> Permissions:
    written = definition.permissions
    try:
        return parse_permissions(written.allow, written.ask, written.deny, origin=definition.path)
    except RuleError as error:
        raise DefinitionError([Fault(definition.path, 1, str(error))]) from None


def _with_patterns(rules: Permissions, ceiling: Ceiling, subject: Subject) -> Iterator[str]:
    families = {subject.tool}
    if isinstance(subject, ShellSubject):
        families.add("shell")
    if isinstance(subject, PathSubject):
        families |= {"write_file" if each.use in ("write", "delete") else "read_file" for each in subject.uses}
        if subject.tool == "list_files":
            families.discard("read_file")
    layers = {
        "deny": (*rules.deny, *ceiling.deny),
        "ask": (*rules.ask, *ceiling.ask),
        "allow": rules.allow,
    }
    shown: dict[str, None] = {}
    for effect, found in layers.items():
        for rule in found:
            if rule.pattern is not None and (
                any(fnmatchcase(name, rule.tool) for name in families) or _of_server(rule.tool, rule.pattern, subject)
            ):
                shown[f"{effect}: {rule}   {rule.origin}".rstrip()] = None
    yield from shown


def _of_server(tool: str, pattern: str, subject: Subject) -> bool:
    """Whether a rule speaks of tools of the server that a row stands for."""
    return tool == "mcp" and isinstance(subject, McpSubject) and fnmatchcase(subject.server, pattern.partition("/")[0])


def rows_of(each: Granted) -> Iterator[tuple[str, ...]]:
    decision = each.decision
    yield (each.name, each.effects, verb(decision), one_line(f"{decision.rule} ({decision.by})", 90))
    for rule in each.rules:
        yield ("", "", "but", one_line(rule, 90))
    for parent, other in each.under:
        yield ("", "", verb(other), one_line(f"under {parent}: {other.rule} ({other.by})", 90))


def verb(decision: Decision) -> str:
    return {"allow": "runs", "ask": "asks", "deny": "is refused"}[decision.verdict]


def data_of(each: Granted) -> dict[str, object]:
    return {
        "name": each.name,
        "effects": each.effects,
        "verdict": each.decision.verdict,
        "rule": each.decision.rule,
        "by": each.decision.by,
        "rules": list(each.rules),
        "under": {parent: other.verdict for parent, other in each.under},
    }
