"""Hooks as settings and front matter write them, each named by its place, for faults and records. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from runtime.errors import Fault, did_you_mean
from runtime.frontmatter import Fields, Value, Wrong, kind, number, one_of, text, texts
from runtime.messages import JsonObject

from .matchers import Matcher, read_matcher
from .moments import ALIASES, ELSEWHERE, MOMENTS, Moment

Function: TypeAlias = Callable[[JsonObject], Any]

TIMEOUT = 60.0
"""Seconds a hook may take where its settings say nothing else."""
LONGEST = 600.0

_KEYS = ("matcher", "command", "timeout", "on_error", "name")
_GROUP_KEYS = ("matcher", "hooks")
_INNER_KEYS = ("type", *_KEYS)


@attrs.frozen
class Hook:
    """One hook. `name` is unique among those of its file and stays the same while the file does.

    `command` is a shell line, or words that are started as they are; a Python hook has a `function` instead. `written`
    is the moment's name as the settings have it.
    """

    name: str
    moment: Moment
    matcher: Matcher = Matcher()
    command: str | tuple[str, ...] = ""
    timeout: float = TIMEOUT
    on_error: Literal["allow", "deny"] = "allow"
    written: str = ""
    function: Function | None = attrs.field(default=None, eq=False)


def hooks(value: Value, passed_over: Callable[[Value, str], None] | None = None) -> tuple[Hook, ...]:
    """A `hooks:` block: moments, each with one hook or a list. Raises Wrong with every fault in it.

    With `passed_over`, for files of Claude Code, it is told of events that have no like here; else they are faults.
    """
    found: list[Hook] = []
    faults: list[Fault] = []
    for key, entries in value.pairs():
        written = key.plain()
        name = ALIASES.get(written, written) if isinstance(written, str) else None
        moment = MOMENTS.get(name) if name is not None else None
        if moment is None and passed_over is not None and written in ELSEWHERE:
            passed_over(key, f"the hook event {written} does not come here; it is not used")
            continue
        if moment is None:
            said = str(written)
            faults.append(key.fault(f"unknown event '{said}'{did_you_mean(said, [*MOMENTS, *ALIASES])}"))
            continue
        for entry in _listed(entries):
            try:
                found += _entry(moment, str(written), entry)
            except Wrong as wrong:
                faults += wrong.faults or [(wrong.at or entry).fault(f"{written}: {wrong}")]
    if faults:
        raise Wrong("", faults=faults)
    return tuple(found)


def _listed(value: Value) -> list[Value]:
    return value.items() if isinstance(value.plain(), list) else [value]


def _entry(moment: Moment, written: str, value: Value) -> Iterator[Hook]:
    plain = value.plain()
    if isinstance(plain, str):
        yield _hook(moment, written, value, plain, {}, Matcher())
        return
    if not isinstance(plain, dict):
        raise Wrong(f"expected a command or a mapping, found {kind(plain)}", value)
    if "hooks" not in plain:
        yield _from_fields(moment, written, value, _KEYS, None)
        return
    faults: list[Fault] = []
    group = Fields[Any](value, _GROUP_KEYS, faults)
    matcher = group.take("matcher", _matcher)
    inside = group.place("hooks")
    found: list[Hook] = []
    for entry in _listed(inside) if inside is not None else []:
        try:
            found.append(_from_fields(moment, written, entry, _INNER_KEYS, matcher))
        except Wrong as wrong:
            faults += wrong.faults or [(wrong.at or entry).fault(f"{written}: {wrong}")]
    if faults:
        raise Wrong("", faults=faults)
    yield from found


def _from_fields(moment: Moment, written: str, value: Value, keys: tuple[str, ...], matcher: Matcher | None) -> Hook:
    fields = Fields[Any](value, keys, [])
    fields.take("type", _type)
    if not fields.faults and "command" not in fields:
        raise Wrong("it needs a command", value)
    command = fields.take("command", _command, "")
    settings = {
        "timeout": fields.take("timeout", _timeout, TIMEOUT),
        "on_error": fields.take("on_error", _on_error(moment), moment.fails),
        "name": fields.take("name", text, ""),
    }
    own: Matcher = fields.take("matcher", _matcher, matcher or Matcher())
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return _hook(moment, written, value, command, settings, own)


def _hook(
    moment: Moment,
    written: str,
    value: Value,
    command: str | tuple[str, ...],
    settings: Mapping[str, Any],
    matcher: Matcher,
) -> Hook:
    if not command:
        raise Wrong("the command is empty", value)
    place = value.fault("")
    shown = settings.get("name") or (command if isinstance(command, str) else " ".join(command))
    shown = " ".join(shown.split())
    return Hook(
        name=f"{place.path}:{place.line} {shown if len(shown) <= 60 else shown[:59] + '…'}",
        moment=moment,
        matcher=matcher,
        command=command,
        timeout=settings.get("timeout", TIMEOUT),
        on_error=settings.get("on_error", moment.fails),
        written=written,
    )


def _type(value: Value) -> str:
    if value.plain() != "command":
        raise Wrong(f"only hooks of type command are run, found {kind(value.plain())}", value)
    return "command"


def _matcher(value: Value) -> Matcher:
    try:
        return read_matcher(text(value))
    except ValueError as error:
        raise Wrong(str(error), value) from None


def _command(value: Value) -> str | tuple[str, ...]:
    plain = value.plain()
    if isinstance(plain, str):
        return plain.strip()
    words = texts(value)
    if not words or not words[0]:
        raise Wrong("the command is empty", value)
    return words


def _timeout(value: Value) -> float:
    seconds = number(0, LONGEST)(value)
    if seconds <= 0:
        raise Wrong("expected seconds above 0", value)
    return seconds


def _on_error(moment: Moment) -> Callable[[Value], str]:
    def convert(value: Value) -> str:
        found = one_of("allow", "deny")(value)
        if found == "deny" and not moment.denies:
            raise Wrong(f"{moment.name} hooks cannot deny", value)
        return found

    return convert
