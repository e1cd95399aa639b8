"""Agent files: Markdown with strict YAML front matter becomes a Definition, or faults with file, line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import attrs

from .errors import DefinitionError, Fault, did_you_mean
from .frontmatter import (
    Fields,
    Source,
    Value,
    Wrong,
    boolean,
    integer,
    kind,
    mapping,
    number,
    one_of,
    parse,
    split,
    text,
    texts,
)
from .handwritten import read_bytes
from .hooks.settings import Hook, hooks

T = TypeVar("T")
Style: TypeAlias = Literal["native", "claude", "opencode"]

CAP_KEYS = (
    "max_steps",
    "total_steps",
    "token_budget",
    "cost_budget",
    "timeout",
    "max_depth",
    "max_children",
    "max_tool_calls",
)
KEYS = (
    "name",
    "description",
    "when_to_use",
    "model",
    "tools",
    "skills",
    "mcps",
    "subagents",
    "talks_to",
    *CAP_KEYS,
    "permissions",
    "loops",
    "thinking",
    "hooks",
    "instructions",
    "output",
    "temperature",
    "top_p",
    "max_output_tokens",
)
FORBIDDABLE = ("email", "key")
"""What an answer may be forbidden to hold."""
NAME = re.compile(r"[a-z0-9-]{1,64}")
NEEDED = (
    ("name", "what the agent is called, 1 to 64 of a-z, 0-9 and -"),
    ("description", "one line that the parent's model reads"),
)
WORDS = {"tools": "tool", "subagents": "agent", "talks_to": "agent", "skills": "skill", "mcps": "MCP server"}
VARIABLES = ("model", "workspace", "tools", "subagents", "skills", "date")


@attrs.frozen
class Permissions:
    """An agent's own rules, as written."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@attrs.frozen
class Caps:
    """The limits an agent file may set; None where it says nothing. Seconds and USD where it matters."""

    max_steps: int | None = None
    total_steps: int | None = None
    token_budget: int | None = None
    cost_budget: float | None = None
    timeout: float | None = None
    max_depth: int | None = None
    max_children: int | None = None
    max_tool_calls: int | None = None


@attrs.frozen
class OutputRules:
    """What the last answer must be. `retries`: how often a bad one goes back before the work has failed.

    `check` is `module:function`; `forbid` are words of FORBIDDABLE.
    """

    schema: Mapping[str, Any] | None = None
    check: str | None = None
    max_chars: int | None = None
    forbid: tuple[str, ...] = ()
    retries: int = 2


@attrs.frozen
class Definition:
    """One agent as its file says; `path` is where it came from, as shown to a person.

    Of a file in another runtime's `style`, its prompt is no template; one that is `disabled` is offered to nobody.
    """

    name: str
    description: str
    prompt: str
    path: str = ""
    when_to_use: str = ""
    model: str | None = None
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] | Literal["all"] = ()
    mcps: tuple[str, ...] = ()
    subagents: tuple[str, ...] = ()
    talks_to: tuple[str, ...] = ()
    caps: Caps = Caps()
    permissions: Permissions = Permissions()
    loops: Mapping[str, Any] | Literal["off"] = attrs.field(factory=dict[str, Any])
    thinking: int | Literal["low", "medium", "high"] | None = None
    hooks: tuple[Hook, ...] = ()
    instructions: bool = False
    output: OutputRules | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    style: Style = "native"
    disabled: bool = False
    warnings: tuple[Fault, ...] = ()


class FaultyAgent(DefinitionError):
    """An agent file that cannot be used; `readable` is what its right keys say: further faults are looked for in it."""

    def __init__(self, faults: Iterable[Fault], readable: Definition) -> None:
        super().__init__(faults)
        self.readable = readable


def load(path: Path, shown: str | None = None) -> Definition:
    """Read one agent file. Raises DefinitionError listing every fault, OSError where it cannot be read."""
    shown = shown or str(path)
    raw = read_bytes(path)
    try:
        content = raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DefinitionError([Fault(shown, line, "not UTF-8 text; save the file as UTF-8")]) from None
    return read(content, shown)


@lru_cache(maxsize=256)
def read(content: str, shown: str) -> Definition:
    """The Definition a file's text stands for; a text that was read before is not parsed again.

    Raises DefinitionError listing every fault, FaultyAgent where some of it can be read.
    """
    cut = split(content)
    if cut.header is None:
        first = content.split("\n", 1)[0]
        wanted = "an agent file begins with front matter between two lines '---'"
        if first.removeprefix("\ufeff").rstrip() == "---":
            wanted = "the line '---' that ends the front matter is missing"
        raise DefinitionError([Fault(shown, 1, wanted, 1, first, len(first))])
    source = Source(shown, cut.header, cut.header_line)
    root = parse(source)
    if root is None:
        raise DefinitionError(
            [Fault(shown, cut.header_line, "the front matter is empty; it needs name and description")]
        )
    faults: list[Fault] = []
    fields = Fields[Any](root, KEYS, faults)
    warnings: list[Fault] = []
    definition = Definition(
        name=fields.take("name", _name, ""),
        description=fields.take("description", _line, ""),
        prompt=cut.body.strip("\n"),
        path=shown,
        when_to_use=fields.take("when_to_use", text, ""),
        model=fields.take("model", _model),
        tools=fields.take("tools", texts, ()),
        skills=fields.take("skills", _skills, ()),
        mcps=fields.take("mcps", texts, ()),
        subagents=fields.take("subagents", texts, ()),
        talks_to=fields.take("talks_to", texts, ()),
        caps=caps(fields),
        permissions=fields.take("permissions", permissions, Permissions()),
        loops=fields.take("loops", _loops, {}),
        thinking=fields.take("thinking", _thinking),
        hooks=fields.take("hooks", hooks, ()),
        instructions=fields.take("instructions", boolean, False),
        output=fields.take("output", _output),
        temperature=fields.take("temperature", number(0, 2)),
        top_p=fields.take("top_p", number(0, 1)),
        max_output_tokens=fields.take("max_output_tokens", integer(1)),
    )
    if not any(fault.text.startswith("expected a mapping") for fault in faults):
        faults += [Fault(shown, cut.header_line, f"{key} missing: {what}") for key, what in NEEDED if key not in fields]
    if "tools" not in fields and "mcps" not in fields:
        warnings.append(Fault(shown, cut.header_line, "no key 'tools': this agent gets no tools", warning=True))
    if not definition.prompt.strip():
        warnings.append(
            Fault(shown, cut.body_line, "no text below the front matter: the prompt is empty", warning=True)
        )
    definition = attrs.evolve(definition, warnings=tuple(warnings))
    if faults:
        raise FaultyAgent(sorted(faults, key=lambda fault: (fault.line, fault.column)), definition)
    return definition


