"""A SKILL.md as a Skill, by the Agent Skills specification: what is off it but usable loads and is told.

What cannot be used is refused with its reason: no front matter, no description, a name that is a path, and a list of
tools that cannot be read, for nobody may guess what its author wanted to hold back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, cast

import attrs
import yaml

from runtime.errors import DefinitionError, Fault
from runtime.foreign.rules import TokenError, allow_rules, split_tools
from runtime.frontmatter import Source, Value, Wrong, kind
from runtime.hooks.settings import hooks as read_hooks
from runtime.known import TOOL_NAMES
from runtime.leniency import Remark, front, parse_leniently
from runtime.nearness import resembles
from runtime.policy.rules import FAMILIES

Level: TypeAlias = Literal["fault", "deviation", "warning", "remark"]
Allowed: TypeAlias = tuple[str, ...]

MOST_HEADER = 64 << 10
"""Characters front matter may have."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500
MOST_LINES = 500
LARGE_BODY = 100_000
KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
ELSEWHERE = frozenset(
    {
        *("argument-hint", "arguments", "disable-model-invocation", "user-invocable", "model", "effort", "context"),
        *("agent", "hooks", "when_to_use", "paths", "shell", "disallowed-tools", "version", "author", "tags"),
    }
)
"""Keys of other runtimes: no slip, and told only by `elenco check`."""

_APPROVABLE = frozenset((*TOOL_NAMES, *FAMILIES))
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_JOINER = "\u200d"
"""What joins emoji to one; every other character without a shape makes a name look like another."""
_BINARY = "tag:yaml.org,2002:binary"
_STANDARD = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))


@attrs.frozen
class Problem:
    """Something about a SKILL.md that a person should know.

    A `fault` keeps the skill from loading. A `deviation` from the specification loads, and `elenco check` counts it as
    a fault; a `warning` is one in both; a `remark` only `elenco check` tells.
    """

    level: Level
    line: int
    text: str

    def fault(self, shown: str, *, strict: bool = False) -> Fault:
        """The problem of the file at `shown`; `strict` is how `elenco check` sees it."""
        heavy = self.level == "fault" or (strict and self.level == "deviation")
        return Fault(shown, self.line, self.text, warning=not heavy)


@attrs.frozen
class Skill:
    """What a SKILL.md says. `allowed` are the entries of `allowed-tools`, None where it has no such key.

    `body_line` is where its text begins.

    One that is `manual` is offered only to agents that name it.
    """

    name: str
    description: str
    allowed: Allowed | None = None
    when: str = ""
    license: str = ""
    compatibility: str = ""
    manual: bool = False
    body_line: int = 1
    hooks: Value | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def headline(self) -> str:
        """The description as a prompt shows it: one line, cut where the specification ends it."""
        shown = (each for each in f"{self.description} {self.when}" if each.isspace() or each.isprintable())
        text = " ".join("".join(shown).split())
        return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 1]}…"


@attrs.frozen
class Reading:
    """What became of a SKILL.md: the Skill, None where it cannot be used, and its problems in the order of lines."""

    skill: Skill | None
    problems: tuple[Problem, ...] = ()

    @property
    def warned(self) -> bool:
        """Whether a person should hear of it although it loads."""
        return any(problem.level in ("deviation", "warning") for problem in self.problems)


def read_document(head: str, folder: str, *, size: int | None = None) -> Reading:
    """Read the beginning of a SKILL.md; `folder` is the name of the folder it is in.

    `size` is how many bytes the file has where `head` is not all of it.
    """
    cut = front(head)
    if cut.split.header is None:
        return Reading(None, (Problem("fault", 1, _no_front(head)),))
    if len(cut.split.header) > MOST_HEADER:
        text = f"the front matter has {len(cut.split.header) >> 10} kB, and at most {MOST_HEADER >> 10} are read"
        return Reading(None, (Problem("fault", 1, text),))
    source = Source("", cut.split.header, cut.split.header_line)
    try:
        root, remarks = parse_leniently(source)
    except DefinitionError as error:
        found = tuple(Problem("fault", fault.line, f"{fault.text}{_advice(fault.text)}") for fault in error.faults)
        return Reading(None, found)
    if root is None:
        return Reading(None, (Problem("fault", 1, "the front matter is empty; it needs name and description"),))
    document = _Document(root, cut.split.header_line)
    document.mended((*cut.remarks, *remarks))
    skill = document.skill(folder, cut.split.body_line)
    _measure_body(document, cut.split.body, cut.split.body_line, size)
    problems = tuple(sorted(document.problems, key=lambda problem: problem.line))
    return Reading(None if document.broken else skill, problems)


