"""`elenco debug agent`: what an agent file of any style is taken for, and what becomes of calls under its rules."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

import attrs

from runtime.context.prompt import render
from runtime.definitions import KEYS, Definition, OutputRules, Style
from runtime.definitions import Permissions as Written
from runtime.definitions import read as read_native
from runtime.errors import DefinitionError, Fault, UsageError, did_you_mean
from runtime.foreign.models import of_claude
from runtime.foreign.names import SHORT
from runtime.foreign.read import STYLES, read_foreign
from runtime.frontmatter import Fields, Source, parse, split
from runtime.handwritten import read_bytes
from runtime.known import TOOL_NAMES
from runtime.policy.decision import Ceiling, decide
from runtime.policy.rules import FAMILIES, Permissions, Rule, RuleError, parse_permissions
from runtime.policy.shell import judge
from runtime.policy.subjects import AgentSubject, HostSubject, PathSubject, PathUse, PlainSubject, ShellSubject, Subject
from runtime.vetting import ring_of, vet_agent

USES: Mapping[str, str] = {
    "read_file": "read",
    "search_text": "read",
    "list_files": "list",
    "find_files": "list",
    "write_file": "write",
    "edit_file": "write",
}


def agent(lines: Iterable[str], out: TextIO) -> int:
    """Answer each case line with one line; 0, or 2 at the first line that is no case."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            answer = _answer(case)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"error: line {number} is no agent case: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
        out.write(json.dumps(answer, default=str) + "\n")
        out.flush()
    return 0


@attrs.frozen
class Surroundings:
    """What exists while a file is read."""

    tools: tuple[str, ...]
    skills: tuple[str, ...] | None
    mcps: tuple[str, ...] | None
    providers: tuple[str, ...] | None
    variables: Mapping[str, str]

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Surroundings:
        def names(key: str) -> tuple[str, ...] | None:
            return tuple(str(name) for name in environment[key]) if key in environment else None

        variables = {str(key): str(value) for key, value in environment.get("template_variables", {}).items()}
        tools = names("tools")
        return cls(
            tools if tools is not None else TOOL_NAMES, names("skills"), names("mcps"), names("providers"), variables
        )

    def check_model(self, name: str) -> None:
        """Raises UsageError for a model that cannot be meant."""
        provider, slash, model = name.partition("/")
        if not slash or not provider or not model:
            raise UsageError(f"'{name}' names no model: write PROVIDER/MODEL")
        if self.providers is not None and provider not in self.providers:
            raise UsageError(f"unknown provider '{provider}'{did_you_mean(provider, self.providers)}")


@attrs.frozen
class Read:
    """One file as it was taken; `definition` is None where it was refused."""

    definition: Definition | None
    fields: Mapping[str, Any]
    problems: tuple[Fault, ...]


def _answer(case: Mapping[str, Any]) -> dict[str, Any]:
    path, style = Path(case["path"]), case["style"]
    if style != "native" and style not in STYLES:
        raise ValueError(f"unknown style {style!r}; there is: native, {', '.join(STYLES)}")
    around = Surroundings.of(case.get("environment") or {})
    read = _read(path, style, around)
    problems = [{"line": fault.line, "text": fault.text} for fault in read.problems]
    found: dict[str, Any] = {"path": case["path"], "result": "reject", "name": None, "description": None}
    definition = read.definition
    if definition is None:
        return {**found, "fields": {}, "granted": [], "body": None, "rendered": None, "problems": problems}
    template = definition.style == "native"
    found |= {
        "result": "load_with_warning" if problems else "load",
        "name": definition.name,
        "description": read.fields.get("description", definition.description),
        "fields": {key: value for key, value in read.fields.items() if key not in ("name", "description")},
        "granted": [] if definition.disabled else list(definition.tools),
        "body": definition.prompt,
        "rendered": render(definition.prompt, around.variables) if template else definition.prompt,
    }
    if case.get("ask"):
        found["decisions"] = [_decided(definition, ask, path, style, around) for ask in case["ask"]]
    return {**found, "problems": problems}


def _read(path: Path, style: Style, around: Surroundings, *, alone: bool = False) -> Read:
    try:
        content = read_bytes(path).decode()
    except UnicodeDecodeError:
        return Read(None, {}, (Fault(str(path), 1, "not UTF-8 text; save the file as UTF-8"),))
    except OSError as error:
        return Read(None, {}, (Fault(str(path), 1, f"cannot be read: {error.strerror}"),))
    try:
        if style != "native":
            foreign = read_foreign(content, str(path), style, path.stem, around.tools)
            warnings = (*foreign.definition.warnings, *_model_of(foreign.definition, around))
            return Read(foreign.definition, foreign.fields, warnings)
        definition = read_native(content, str(path))
    except DefinitionError as error:
        return Read(None, {}, error.faults)
    if alone:
        return Read(definition, {}, ())
    return _vetted(definition, content, path, around)


def _model_of(definition: Definition, around: Surroundings) -> tuple[Fault, ...]:
    """A warning where another runtime's file names a model that nobody here can be asked for."""
    model = definition.model
    if model is None or (definition.style == "claude" and (model == "inherit" or of_claude(model) is not None)):
        return ()
    try:
        around.check_model(model)
    except UsageError as error:
        return (Fault(definition.path, 1, f"{error}; the run's model answers", warning=True),)
    return ()


