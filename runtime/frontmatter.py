"""YAML with positions: a mapping whose every key and value knows its line and column, so that a fault can be shown."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import attrs
import yaml

from .errors import DefinitionError, Fault, did_you_mean

T = TypeVar("T")
MOST_VALUES = 20_000
"""Values a text may stand for once its aliases are written out."""
MOST_NUMBER = 10**15
_DECIMAL = re.compile(r"[-+]?[0-9][0-9_]*")
Convert = Callable[["Value"], T]


class Wrong(Exception):
    """A value is not what its key wants; the message says what is allowed, `faults` what is wrong inside it.

    `rest` is the value without what is wrong, where something is left of it: to look for further faults in.
    """

    def __init__(self, text: str, at: Value | None = None, faults: Iterable[Fault] = (), rest: Any = None) -> None:
        super().__init__(text)
        self.at = at
        self.faults = tuple(faults)
        self.rest = rest


@attrs.frozen
class Split:
    """A Markdown file cut in two: `header` begins at line `header_line` (1-based), `body` at `body_line`."""

    header: str | None
    header_line: int
    body: str
    body_line: int


def split(text: str) -> Split:
    """Cut front matter from body; a BOM, CRLF and blanks after the dashes are fine. No front matter: header None."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return Split(None, 1, "\n".join(lines), 1)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return Split("\n".join(lines[1:number]) + "\n", 2, "\n".join(lines[number + 1 :]), number + 2)
    return Split(None, 1, "\n".join(lines), 1)


@attrs.frozen
class Source:
    """Where YAML came from: `path` as shown to a person, its text, and the line of the file the text begins at."""

    path: str
    text: str
    first_line: int = 1

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def fault(self, mark: Any, text: str, width: int = 1) -> Fault:
        """The fault at a YAML mark."""
        row = self._row(mark)
        return Fault(self.path, row + self.first_line, text, int(mark.column) + 1, self.lines[row], max(width, 1))

    def line(self, mark: Any) -> str:
        """The line a YAML mark is in."""
        return self.lines[self._row(mark)]

    def _row(self, mark: Any) -> int:
        return min(int(mark.line), len(self.lines) - 1)


@attrs.frozen(eq=False)
class Value:
    """One YAML value with its place."""

    source: Source
    node: yaml.Node

    def plain(self) -> Any:
        """The value as plain data."""
        return _construct(self.node)

    def fault(self, text: str) -> Fault:
        start, end = cast("Any", self.node.start_mark), cast("Any", self.node.end_mark)
        width = end.column - start.column if end.line == start.line else 1
        return self.source.fault(start, text, width)

    def items(self) -> list[Value]:
        """The entries of a list. Raises Wrong for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise Wrong(f"expected a list, found {kind(self.plain())}", self)
        return [Value(self.source, node) for node in cast("list[yaml.Node]", self.node.value)]

    def pairs(self) -> list[tuple[Value, Value]]:
        """The entries of a mapping, in order. Raises Wrong for anything else."""
        if not isinstance(self.node, yaml.MappingNode):
            raise Wrong(f"expected a mapping, found {kind(self.plain())}", self)
        pairs = cast("list[tuple[yaml.Node, yaml.Node]]", self.node.value)
        return [(Value(self.source, key), Value(self.source, value)) for key, value in pairs]


def kind(value: object) -> str:
    """The word a person has for a YAML value's type."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text '{value}'"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return type(value).__name__


@functools.lru_cache(maxsize=16)  # the same file is read to be run and, more strictly, to be vetted
def parse(source: Source) -> Value | None:
    """The YAML's root value, None for an empty text. Raises DefinitionError for what is no YAML."""
    try:
        node = yaml.compose(source.text, Loader=yaml.SafeLoader)
        if node is not None:
            _measure(node)
            _construct(node)
    except yaml.MarkedYAMLError as error:
        raise DefinitionError([_unreadable(source, error)]) from None
    except yaml.YAMLError as error:
        raise DefinitionError([Fault(source.path, source.first_line, f"not valid YAML: {error}")]) from None
    except RecursionError:
        raise DefinitionError([Fault(source.path, source.first_line, "nested too deeply")]) from None
    return Value(source, node) if node is not None else None


_BEGINS = re.compile("while (parsing a flow|scanning a (quoted|simple))")
"""What YAML was in the middle of, where that is more telling than the place at which it noticed."""


