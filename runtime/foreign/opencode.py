"""Agent files of opencode, both generations: `tools` and `permission` maps, and `permissions` as a list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import attrs

from runtime.definitions import Caps, Definition, Permissions
from runtime.errors import did_you_mean
from runtime.frontmatter import Value, Wrong, boolean, kind, number

from .claude import EFFORTS
from .names import COUNTERPARTS, EDITORS, OPENCODE, WRITERS, Kind, taken
from .rules import allowing, forbidding, grown, is_glued
from .taking import Taking, usual

KEYS = (
    *("name", "description", "mode", "model", "variant", "temperature", "top_p", "prompt", "system", "tools"),
    *("permission", "permissions", "steps", "maxSteps", "disable", "disabled", "hidden", "color", "options"),
)
RIGHTS = frozenset({"tools", "permission", "permissions", "steps", "maxSteps", "disable", "disabled"})
MODES = ("primary", "subagent", "all")
BEYOND = frozenset({"external_directory", "doom_loop", "lsp", "codesearch"})
"""What can be permitted there and is nothing here: no tool leaves the workspace, and loops are always watched."""

Effect: TypeAlias = Literal["allow", "ask", "deny"]

EFFECTS: Mapping[str, Effect] = {"allow": "allow", "ask": "ask", "deny": "deny"}


@attrs.frozen
class Entry:
    """One permission as written: the action, the pattern (None: all of it), the effect, its place."""

    action: str
    pattern: str | None
    effect: Effect
    place: Value


def understand(taking: Taking, name: str, body: str, there: Collection[str]) -> tuple[Definition, Mapping[str, Any]]:
    """The file as a Definition, and its fields as written."""
    fields: dict[str, Any] = {}
    description = taking.text("description").strip()
    if not description and not taking.faults:
        taking.warn(None, "no description: nobody's model can know when to call it")
    model, thinking = _model(taking, fields)
    mode = taking.text("mode")
    if mode and mode not in MODES:
        taking.warn(taking.place("mode"), f"mode {mode} is not known{did_you_mean(mode, MODES)}; taken as 'all'")
    steps = taking.whole_number("steps")
    older = taking.whole_number("maxSteps")
    if (steps := steps if steps is not None else older) is not None:
        fields["max_steps"] = steps
    tools = _tools(taking, there)
    tools, rules, skills, subagents = _permitted(taking, tools, there)
    disabled = any(taking.fields.take(key, boolean, False) for key in ("disable", "disabled"))
    if disabled:
        taking.warn(taking.place("disable") or taking.place("disabled"), "switched off: it is offered to nobody")
    definition = Definition(
        name=taking.name(name),
        description=" ".join(description.split()),
        prompt=_prompt(taking, body),
        model=model,
        tools=tools,
        skills=skills,
        subagents=subagents,
        caps=Caps(max_steps=steps),
        permissions=rules,
        thinking=thinking,
        temperature=taking.fields.take("temperature", number(0, 2)),
        top_p=taking.fields.take("top_p", number(0, 1)),
        disabled=disabled,
    )
    fields["description"] = description
    return definition, fields


def _model(taking: Taking, fields: dict[str, Any]) -> tuple[str | None, Literal["low", "medium", "high"] | None]:
    written = taking.text("model").strip()
    model, _, variant = written.partition("#")
    place = taking.place("model")
    variant = variant or taking.text("variant").strip()
    if model:
        fields["model"] = model
    if variant:
        fields["variant"] = variant
        if (effort := EFFORTS.get(variant)) is not None:
            return model or None, effort
        taking.warn(place or taking.place("variant"), f"the variant '{variant}' means nothing here")
    return model or None, None


def _prompt(taking: Taking, body: str) -> str:
    for key in ("prompt", "system"):
        if text := taking.text(key).strip():
            if body.strip():
                taking.warn(taking.place(key), f"{key} is not used: the text below the front matter is the prompt")
            else:
                return text
    return body


def _tools(taking: Taking, there: Collection[str]) -> tuple[str, ...]:
    """All tools, but those the older map switches off."""
    tools = dict.fromkeys(usual(there))
    place = taking.place("tools")
    if place is None or place.plain() is None:
        return tuple(tools)
    try:
        pairs = place.pairs()
    except Wrong as wrong:
        taking.refuse(place, f"tools: {wrong}")
        return ()
    for key, value in pairs:
        name, on = str(key.plain()), value.plain()
        if not isinstance(on, bool):
            taking.refuse(value, f"tools.{name}: expected true or false, found {kind(on)}")
            continue
        names = _meant(name, there)
        if on and not names and name not in BEYOND and OPENCODE.get(name) not in ("skill", "task"):
            taking.warn(key, f"there is no tool here for {name}")
        for each in names if not on or name in names else usual(names):
            if on:
                tools[each] = None
            else:
                tools.pop(each, None)
    return tuple(tools)


def _meant(name: str, there: Collection[str]) -> tuple[str, ...]:
    """The tools of ours an entry of the older map speaks of: a switch for a way to write is one for all of them."""
    kinds: set[Kind] = {what for known, what in OPENCODE.items() if fnmatchcase(known, name)}
    found = [tool for tool in there if fnmatchcase(tool, name)]
    for each in kinds:
        found += _taken(each, there)
    return tuple(dict.fromkeys(found))


def _taken(what: Kind, there: Collection[str]) -> tuple[str, ...]:
    if what in ("edit", "write"):
        return tuple(name for name in (*EDITORS, *WRITERS, "edit", "write") if name in there)
    return taken(what, there)


def _permitted(
    taking: Taking, tools: tuple[str, ...], there: Collection[str]
) -> tuple[tuple[str, ...], Permissions, tuple[str, ...] | Literal["all"], tuple[str, ...]]:
    """What is left of the tools, the rules, the skills it may load, the agents it may call."""
    entries = [*_mapped(taking), *_listed(taking)]
    gone: set[str] = set()
    rules: dict[Effect, list[str]] = {"allow": [], "ask": [], "deny": []}
    skills: tuple[str, ...] | Literal["all"] = ()
    subagents: tuple[str, ...] = ()
    for entry in entries:
        if OPENCODE.get(entry.action) is None and not set(entry.action) & set("*?") and entry.action not in BEYOND:
            if entry.action in there:
                rules[entry.effect].append(entry.action)
            elif near := did_you_mean(entry.action, OPENCODE):
                taking.refuse(entry.place, f"unknown action '{entry.action}'{near}")
            else:
                taking.warn(entry.place, f"there is no tool here for {entry.action}")
    for what in COUNTERPARTS:
        about = [entry for entry in entries if _speaks_of(entry.action, what)]
        if not about:
            continue
        if what == "skill":
            skills = _skills(about)
            continue
        if what == "task":
            subagents = _named(about)
            for effect in ("ask", "deny"):
                rules[effect] += [f"agent({name})" for name in _named(about, effect)]
            gone |= set() if subagents or _base(about) != "deny" else set(taken(what, there))
            continue
        base = _base(about)
        narrow = [entry for entry in about if entry.pattern is not None]
        match base:
            case "deny":
                gone |= set(_taken(what, there))
                for entry in narrow:
                    if entry.effect != "deny":
                        taking.warn(entry.place, f"{entry.action} is denied, so '{entry.pattern}' is denied as well")
                continue
            case "allow":
                rules["allow"] += _every(what)
            case "ask" if what not in ("shell", "edit", "write", "fetch", "search"):
                rules["ask"] += forbidding(what, None)
            case _:
                pass  # It asks as it is.
        for entry in narrow:
            found = (allowing if entry.effect == "allow" else forbidding)(what, entry.pattern)
            rules[entry.effect] += found
            if what == "shell" and base == "allow" and entry.effect != "allow" and is_glued(entry.pattern or ""):
                # What the star would have meant beside whole words shall not slip through what is allowed.
                rules["ask"].append(f"shell({grown(entry.pattern or '')})")
            if not found:
                taking.warn(entry.place, f"'{entry.pattern}' cannot be said in rules here; such calls ask")
    kept = tuple(tool for tool in tools if tool not in gone)
    permissions = Permissions(*(tuple(dict.fromkeys(found)) for found in rules.values()))
    return kept, permissions, skills, subagents


def _every(what: Kind) -> tuple[str, ...]:
    return (*EDITORS, *WRITERS) if what in ("edit", "write") else allowing(what, None)


def _speaks_of(action: str, what: Kind) -> bool:
    return any(known == what and fnmatchcase(name, action) for name, known in OPENCODE.items()) or (
        what == "write" and OPENCODE.get(action) == "edit"
    )


def _skills(about: list[Entry]) -> tuple[str, ...] | Literal["all"]:
    base = next((entry.effect for entry in reversed(about) if entry.pattern is None and entry.action != "*"), None)
    if base is not None and base != "deny":
        return "all"
    return _named(about)


def _base(about: list[Entry]) -> Effect | None:
    """What the last entry about all of an action says."""
    return next((entry.effect for entry in reversed(about) if entry.pattern is None), None)


def _named(about: list[Entry], effect: Effect | None = None) -> tuple[str, ...]:
    """The plain names among the patterns, those of one effect or those that are not denied."""
    said = [entry for entry in about if (entry.effect == effect if effect is not None else entry.effect != "deny")]
    named = [entry.pattern for entry in said if entry.pattern is not None]
    return tuple(name for name in named if name and not set(name) & set("*?"))


def _mapped(taking: Taking) -> Iterator[Entry]:
    """The map of the first generation: an effect for all, or one an action, or one a pattern of an action."""
    place = taking.place("permission")
    if place is None or place.plain() is None:
        return
    if isinstance(place.plain(), str):
        if (effect := _effect(taking, place)) is not None:
            yield Entry("*", None, effect, place)
        return
    for key, value in _pairs(taking, place, "permission"):
        action = str(key.plain())
        if isinstance(value.plain(), dict):
            for pattern, inner in _pairs(taking, value, f"permission.{action}"):
                if (effect := _effect(taking, inner)) is not None:
                    yield Entry(action, _pattern(str(pattern.plain())), effect, inner)
        elif (effect := _effect(taking, value)) is not None:
            yield Entry(action, None, effect, value)


def _listed(taking: Taking) -> Iterator[Entry]:
    """The list of the second generation: an action, a resource and an effect an entry."""
    place = taking.place("permissions")
    if place is None or place.plain() is None:
        return
    try:
        items = place.items()
    except Wrong as wrong:
        taking.refuse(place, f"permissions: {wrong}")
        return
    for item in items:
        found = {str(key.plain()): value for key, value in _pairs(taking, item, "permissions")}
        for name in found:
            if name not in ("action", "resource", "effect"):
                near = did_you_mean(name, ("action", "resource", "effect"))
                taking.refuse(item, f"permissions: unknown key '{name}'{near}")
        action, effect = found.get("action"), found.get("effect")
        if action is None or not isinstance(action.plain(), str) or effect is None:
            taking.refuse(item, "permissions: an entry needs an action and an effect")
            continue
        resource = found.get("resource")
        if (said := _effect(taking, effect)) is not None:
            pattern = None if resource is None else _pattern(str(resource.plain()))
            yield Entry(str(action.plain()), pattern, said, item)


def _pairs(taking: Taking, value: Value, what: str) -> list[tuple[Value, Value]]:
    try:
        return value.pairs()
    except Wrong as wrong:
        taking.refuse(value, f"{what}: {wrong}")
        return []


def _pattern(written: str) -> str | None:
    return None if written in ("*", "**") else written


def _effect(taking: Taking, value: Value) -> Effect | None:
    plain = value.plain()
    if isinstance(plain, str) and (effect := EFFECTS.get(plain)) is not None:
        return effect
    near = did_you_mean(plain, EFFECTS) if isinstance(plain, str) else ""
    taking.refuse(value, f"expected allow, ask or deny, found {kind(plain)}{near}")
    return None
