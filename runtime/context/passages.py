"""Passages: the pieces of a file that can answer a question by themselves, each with the headings it stands under.

A passage is a paragraph, a list item, a table row, or a piece of code no longer than a screen. What a reader sees
above it (headings, a table's header, the sentence that leads into a list, the names of class and function) is its
heading: a row is often the answer without holding one word of the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TypeAlias

import attrs

BLOCK_LINES = 16
LEAD_CHARS = 100

Block: TypeAlias = tuple[int, int, str]
"""First line, last line (1-based, inclusive) and heading."""


@attrs.frozen
class Passage:
    """Lines `start_line` to `end_line` of a file; `heading` is what stands above them, joined by ` > `."""

    path: str
    start_line: int
    end_line: int
    heading: str
    text: str
    score: float = 0.0


def split_file(path: str, text: str) -> list[Passage]:
    """The passages of a file, in their order."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    suffix = PurePosixPath(path).suffix.lower()
    splitter = _SPLITTERS.get(suffix, _split_prose if suffix == "" else _split_code)
    return [
        Passage(path, start, end, heading, "\n".join(lines[start - 1 : end])) for start, end, heading in splitter(lines)
    ]


# --- prose -------------------------------------------------------------------------------------------------------

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_ROW = re.compile(r"^\s*\|")
_RULED = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+:.])\1{2,}\s*$")
_MARKS = re.compile(r"[*_`]+|^\s*(?:[-*+>]|\d{1,3}[.)])\s+")


@attrs.define
class _Prose:
    """The walk through a page of prose: the headings above, and the block being read."""

    lines: list[str]
    headings: dict[int, str] = attrs.field(factory=dict[int, str])
    lead: str = ""
    parents: list[tuple[int, str]] = attrs.field(factory=list[tuple[int, str]])
    underlines: str = ""
    start: int = 0
    kind: str = ""

    def heading(self, *more: str) -> str:
        above = [self.headings[level] for level in sorted(self.headings)]
        return " > ".join(part for part in (*above, self.lead, *more) if part)

    def enter(self, level: int, title: str) -> None:
        self.headings = {each: text for each, text in self.headings.items() if each < level}
        self.headings[level] = _plain(title)
        self.lead = ""
        self.parents = []


def _split_prose(lines: list[str]) -> Iterator[Block]:
    page = _Prose(lines)
    number = _front_matter(lines)
    if number:
        yield from _split_config(lines[:number])
    while number < len(lines):
        line = lines[number]
        if not line.strip() or _RULED.match(line):
            number += 1
        elif fence := _FENCE.match(line):
            end = _fence_end(lines, number, fence[1])
            for start in range(number, end, BLOCK_LINES):
                yield start + 1, min(start + BLOCK_LINES, end), page.heading()
            number = end
        elif heading := _HEADING.match(line):
            page.enter(len(heading[1]), heading[2])
            number += 1
        elif _is_underlined(lines, number):
            mark = lines[number + 1].strip()[0]
            if mark not in page.underlines:
                page.underlines += mark
            page.enter(page.underlines.index(mark) + 1, line)
            number += 2
        elif _ROW.match(line):
            end = _while(lines, number, lambda each: bool(_ROW.match(each)))
            yield from _table(page, number, end)
            number = end
        elif item := _ITEM.match(line):
            end = _item_end(lines, number, len(item[1]))
            page.parents = [parent for parent in page.parents if parent[0] < len(item[1])]
            yield number + 1, end, page.heading(*(text for _, text in page.parents))
            page.parents.append((len(item[1]), _lead(lines[number])))
            number = end
        else:
            end = _while(lines, number, _is_paragraph)
            if end < len(lines) and _is_underlined(lines, end - 1):
                end = max(end - 1, number + 1)
            page.lead = ""
            page.parents = []
            yield number + 1, end, page.heading()
            if lines[end - 1].rstrip().endswith(":"):
                page.lead = _lead(" ".join(lines[number:end]))
            number = end


def _table(page: _Prose, start: int, end: int) -> Iterator[Block]:
    first = start
    header = ""
    if end - start >= 2 and _RULED.match(page.lines[start + 1]):
        header = " | ".join(cell for cell in map(_plain, page.lines[start].strip().strip("|").split("|")) if cell)
        first = start + 2
    for row in range(first, end):
        if not _RULED.match(page.lines[row]):
            yield row + 1, row + 1, page.heading(header)


def _front_matter(lines: list[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:200], start=1):
            if line.rstrip() == "---":
                return number + 1
    return 0


def _fence_end(lines: list[str], start: int, fence: str) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].strip().startswith(fence) and not lines[number].strip().strip(fence[0]):
            return number + 1
    return len(lines)


def _item_end(lines: list[str], start: int, indent: int) -> int:
    """A list item goes on over indented lines, and over lazy ones, up to a blank line or the next item."""
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip() or _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line) or _ROW.match(line):
            return number
        if len(line) - len(line.lstrip()) < indent:
            return number
    return len(lines)


def _is_paragraph(line: str) -> bool:
    return bool(line.strip()) and not (
        _HEADING.match(line) or _FENCE.match(line) or _ROW.match(line) or _ITEM.match(line)
    )


def _is_underlined(lines: list[str], number: int) -> bool:
    if number + 1 >= len(lines) or not lines[number].strip() or _UNDERLINE.match(lines[number]):
        return False
    under = _UNDERLINE.match(lines[number + 1])
    above = lines[number - 1].strip() if number else ""
    return bool(under) and not above and len(lines[number + 1].rstrip()) >= min(len(lines[number].strip()), 3)


