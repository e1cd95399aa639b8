"""Front matter as people write it: what stands before it, values that want quotes, lines that belong to none.

Each mending is told, so that the file can be put right. What cannot be mended for certain is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import attrs

from .errors import DefinitionError, Fault
from .frontmatter import Source, Split, Value, parse, split
from .nearness import resembles

_ENTRY = re.compile(r"(?P<key>[A-Za-z_][\w-]*):(?P<gap>[ \t]+)(?P<value>\S.*?)[ \t]*")
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w-]*)[ \t]*:(?=[ \t]|$)")
_NOT_PLAIN = frozenset("\"'[]{}|>&*!@%`#,?-")
_BEFORE = 50


@attrs.frozen
class Front:
    """A file cut in two, and what was passed over on the way to it."""

    split: Split
    remarks: tuple[Remark, ...] = ()


@attrs.frozen
class Remark:
    """What was mended, at a line of the file."""

    line: int
    text: str


def front(text: str) -> Front:
    """Cut front matter from body; a byte order mark, blank lines and comments before it are passed over."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text[:3] == "---" and text.split("\n", 1)[0].rstrip() == "---":
        return Front(split(text))
    lines = text.split("\n", _BEFORE)
    skipped = _passed_over(lines[:_BEFORE])
    if not skipped or skipped >= len(lines) or lines[skipped].rstrip() != "---":
        return Front(Split(None, 1, text, 1))
    cut = split("\n".join(lines[skipped:]))
    moved = attrs.evolve(cut, header_line=cut.header_line + skipped, body_line=cut.body_line + skipped)
    return Front(moved, (Remark(1, "the front matter must come first; what stands before it was passed over"),))


def _passed_over(lines: list[str]) -> int:
    inside = False
    for number, line in enumerate(lines):
        bare = line.strip()
        if inside or bare.startswith("<!--"):
            inside = "-->" not in bare
        elif bare:
            return number
    return len(lines)


def parse_leniently(source: Source, known: Collection[str] = ()) -> tuple[Value | None, tuple[Remark, ...]]:
    """The YAML's root value and what was mended to get it; with `known` keys, stray lines join the value above them.

    Raises DefinitionError, as the text stands, for what cannot be mended.
    """
    try:
        return parse(source), ()
    except DefinitionError as error:
        for mended, remarks in _mendings(source, known):
            try:
                return parse(attrs.evolve(source, text=mended)), tuple(remarks)
            except DefinitionError:
                continue
        raise error


def _mendings(source: Source, known: Collection[str]) -> Iterator[tuple[str, list[Remark]]]:
    quoted = _quoted(source)
    if quoted is not None:
        yield quoted
    if known and (joined := _joined(source, known)) is not None:
        yield joined


def _quoted(source: Source) -> tuple[str, list[Remark]] | None:
    """Values that hold a colon and a blank, or follow a tab, put in quotes; their indented lines join them."""
    lines = source.text.split("\n")
    remarks: list[Remark] = []
    number = 0
    while number < len(lines):
        found = _ENTRY.fullmatch(lines[number])
        if found is not None and found["value"][0] not in _NOT_PLAIN:
            value, tab = found["value"], "\t" in found["gap"]
            after = number + 1
            if ": " in value or value.endswith(":"):
                while after < len(lines) and (lines[after][:1] in (" ", "\t")):
                    value += f" {lines[after].strip()}"
                    lines[after] = ""
                    after += 1
                lines[number] = f"{found['key']}: {_in_quotes(value)}"
                why = f"the value of {found['key']} holds a colon; put it in quotes"
                remarks.append(Remark(source.first_line + number, why))
            elif tab:
                lines[number] = f"{found['key']}: {value}"
                remarks.append(Remark(source.first_line + number, "a tab follows the colon; put a blank there"))
            number = after
        else:
            number += 1
    return ("\n".join(lines), remarks) if remarks else None


def _in_quotes(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _joined(source: Source, known: Collection[str]) -> tuple[str, list[Remark]] | None:
    """Lines that begin with no known key made part of the description above them; None where one might be meant."""
    entries: list[tuple[str, list[str]]] = []
    stray: int | None = None
    for number, line in enumerate(source.text.rstrip("\n").split("\n")):
        found = _KEY.match(line)
        if found is not None and found["key"] in known:
            entries.append((found["key"], [line]))
            continue
        if not entries:
            return None
        if found is not None and resembles(found["key"], known) is not None:
            return None
        if line.strip() and not line.startswith((" ", "\t")) and entries[-1][0] == "description":
            stray = number if stray is None else stray
        entries[-1][1].append(line)
    if stray is None:
        return None
    written = [_block(lines) if key == "description" and len(lines) > 1 else lines for key, lines in entries]
    text = "\n".join(line for lines in written for line in lines) + "\n"
    why = "these lines were taken as part of the description; indent them below 'description: |'"
    return text, [Remark(source.first_line + stray, why)]


def _block(lines: list[str]) -> list[str]:
    first = lines[0].partition(":")[2].strip()
    return ["description: |-", *(f"  {line}" for line in (first, *lines[1:]))]


def as_faults(path: str, remarks: tuple[Remark, ...]) -> tuple[Fault, ...]:
    """The remarks as warnings of the file at `path`."""
    return tuple(Fault(path, remark.line, remark.text, warning=True) for remark in remarks)