_NO_HINTS: Mapping[str, str] = {}


def unknown_names(
    definition: Definition, content: str, hints: Mapping[str, str] = _NO_HINTS, **known: Iterable[str]
) -> list[Fault]:
    """Faults for tools, subagents or skills that nobody here knows, at the place where the file names them.

    `hints` end what is said of an agent, in place of the nearest name.
    """
    cut = split(content)
    root = parse(Source(definition.path, cut.header or "", cut.header_line))
    if root is None:
        return []
    fields = Fields[Any](root, KEYS, [])
    faults: list[Fault] = []
    for key, names in known.items():
        there = list(names)
        place = fields.place(key)
        for value in _entries(place) if place is not None else []:
            name = value.plain()
            if isinstance(name, str) and name not in there:
                word = WORDS.get(key, key)
                hint = hints.get(name, "") if word == "agent" else ""
                faults.append(value.fault(f"unknown {word} '{name}'{hint or did_you_mean(name, there)}"))
    return faults


def _entries(value: Value) -> list[Value]:
    try:
        return value.items()
    except Wrong:
        return [value]


def _name(value: Value) -> str:
    plain = text(value)
    if not NAME.fullmatch(plain):
        raise Wrong(f"'{plain}' is no name: 1 to 64 of a-z, 0-9 and -")
    return plain


def _model(value: Value) -> str:
    plain = text(value).strip()
    if not plain or any(character.isspace() or not character.isprintable() for character in plain):
        raise Wrong(f"'{plain}' names no model: write PROVIDER/MODEL, without blanks")
    return plain


def _line(value: Value) -> str:
    plain = text(value).strip()
    if not plain:
        raise Wrong("expected one line of text, found an empty one")
    return " ".join(plain.split())


def _skills(value: Value) -> tuple[str, ...] | Literal["all"]:
    return "all" if value.plain() == "all" else texts(value)


def caps(fields: Fields[Any]) -> Caps:
    """The limits among a file's fields."""
    return Caps(
        max_steps=fields.take("max_steps", integer(1)),
        total_steps=fields.take("total_steps", integer(1)),
        token_budget=fields.take("token_budget", integer(1)),
        cost_budget=fields.take("cost_budget", number(0)),
        timeout=fields.take("timeout", _seconds),
        max_depth=fields.take("max_depth", integer(0)),
        max_children=fields.take("max_children", integer(0)),
        max_tool_calls=fields.take("max_tool_calls", integer(0)),
    )


def _seconds(value: Value) -> float:
    seconds = number(0)(value)
    if seconds <= 0:
        raise Wrong("expected seconds above 0")
    return seconds


def _nested(value: Value, known: Iterable[str]) -> Fields[Any]:
    return Fields[Any](value, known, [])


def _whole(fields: Fields[Any], taken: T) -> T:
    if fields.faults:
        raise Wrong("", faults=fields.faults, rest=taken)
    return taken


def permissions(value: Value) -> Permissions:
    """A `permissions:` block."""
    fields = _nested(value, ("allow", "ask", "deny"))
    return _whole(fields, Permissions(*(fields.take(key, texts, ()) for key in ("allow", "ask", "deny"))))


def _loops(value: Value) -> Mapping[str, Any] | Literal["off"]:
    plain = value.plain()
    if plain in ("off", False):
        return "off"
    return mapping(value)


def _thinking(value: Value) -> int | str:
    plain = value.plain()
    if isinstance(plain, int) and not isinstance(plain, bool):
        return integer(0)(value)
    try:
        return one_of("low", "medium", "high")(value)
    except Wrong:
        raise Wrong(f"expected a number of tokens, low, medium or high, found {kind(plain)}") from None


def _forbid(value: Value) -> tuple[str, ...]:
    for item in value.items() if not isinstance(value.plain(), str) else [value]:
        word = item.plain()
        if word not in FORBIDDABLE:
            known = " and ".join(FORBIDDABLE)
            hint = did_you_mean(str(word), FORBIDDABLE)
            raise Wrong(f"'{word}' is nothing that can be forbidden: there are {known}{hint}", item)
    return texts(value)


def _output(value: Value) -> OutputRules:
    fields = _nested(value, ("schema", "check", "max_chars", "forbid", "retries"))
    rules = OutputRules(
        schema=fields.take("schema", mapping),
        check=fields.take("check", text),
        max_chars=fields.take("max_chars", integer(1)),
        forbid=fields.take("forbid", _forbid, ()),
        retries=fields.take("retries", integer(0, 20), 2),
    )
    return _whole(fields, rules)
