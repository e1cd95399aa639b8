"""An agent file of another runtime becomes a Definition: tools, rules and limits mapped, what is lost told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from runtime.definitions import Definition, Style
from runtime.errors import DefinitionError, Fault
from runtime.frontmatter import Source
from runtime.handwritten import read_bytes
from runtime.known import TOOL_NAMES
from runtime.leniency import as_faults, front, parse_leniently

from . import claude, opencode
from .taking import Taking

STYLES: tuple[Style, ...] = ("claude", "opencode")


@attrs.frozen
class Foreign:
    """A file of another runtime: what it is here, and its `fields` as they were written there."""

    definition: Definition
    fields: Mapping[str, Any]


def load_foreign(path: Path, shown: str, style: Style, name: str) -> Definition:
    """Read one file; `name` is what its place says it is called. Raises DefinitionError, OSError."""
    raw = read_bytes(path)
    try:
        content = raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DefinitionError([Fault(shown, line, "not UTF-8 text; save the file as UTF-8")]) from None
    return read_foreign(content, shown, style, name).definition


def read_foreign(content: str, shown: str, style: Style, name: str, there: Collection[str] = TOOL_NAMES) -> Foreign:
    """What a file's text stands for, given the tools that are `there`. Raises DefinitionError listing every fault."""
    dialect = claude if style == "claude" else opencode
    cut = front(content)
    header = cut.split.header
    if header is None:
        raise DefinitionError([Fault(shown, 1, "an agent file begins with front matter between two lines '---'")])
    source = Source(shown, header, cut.split.header_line)
    root, remarks = parse_leniently(source, dialect.KEYS)
    if root is None:
        raise DefinitionError(
            [Fault(shown, cut.split.header_line, "the front matter is empty; it needs a description")]
        )
    taking = Taking(root, shown, dialect.KEYS, dialect.RIGHTS)
    taking.warnings += as_faults(shown, (*cut.remarks, *remarks))
    definition, fields = dialect.understand(taking, name, cut.split.body.strip("\n"), there)
    fields = {**taking.plain(), **fields}
    if taking.faults:
        raise DefinitionError(sorted(taking.faults, key=lambda fault: (fault.line, fault.column)))
    warnings = tuple(sorted(dict.fromkeys(taking.warnings), key=lambda fault: (fault.line, fault.column)))
    return Foreign(attrs.evolve(definition, path=shown, style=style, instructions=True, warnings=warnings), fields)