def _no_front(head: str) -> str:
    first = head.removeprefix("\ufeff").split("\n", 1)[0].rstrip()
    if first == "---":
        return "the line '---' that ends the front matter is missing"
    if not head.strip():
        return "the file is empty; it needs front matter with name and description"
    if first == "+++":
        return "this is TOML front matter; a skill has YAML between two lines '---'"
    return "no front matter: a skill begins with name and description between two lines '---'"


def _advice(text: str) -> str:
    return "; put the value in quotes" if "while scanning" in text or "while parsing" in text else ""


class _Document:
    """The entries of one front matter, taken one by one."""

    def __init__(self, root: Value, line: int) -> None:
        self.problems: list[Problem] = []
        self._entries: dict[str, tuple[Value, Value]] = {}
        self._line = line
        try:
            pairs = root.pairs()
        except Wrong as wrong:
            self._tell("fault", None, f"the front matter: {wrong}")
            pairs = []
        for key, value in pairs:
            self._enter(key, value)

    @property
    def broken(self) -> bool:
        return any(problem.level == "fault" for problem in self.problems)

    def mended(self, remarks: tuple[Remark, ...]) -> None:
        self.problems += [Problem("deviation", remark.line, remark.text) for remark in remarks]

    def _tell(self, level: Level, at: Value | None, text: str) -> None:
        line = self._line if at is None else at.fault("").line
        self.problems.append(Problem(level, line, text))

    def tell_body(self, level: Level, line: int, text: str) -> None:
        self.problems.append(Problem(level, line, text))

    def _enter(self, key: Value, value: Value) -> None:
        name = key.node.value if isinstance(key.node, yaml.ScalarNode) else None
        if not isinstance(name, str):
            self._tell("fault", key, "a key must be text")
        elif name in self._entries:
            self._tell("fault", key, f"'{name}' stands twice")
        else:
            self._entries[name] = (key, value)
            if name not in KEYS and name not in ELSEWHERE:
                near = resembles(name.lower().replace("_", "-"), KEYS)
                if near is not None:
                    self._tell("deviation", key, f"unknown key '{name}' is not used; did you mean '{near}'?")
                else:
                    self._tell("remark", key, f"'{name}' is no key of the specification; metadata takes such things")
            elif name == "disallowed-tools":
                self._tell("warning", key, "disallowed-tools is not used; an agent has only the tools its file names")
            elif name in ELSEWHERE and name != "hooks":
                self._tell("remark", key, f"'{name}' is no key of the specification, other programs may not know it")

    def skill(self, folder: str, body_line: int) -> Skill:
        """The Skill the entries stand for; what is wrong with them is among the problems afterwards."""
        hooks = self._value("hooks")
        if hooks is not None:
            self._tell("warning", hooks, "hooks of a skill run only where they are trusted")
            try:
                read_hooks(hooks)
            except Wrong as wrong:
                for fault in wrong.faults or [hooks.fault(f"hooks: {wrong}")]:
                    self.problems.append(Problem("warning", fault.line, f"{fault.text}: none of its hooks runs"))
        return Skill(
            name=self._name(folder),
            description=self._description(),
            allowed=self._allowed(),
            when=self._optional("when_to_use"),
            license=self._optional("license"),
            compatibility=self._compatibility(),
            manual=self._manual(),
            body_line=body_line,
            hooks=hooks,
        )

    def _value(self, name: str) -> Value | None:
        found = self._entries.get(name)
        return found[1] if found is not None else None

    def _name(self, folder: str) -> str:
        value = self._value("name")
        written = self._scalar(value, "name") if value is not None else None
        if value is not None and written is None:
            return folder
        if not written:
            self._tell("deviation", value, f"no name; it is called '{folder}' after its folder")
            return folder
        name = written.strip()
        if name != written:
            self._tell("deviation", value, "the name begins or ends with a blank")
        if bad := _unusable(name):
            self._tell("fault", value, f"the name {bad}")
        elif not _NAME.fullmatch(name):
            self._tell(
                "deviation", value, f"the name '{_cut(name)}' should have only a-z, 0-9 and single - between them"
            )
        if len(name) > LONGEST_NAME:
            self._tell("deviation", value, f"the name has {len(name)} characters, more than {LONGEST_NAME}")
        if name != folder:
            self._tell("deviation", value, f"the name differs from that of its folder, '{_cut(folder)}'")
        return name

    def _description(self) -> str:
        value = self._value("description")
        if value is None:
            self._tell("fault", None, "no description; say what the skill does and when to use it")
            return ""
        written = self._scalar(value, "description")
        if written is None:
            return ""
        text = written.strip()
        if not text:
            self._tell("fault", value, "the description is empty; say what the skill does and when to use it")
        elif any(unicodedata.category(character) == "Cc" and character not in "\n\t" for character in text):
            self._tell("deviation", value, "the description holds control characters; they are not shown")
        elif len(text) > LONGEST_DESCRIPTION:
            text_length = f"the description has {len(text)} characters; the first {LONGEST_DESCRIPTION} are shown"
            self._tell("deviation", value, text_length)
        return text

    def _scalar(self, value: Value, what: str) -> str | None:
        """A text as written, "" for nothing; what YAML took for something else keeps its letters. None: a fault."""
        node = value.node
        if not isinstance(node, yaml.ScalarNode):
            self._tell("fault", value, f"{what}: expected text, found {kind(value.plain())}")
            return None
        if node.tag not in _STANDARD:
            found = "bytes" if node.tag == _BINARY else f"the tag {node.tag}"
            self._tell("fault", value, f"{what}: expected text, found {found}")
            return None
        written = str(node.value)
        if node.tag.endswith(":null"):
            return ""
        if not node.tag.endswith(":str"):
            self._tell("deviation", value, f"{what}: '{_cut(written)}' is no text to YAML; put it in quotes")
        return written

    def _allowed(self) -> Allowed | None:
        value = self._value("allowed-tools")
        if value is None:
            return None
        try:
            entries = _texts(value)
        except Wrong:
            found = "nothing" if value.plain() is None else kind(value.plain())
            text = f"allowed-tools: expected names of tools, found {found}; nobody can tell what is meant"
            self._tell("fault", value, text)
            return ()
        try:
            tokens = tuple(token for entry in entries for token in split_tools(entry))
        except TokenError as error:
            self._tell("fault", value, f"allowed-tools: {error}")
            return ()
        for token in tokens:
            if not any(rule.partition("(")[0] in _APPROVABLE for rule in allow_rules(token)):
                self._tell("remark", value, f"allowed-tools: {_cut(token)} pre-approves nothing here")
        return tokens

    def _optional(self, name: str) -> str:
        value = self._value(name)
        if value is None or not isinstance(value.node, yaml.ScalarNode) or value.node.tag not in _STANDARD:
            return ""
        return str(value.node.value).strip()

    def _compatibility(self) -> str:
        text = self._optional("compatibility")
        if len(text) > LONGEST_COMPATIBILITY:
            where = self._value("compatibility")
            self._tell(
                "deviation", where, f"compatibility has {len(text)} characters, more than {LONGEST_COMPATIBILITY}"
            )
        return text

    def _manual(self) -> bool:
        value = self._value("disable-model-invocation")
        return value is not None and value.plain() is True