def _vetted(definition: Definition, content: str, path: Path, around: Surroundings) -> Read:
    near = _neighbours(path, around)
    faults = vet_agent(
        definition,
        content,
        agents=(*near, definition.name),
        tools=around.tools,
        servers=around.mcps,
        skills=around.skills,
        strict=True,
        check_model=around.check_model,
    )
    warnings = [fault for fault in definition.warnings if "no key 'tools'" not in fault.text]
    first = near.get(definition.name)
    if first is not None and first[0] != path and first[0].name < path.name:
        faults.append(
            Fault(str(path), 1, f"not used: {first[0].name} has the name '{definition.name}' and comes first")
        )
    elif first is not None and first[0] != path:
        other = f"{first[0].name} has the name '{definition.name}' as well and is not used"
        warnings.append(Fault(str(path), 1, other, warning=True))
    below = {name: each.subagents for name, (_, each) in near.items()}
    ring = ring_of(definition.name, {**below, definition.name: definition.subagents})
    if ring:
        text = f"its subagents lead back to it: {' > '.join(ring)}; max_depth ends that"
        warnings.append(Fault(str(path), 1, text, warning=True))
    if any(not fault.warning for fault in faults):
        return Read(None, {}, tuple(faults))
    return Read(definition, _fields(definition, content), (*faults, *warnings))


def _neighbours(path: Path, around: Surroundings) -> dict[str, tuple[Path, Definition]]:
    """The other files of the folder by the name they give, the first wins."""
    found: dict[str, tuple[Path, Definition]] = {}
    for other in sorted(path.parent.glob("*.md")):
        if other != path:
            definition = _read(other, "native", around, alone=True).definition
            if definition is not None:
                found.setdefault(definition.name, (other, definition))
    return found


def _fields(definition: Definition, content: str) -> dict[str, Any]:
    """The fields the file sets, as they count."""
    cut = split(content)
    root = parse(Source(definition.path, cut.header or "", cut.header_line))
    assert root is not None
    written = Fields[Any](root, KEYS, [])
    values: dict[str, Any] = {**attrs.asdict(definition, recurse=False), **attrs.asdict(definition.caps)}
    found = {key: values[key] for key in KEYS if key in written and key not in ("name", "description")}
    for key, value in found.items():
        match value:
            case tuple():
                found[key] = list(cast("Iterable[Any]", value))
            case Written() | OutputRules():
                found[key] = json.loads(json.dumps(attrs.asdict(value, recurse=False)))
            case _:
                pass
    place = written.place("description")
    return {**found, "description": str(place.plain()).strip() if place is not None else definition.description}


def _decided(
    definition: Definition, ask: Mapping[str, Any], path: Path, style: Style, around: Surroundings
) -> dict[str, Any]:
    tool, argument = str(ask["tool"]), str(ask.get("arg", ""))
    found: dict[str, Any] = {"tool": tool, "arg": argument}
    subject = _subject(tool, argument, definition)
    ceiling = Ceiling()
    if ask.get("parent"):
        found["parent"] = ask["parent"]
        parent = _parent(str(ask["parent"]), path, style, around)
        if parent is None:
            return {**found, "decision": "deny", "why": f"there is no usable agent {ask['parent']}"}
        ceiling = ceiling.narrowed(_rules(parent))
    if definition.disabled:
        return {**found, "decision": "deny", "why": "the agent is switched off"}
    names = {tool, subject.tool, *(short for short, name in SHORT.items() if name == subject.tool)}
    if style != "native" and names.isdisjoint(definition.tools):
        return {**found, "decision": "deny", "why": f"the agent is not given {tool}"}
    decision = decide(subject, _rules(definition), ceiling, shell=judge)
    return {**found, "decision": decision.verdict, "why": f"{decision.rule} ({decision.by})"}


def _parent(name: str, path: Path, style: Style, around: Surroundings) -> Definition | None:
    for candidate in (Path(name), path.parent / name, path.parent / f"{name}.md"):
        if candidate.is_file():
            return _read(candidate, style, around, alone=True).definition
    return next((each for known, (_, each) in _neighbours(path, around).items() if known == name), None)


def _rules(definition: Definition) -> Permissions:
    written = definition.permissions
    try:
        rules = parse_permissions(written.allow, written.ask, written.deny)
    except RuleError:
        return Permissions()
    return Permissions(*(tuple(map(_ours, each)) for each in (rules.allow, rules.ask, rules.deny)))


def _ours(rule: Rule) -> Rule:
    return attrs.evolve(rule, tool=_name(rule.tool))


def _name(tool: str) -> str:
    return tool if tool in FAMILIES else SHORT.get(tool, "agent" if tool == "task" else tool)


def _subject(tool: str, argument: str, definition: Definition) -> Subject:
    name = _name(tool)
    match name:
        case "shell":
            return ShellSubject(argument)
        case "fetch_url":
            return HostSubject(re.sub(r"^[a-z]+://", "", argument).partition("/")[0])
        case "agent":
            return AgentSubject("agent", argument, declared=argument in definition.subagents)
        case _ if name in USES:
            use = cast("Any", USES[name])
            return PathSubject(name, (PathUse(use, argument.removeprefix("./") or "."),), changes=use == "write")
        case _:
            return PlainSubject(name)
