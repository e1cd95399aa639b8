"""Permission rules, and the one decision that is made from them: pure, and a table in the tests.

A rule is `TOOL` or `TOOL(PATTERN)`. What the pattern means depends on the tool: a glob relative to the workspace for
tools that name paths, words for `shell`, a host for `fetch_url`, SERVER/TOOL for `mcp`, a name for `agent`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import attrs

from runtime.errors import did_you_mean

from .globs import GlobError, compile_glob
from .subjects import AgentSubject, HostSubject, McpSubject, PathSubject, PlainSubject, ShellSubject, Subject

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Words: TypeAlias = tuple[str, ...]

FAMILIES = ("shell", "fetch_url", "mcp", "agent")
COMMAND_TOOLS = ("shell", "start_job")
"""The tools that run command lines; rules for `shell` speak of all of them."""
REACHES = "delegate_to_"
"""How the tools that reach an agent begin; its name follows."""
_RULE = re.compile(r"(?P<tool>[^()\s]+)\s*(?:\((?P<pattern>.*)\))?", re.DOTALL)
_TOOL = re.compile(r"[A-Za-z0-9_*-]+")


class RuleError(ValueError):
    """A rule that cannot be read; the message says what is wrong with it and what would be right."""


@attrs.frozen
class Rule:
    """One rule as parsed; `pattern` None means every call of the tool. `origin` names where it was written."""

    tool: str
    pattern: str | None = None
    origin: str = attrs.field(default="", eq=False)

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def words(self) -> Words:
        """A shell rule's words; a final `*` stands for zero or more further ones."""
        return ("*",) if self.pattern is None else tuple(shlex.split(self.pattern))