def _while(lines: list[str], start: int, holds: Callable[[str], bool]) -> int:
    end = start + 1
    while end < len(lines) and holds(lines[end]):
        end += 1
    return end


def _plain(text: str) -> str:
    return _MARKS.sub("", text).strip()


def _lead(text: str) -> str:
    plain = " ".join(_plain(text).split())
    return plain if len(plain) <= LEAD_CHARS else plain[:LEAD_CHARS].rsplit(" ", 1)[0]


# --- code --------------------------------------------------------------------------------------------------------

_DEF_WORDS = ("def ", "class ", "async ")
_PYTHON_DEF = re.compile(r"^(\s*)(?:async\s+def|def|class)\s+(\w+)")
_OTHER_DEF = re.compile(
    r"\b(?:function\*?|func|fn|class|struct|interface|trait|impl|enum|module|namespace|sub|proc|def|type)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_]\w*)|^(?:\w[\w<>:*&\s]*\s[*&]*)?([A-Za-z_]\w+)\s*\([^;{}]*\)[^;{}]*\{\s*$"
)
_NO_NAMES = frozenset({"if", "for", "while", "switch", "catch", "return", "else", "do", "with", "match"})


def _split_python(lines: list[str]) -> Iterator[Block]:
    """Definitions with their first lines, then what follows in blocks; a blank line ends a block outside functions."""
    scopes: list[tuple[int, str]] = []
    start = 0
    number = 0
    while number <= len(lines):
        line = lines[number] if number < len(lines) else ""
        definition = _PYTHON_DEF.match(line) if line.lstrip().startswith(_DEF_WORDS) else None
        size = number - start
        indented = line[:1] in (" ", "\t")
        leaves = bool(scopes) and bool(line.strip()) and not indented and line[0] not in ")]}#"
        if number == len(lines) or definition or leaves or size >= BLOCK_LINES or not line.strip():
            above = number
            if definition:
                while above > start and lines[above - 1].lstrip().startswith(("@", "#")):
                    above -= 1
            keeps = not line.strip() and number < len(lines) and scopes and size < BLOCK_LINES // 2
            if not keeps:
                yield from _block(lines, start, above, ".".join(name for _, name in scopes))
                start = above
        if definition:
            indent = len(definition[1].expandtabs())
            scopes = [scope for scope in scopes if scope[0] < indent]
            scopes.append((indent, definition[2]))
        elif leaves:
            scopes = []
        number += 1


def _split_code(lines: list[str]) -> Iterator[Block]:
    """Any other language: blocks between blank lines, under the last name that was defined."""
    name = ""
    start = 0
    for number in range(len(lines) + 1):
        line = lines[number] if number < len(lines) else ""
        if number == len(lines) or not line.strip() or number - start >= BLOCK_LINES:
            name = next((found for each in lines[start:number] if (found := _defined(each))), name)
            yield from _block(lines, start, number, name)
            start = number


def _defined(line: str) -> str:
    found = _OTHER_DEF.search(line)
    name: str = (found[1] or found[2]) if found else ""
    return "" if name in _NO_NAMES else name


def _block(lines: list[str], start: int, end: int, heading: str) -> Iterator[Block]:
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    if start < end:
        yield start + 1, end, heading


# --- settings and tables -----------------------------------------------------------------------------------------

_SECTION = re.compile(r"^\s*\[+([^\[\]]+)\]+\s*(?:[#;].*)?$")
_KEY = re.compile(r"^(\s*)(?:- )?[\"']?([\w./-]+)[\"']?\s*:\s*(?:[|>][+-]?)?\s*(?:#.*)?$")


def _split_config(lines: list[str]) -> Iterator[Block]:
    """One setting with the comment above it, under its section or the keys it is nested in."""
    section = ""
    keys: list[tuple[int, str]] = []
    start = 0
    for number, line in enumerate(lines):
        if not line.strip():
            yield from _block(lines, start, number, _under(section, keys))
            start = number
        elif found := _SECTION.match(line):
            yield from _block(lines, start, number, _under(section, keys))
            section, keys, start = found[1].strip(), [], number + 1
        elif line.strip().startswith(("#", ";", "//")):
            if start < number and not lines[start].strip().startswith(("#", ";", "//")):
                yield from _block(lines, start, number, _under(section, keys))
                start = number
        else:
            key = _KEY.match(line)
            indent = len(line) - len(line.lstrip())
            shallower = bool(keys) and indent <= keys[-1][0]
            if key or shallower or number - start >= BLOCK_LINES // 2:
                yield from _block(lines, start, number, _under(section, keys))
                start = number
                keys = [each for each in keys if each[0] < indent]
            if key:
                keys.append((indent, key[2]))
    yield from _block(lines, start, len(lines), _under(section, keys))


def _under(section: str, keys: list[tuple[int, str]]) -> str:
    return " > ".join(part for part in (section, *(name for _, name in keys)) if part)


def _split_table(lines: list[str]) -> Iterator[Block]:
    header = lines[0][: 2 * LEAD_CHARS] if lines else ""
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield number, number, header


_SPLITTERS: dict[str, Callable[[list[str]], Iterator[Block]]] = {
    **dict.fromkeys((".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ".mdx"), _split_prose),
    **dict.fromkeys((".py", ".pyi"), _split_python),
    **dict.fromkeys((".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env", ".lock"), _split_config),
    **dict.fromkeys((".csv", ".tsv"), _split_table),
}