def _unreadable(source: Source, error: yaml.MarkedYAMLError) -> Fault:
    """The fault where it begins: a bracket or quote that is never closed is noticed lines below, or at the end."""
    noticed, begun = cast("Any", error.problem_mark), cast("Any", error.context_mark)
    text = " ".join(part for part in (error.context, error.problem) if part)
    if noticed is None:
        return Fault(source.path, source.first_line, text)
    if begun is not None and begun.line < noticed.line and _BEGINS.match(error.context or ""):
        line = source.line(begun)
        opening = line[begun.column : begun.column + 1]
        if opening not in tuple("[{\"'"):
            return source.fault(begun, f"not valid YAML: {text}")
        after = source.line(noticed)
        if not after or _indent(after) <= _indent(line):
            return source.fault(begun, f"not valid YAML: this {opening} is not closed")
    return source.fault(noticed, f"not valid YAML: {text}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _measure(node: yaml.Node) -> None:
    """Refuse aliases that stand for too much, or for what they are part of. Raises MarkedYAMLError."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            if known < 0:
                raise yaml.MarkedYAMLError(problem="a value that is part of itself", problem_mark=node.start_mark)
            return known
        sizes[id(node)] = -1
        found = 1
        if isinstance(node, yaml.SequenceNode):
            found += sum(size(each) for each in cast("list[yaml.Node]", node.value))
        elif isinstance(node, yaml.MappingNode):
            pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
            found += sum(size(key) + size(value) for key, value in pairs)
        if found > MOST_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MOST_VALUES} values, aliases written out", problem_mark=node.start_mark
            )
        sizes[id(node)] = found
        return found

    size(node)


def _construct(node: yaml.Node) -> Any:
    constructor: Any = yaml.SafeLoader("")
    try:
        return constructor.construct_document(node)
    finally:
        constructor.dispose()


class Fields(Generic[T]):
    """A mapping's entries by key, taken one by one; every fault is collected, so that a person sees all at once."""

    def __init__(self, root: Value, known: Iterable[str], faults: list[Fault]) -> None:
        self._entries: dict[str, Value] = {}
        self._keys: dict[str, Value] = {}
        self.faults = faults
        known = list(known)
        try:
            pairs = root.pairs()
        except Wrong as wrong:
            faults.append(root.fault(str(wrong)))
            return
        for key, value in pairs:
            name = key.plain()
            if not isinstance(name, str):
                faults.append(key.fault(f"a key must be text, found {kind(name)}"))
            elif name not in known:
                faults.append(key.fault(f"unknown key '{name}'{did_you_mean(name, known)}"))
            elif name in self._entries:
                faults.append(key.fault(f"'{name}' stands twice"))
            else:
                self._entries[name] = value
                self._keys[name] = key

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def place(self, name: str) -> Value | None:
        """The value as it stands in the file, for faults found later."""
        return self._entries.get(name)

    def take(self, name: str, convert: Callable[[Value], Any], default: Any = None) -> Any:
        """The converted value, or the default where the key is missing or nothing in its value is right."""
        value = self._entries.get(name)
        if value is None:
            return default
        try:
            return convert(value)
        except Wrong as wrong:
            self.faults.extend(wrong.faults or [(wrong.at or value).fault(f"{name}: {wrong}")])
            return default if wrong.rest is None else wrong.rest


def text(value: Value) -> str:
    plain = value.plain()
    if not isinstance(plain, str):
        raise Wrong(f"expected text, found {kind(plain)}")
    return plain


def boolean(value: Value) -> bool:
    plain = value.plain()
    if not isinstance(plain, bool):
        raise Wrong(f"expected true or false, found {kind(plain)}")
    return plain


def integer(low: int = 0, high: int | None = None) -> Callable[[Value], int]:
    def convert(value: Value) -> int:
        plain = value.plain()
        if not isinstance(plain, int) or isinstance(plain, bool):
            raise Wrong(f"expected a whole number, found {kind(plain)}")
        _written_in_digits(value)
        if plain < low or (high is not None and plain > high):
            raise Wrong(f"expected {low} or more, found {plain}" if high is None else f"expected {low} to {high}")
        if plain > MOST_NUMBER:
            raise Wrong(f"expected at most {MOST_NUMBER}, found more")
        return plain

    return convert


def _written_in_digits(value: Value) -> None:
    """YAML reads 1:30 as ninety and 010 as eight; nobody who writes a limit means that."""
    written = str(value.node.value)
    if not _DECIMAL.fullmatch(written) or (written.lstrip("+-")[:1] == "0" and written.lstrip("+-0_")):
        raise Wrong(f"expected a number in plain digits, found '{written}'")


def number(low: float = 0.0, high: float | None = None) -> Callable[[Value], float]:
    def convert(value: Value) -> float:
        plain = value.plain()
        if not isinstance(plain, int | float) or isinstance(plain, bool):
            raise Wrong(f"expected a number, found {kind(plain)}")
        if isinstance(plain, int) or ":" in str(value.node.value):
            _written_in_digits(value)
        if not math.isfinite(plain) or not low <= plain <= (MOST_NUMBER if high is None else high):
            raise Wrong(f"expected {low:g} or more, found {plain}" if high is None else f"expected {low:g} to {high:g}")
        return float(plain)

    return convert


def texts(value: Value) -> tuple[str, ...]:
    """A list of texts; a single text counts as a list of one."""
    if isinstance(value.node, yaml.ScalarNode) and isinstance(plain := value.plain(), str):
        return (plain,)
    found: list[str] = []
    for item in value.items():
        plain = item.plain()
        if not isinstance(plain, str):
            raise Wrong(f"expected text, found {kind(plain)}", item)
        found.append(plain)
    return tuple(found)


def mapping(value: Value) -> Mapping[str, Any]:
    plain = value.plain()
    if not isinstance(plain, dict):
        raise Wrong(f"expected a mapping, found {kind(plain)}")
    return cast("dict[str, Any]", plain)


def one_of(*words: str) -> Callable[[Value], str]:
    def convert(value: Value) -> str:
        plain = value.plain()
        if plain not in words:
            raise Wrong(f"expected {', '.join(words[:-1])} or {words[-1]}, found {kind(plain)}")
        return cast("str", plain)

    return convert
