"""Agent files of Claude Code (`.claude/agents/*.md`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from runtime.definitions import Caps, Definition, Permissions
from runtime.errors import Fault, did_you_mean
from runtime.frontmatter import Value, Wrong
from runtime.hooks.settings import Hook, hooks

from .names import CLAUDE, given, taken
from .rules import forbidding, name_and_pattern
from .taking import Taking, usual

KEYS = (
    *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills"),
    *("mcpServers", "hooks", "memory", "background", "effort", "isolation", "color", "initialPrompt"),
)
RIGHTS = frozenset({"tools", "disallowedTools", "permissionMode", "maxTurns"})
EFFORTS: Mapping[str, Literal["low", "medium", "high"]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
NOT_HERE = {
    "memory": "there is no memory of an agent's own here",
    "background": "whoever calls the agent decides whether to wait for it",
    "isolation": "there are no worktrees here",
    "initialPrompt": "the task it is given is all it begins with",
}


def understand(taking: Taking, name: str, body: str, there: Collection[str]) -> tuple[Definition, Mapping[str, Any]]:
    """The file as a Definition, and its fields as written."""
    fields: dict[str, Any] = {}
    written = taking.text("name")
    if not written:
        taking.warn(None, f"no name: it is called '{name}' after its file")
    description = taking.text("description").strip()
    if not description and not taking.faults:
        taking.faults.append(Fault(taking.shown, 1, "description missing: what the parent's model reads"))
    if model := taking.text("model").strip():
        fields["model"] = model
    tools, subagents, skills = _tools(taking, there, fields)
    tools, deny = _without(taking, tools, there, fields)
    deny += _mode(taking)
    steps = taking.whole_number("maxTurns")
    if steps is not None:
        fields["max_steps"] = steps
    for key, why in NOT_HERE.items():
        if (place := taking.place(key)) is not None and place.plain() not in (None, False):
            taking.warn(place, f"{key} is not used: {why}")
    definition = Definition(
        name=taking.name(written or name),
        description=" ".join(description.split()),
        prompt=body,
        model=model or None,
        tools=tools,
        skills=_skills(taking, skills, fields),
        mcps=_servers(taking, fields.get("tools", ())),
        subagents=subagents,
        caps=Caps(max_steps=steps),
        permissions=Permissions(deny=tuple(dict.fromkeys(deny))),
        thinking=_effort(taking),
        hooks=_hooks(taking),
    )
    fields["description"] = description
    return definition, fields


def _tools(
    taking: Taking, there: Collection[str], fields: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Its tools here, whom it may give tasks to, and whether it may load any skill."""
    tokens = taking.tokens("tools")
    if tokens is None:
        return usual(there), (), False
    fields["tools"] = list(tokens)
    place = taking.place("tools")
    found: list[str] = []
    subagents: list[str] = []
    skills = False
    for token in tokens:
        name, pattern = name_and_pattern(token)
        what = CLAUDE.get(name)
        if name == "*":
            found += usual(there)
        elif what == "task":
            subagents += [each.strip() for each in (pattern or "").split(",") if each.strip()]
            found += given("task", there)
            if pattern is None:
                taking.warn(place, f"{name}: name the agents it may call, such as {name}(researcher)")
        elif what == "skill":
            skills = True
        elif what is not None:
            mapped = given(what, there)
            found += mapped
            if not mapped:
                taking.warn(place, f"there is no tool here for {name}")
            elif pattern is not None:
                taking.warn(place, f"{token}: the tool is given, its calls ask as always")
        elif name in there:
            found.append(name)
        elif name.startswith("mcp__"):
            if _server(name) is None:
                taking.warn(place, f"{name}: tools of a server come together; write mcp__SERVER for all of them")
        else:
            taking.warn(place, f"there is no tool here for {name}{did_you_mean(name, CLAUDE)}")
    return tuple(dict.fromkeys(found)), tuple(dict.fromkeys(subagents)), skills


def _without(
    taking: Taking, tools: tuple[str, ...], there: Collection[str], fields: dict[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    tokens = taking.tokens("disallowedTools")
    if tokens is None:
        return tools, []
    fields["disallowed_tools"] = list(tokens)
    gone: set[str] = set()
    deny: list[str] = []
    for token in tokens:
        name, pattern = name_and_pattern(token)
        what = CLAUDE.get(name)
        if what is None:
            gone |= {name} if name in there else set()
            if name not in there:
                taking.warn(taking.place("disallowedTools"), f"there is no tool {name} here to take away")
        elif pattern is None:
            gone |= set(taken(what, there))
        else:
            deny += forbidding(what, pattern)
    return tuple(tool for tool in tools if tool not in gone), deny


def _mode(taking: Taking) -> list[str]:
    place = taking.place("permissionMode")
    if place is None:
        return []
    match mode := taking.text("permissionMode"):
        case "" | "default":
            return []
        case "plan":
            taking.warn(place, "permissionMode plan: nothing is written and no command run")
            return ["write_file", "shell", "start_job"]
        case _:
            taking.warn(place, f"permissionMode {mode} is not used: what asks goes on asking (--mode is yours to give)")
            return []


def _skills(taking: Taking, every: bool, fields: dict[str, Any]) -> tuple[str, ...] | Literal["all"]:
    tokens = taking.tokens("skills")
    if tokens:
        fields["skills"] = list(tokens)
    return "all" if every else tokens or ()


def _server(token: str) -> str | None:
    """The server of `mcp__NAME` or `mcp__NAME__*`; None for one tool of a server."""
    name, _, tool = token.removeprefix("mcp__").partition("__")
    return name if name and tool in ("", "*") else None


def _servers(taking: Taking, tokens: Iterable[str]) -> tuple[str, ...]:
    """The MCP servers it may use: those of its list of tools, and those it names."""
    found = (_server(name) for name, _ in map(name_and_pattern, tokens) if name.startswith("mcp__"))
    names = [name for name in found if name is not None]
    place = taking.place("mcpServers")
    if place is None or place.plain() is None:
        return tuple(dict.fromkeys(names))
    for entry in _entries(place):
        if isinstance(entry.plain(), str):
            names.append(entry.plain())
        else:
            taking.warn(entry, "a server described here is not started; put it under mcpServers in elenco.yaml")
    return tuple(dict.fromkeys(names))


def _entries(place: Value) -> list[Value]:
    try:
        return place.items()
    except Wrong:
        return [place]


def _effort(taking: Taking) -> Literal["low", "medium", "high"] | None:
    place = taking.place("effort")
    if place is None:
        return None
    written = str(place.plain())
    effort = EFFORTS.get(written)
    if effort is None:
        taking.warn(place, f"effort {written} is not known; it is not used")
    elif effort != written:
        taking.warn(place, f"effort {written}: taken as {effort}")
    return effort


def _hooks(taking: Taking) -> tuple[Hook, ...]:
    place = taking.place("hooks")
    if place is None or place.plain() is None:
        return ()
    taking.warn(place, "hooks run only where the workspace is trusted (elenco trust)")
    try:
        return hooks(place, taking.warn)
    except Wrong as wrong:
        taking.faults += wrong.faults or [place.fault(f"hooks: {wrong}")]
        return ()