@attrs.frozen
class Permissions:
    """An agent's or a run's own rules."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def __add__(self, other: Permissions) -> Permissions:
        return Permissions(self.allow + other.allow, self.ask + other.ask, self.deny + other.deny)


def parse_rule(text: str, origin: str = "", known: Iterable[str] | None = None) -> Rule:
    """Read one rule. With `known` tool names, a name that is none of them is an error; so is an agent nobody reaches.

    Raises RuleError.
    """
    stripped = text.strip()
    if not stripped:
        raise RuleError("a rule is empty; write TOOL or TOOL(PATTERN)")
    found = _RULE.fullmatch(stripped)
    if found is None or not _TOOL.fullmatch(found["tool"]):
        raise RuleError(f"rule {text!r}: {_what_is_wrong(stripped)}")
    tool, pattern = found["tool"], found["pattern"]
    if known is not None and "*" not in tool:
        names = {*known, *FAMILIES}
        if tool not in names:
            raise RuleError(f"rule {text!r}: unknown tool {tool!r}{did_you_mean(tool, names)}")
    if pattern is not None:
        pattern = pattern.strip()
        if not pattern:
            raise RuleError(f"rule {text!r}: the pattern is empty; write {tool} alone to mean every call")
        _check_pattern(text, tool, pattern)
        if known is not None and tool == "agent" and not any(letter in pattern for letter in "*?["):
            agents = [name.removeprefix(REACHES) for name in known if name.startswith(REACHES)]
            if pattern not in agents:
                raise RuleError(f"rule {text!r}: unknown agent {pattern!r}{did_you_mean(pattern, agents)}")
    return Rule(tool, pattern, origin)


def parse_permissions(
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    *,
    origin: str = "",
    known: Iterable[str] | None = None,
) -> Permissions:
    """Read the three lists of one source. Raises RuleError at the first rule that cannot be read."""
    names = None if known is None else frozenset(known)
    return Permissions(*(tuple(parse_rule(text, origin, names) for text in texts) for texts in (allow, ask, deny)))


def _what_is_wrong(text: str) -> str:
    if text.startswith("("):
        return "a tool name is missing before '('"
    if "(" in text and not text.endswith(")"):
        return "text after the closing ')'" if ")" in text else "the closing ')' is missing"
    if "(" not in text and ")" in text:
        return "a ')' without '('"
    if " " in text and "(" not in text:
        return "a tool name is one word; write TOOL(PATTERN)"
    return "a tool name has only letters, digits, _ - and *"


def _check_pattern(text: str, tool: str, pattern: str) -> None:
    match tool:
        case _ if tool in COMMAND_TOOLS:
            try:
                words = shlex.split(pattern)
            except ValueError as error:
                raise RuleError(f"rule {text!r}: {str(error).lower()}") from error
            if not words:
                raise RuleError(f"rule {text!r}: the pattern has no words")
        case "fetch_url":
            if re.search(r"[/\s@]", pattern):
                raise RuleError(f"rule {text!r}: name a host such as example.com or *.example.com, no URL")
        case "mcp":
            if pattern.count("/") > 1:
                raise RuleError(f"rule {text!r}: write mcp(SERVER/TOOL)")
        case "agent":
            pass
        case _:
            try:
                compile_glob(pattern)
            except GlobError as error:
                raise RuleError(f"rule {text!r}: {error}") from error


def applies(rule: Rule, subject: Subject, effect: Effect) -> bool:
    """Whether a rule speaks about a call. An allow rule must cover all of it, a deny or ask rule only touch it.

    A deny or ask rule on `write_file` speaks of every tool that writes such a path, one on `read_file` of every tool
    that reads it: who forbids a file does not mean one way to it.
    """
    strict = effect != "allow"
    named = rule.tool == subject.tool or ("*" in rule.tool and fnmatchcase(subject.tool, rule.tool))
    match subject:
        case PathSubject():
            return _applies_to_paths(rule, subject, named, strict)
        case ShellSubject():
            return speaks_of_commands(rule, subject.tool) and rule.pattern in (None, "*")
        case HostSubject():
            return named and (rule.pattern is None or _host_matches(rule.pattern, subject.host))
        case McpSubject():
            if rule.tool == "mcp":
                return rule.pattern is None or _mcp_matches(rule.pattern, subject)
            return named and (rule.pattern in (None, "*") or strict)
        case AgentSubject():
            if rule.tool == "agent":
                return rule.pattern is None or fnmatchcase(subject.agent, rule.pattern)
            return named and (rule.pattern in (None, "*") or strict)
        case PlainSubject():
            return named and (rule.pattern in (None, "*") or strict)


def speaks_of_commands(rule: Rule, tool: str = "shell") -> bool:
    """Whether a rule's words are for command lines that `tool` runs: a rule for it, for `shell`, or for every tool."""
    if rule.tool in ("shell", tool):
        return True
    wild = rule.pattern is None and "*" in rule.tool
    return wild and (fnmatchcase(tool, rule.tool) or fnmatchcase("shell", rule.tool))


def _applies_to_paths(rule: Rule, subject: PathSubject, named: bool, strict: bool) -> bool:
    uses = subject.uses
    if not named and strict:
        wanted = {"write_file": ("write", "delete"), "read_file": ("read",)}.get(rule.tool, ())
        uses = tuple(each for each in uses if each.use in wanted)
        named = bool(uses)
    if not named:
        return False
    if rule.pattern in (None, "*", "**"):
        return True
    matches = compile_glob(rule.pattern or "")
    if not strict:
        return bool(uses) and all(matches(each.path) for each in uses)
    return any(matches(path) for each in uses for path in _with_parents(each.path))


def _with_parents(path: str) -> Iterable[str]:
    """A path and the folders it lies in: a rule that forbids a folder forbids what it holds."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def names_host(rule: Rule, host: str) -> bool:
    """Whether a rule for hosts names this one in full, without a wildcard."""
    pattern = rule.pattern
    return (
        rule.tool == "fetch_url"
        and pattern is not None
        and not set(pattern) & set("*?[")
        and _host_matches(pattern, host)
    )


def _host_matches(pattern: str, host: str) -> bool:
    return fnmatchcase(host.lower().rstrip("."), pattern.lower().rstrip("."))


def _mcp_matches(pattern: str, subject: McpSubject) -> bool:
    server, slash, name = pattern.partition("/")
    return fnmatchcase(subject.server, server) and (not slash or fnmatchcase(subject.name, name))