def _measure_body(document: _Document, body: str, line: int, size: int | None) -> None:
    if not body.strip():
        document.tell_body("warning", line, "no text below the front matter: the skill says nothing")
    elif size is not None or len(body) > LARGE_BODY:
        have = size if size is not None else len(body.encode(errors="replace"))
        document.tell_body(
            "warning", line, f"the file has {have / 1e6:.1f} MB; a page of it is loaded, the rest on demand"
        )
    elif body.count("\n") > MOST_LINES:
        text = f"the text has more than {MOST_LINES} lines; put the details into files of their own"
        document.tell_body("remark", line, text)


def _texts(value: Value) -> Iterator[str]:
    node = value.node
    nodes = cast("list[Any]", node.value) if isinstance(node, yaml.SequenceNode) else [node]
    for each in nodes:
        if not isinstance(each, yaml.ScalarNode) or not str(each.tag).endswith(":str"):
            raise Wrong("no text", value)
    return (str(each.value) for each in nodes)


def _unusable(name: str) -> str:
    """Why nobody may be called so, or nothing."""
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") for character in name):
        return "holds a line break or a control character"
    if any(unicodedata.category(character) == "Cf" and character != _JOINER for character in name):
        return "holds characters that nobody sees"
    if "/" in name or "\\" in name or name in (".", ".."):
        return "is a path"
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
