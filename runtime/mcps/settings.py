"""Where MCP servers are named: elenco.yaml and .mcp.json of the workspace, the user's config.yaml; the first wins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runtime.errors import DefinitionError, Fault
from runtime.frontmatter import Fields, Source, Wrong, parse
from runtime.handwritten import read_text

from .entry import Entry, entries

if TYPE_CHECKING:
    from runtime.config import Config

JSON_FILE = ".mcp.json"


@attrs.frozen
class Servers:
    """All servers by name, and what is odd about the files that name them."""

    entries: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    warnings: tuple[Fault, ...] = ()


def servers_of(workspace: Path, here: Config, user: Config) -> Servers:
    """The servers that agents of a workspace can have. Raises DefinitionError for a faulty .mcp.json."""
    shared = load(workspace / JSON_FILE, JSON_FILE)
    return Servers({**user.mcp_servers, **shared.entries, **here.mcp_servers}, shared.warnings)


def switched(entries: Mapping[str, Entry], on: Iterable[str], off: Iterable[str]) -> Mapping[str, Entry]:
    """The servers with some enabled and others disabled for one run; a name that no agent has is of no account."""
    wanted = {**dict.fromkeys(on, False), **dict.fromkeys(off, True)}
    return {name: attrs.evolve(entry, disabled=wanted.get(name, entry.disabled)) for name, entry in entries.items()}


def load(path: Path, shown: str) -> Servers:
    """Read one `.mcp.json`; a missing one names nobody. Raises DefinitionError listing every fault."""
    try:
        content = read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return Servers()
    except UnicodeDecodeError:
        raise DefinitionError([Fault(shown, 1, "not UTF-8 text; save the file as UTF-8")]) from None
    except OSError as error:
        raise DefinitionError([Fault(shown, 1, f"cannot be read: {error.strerror}")]) from None
    return read(content, shown)


def read(content: str, shown: str) -> Servers:
    """The servers a `.mcp.json` text names. Raises DefinitionError listing every fault."""
    # A tab can stand between JSON's words alone, where YAML, which knows the places, wants a blank.
    source = Source(shown, content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\t", " "))
    if not source.text.strip():
        return Servers()
    try:
        json.loads(source.text)
    except json.JSONDecodeError as error:
        line = source.lines[error.lineno - 1]
        raise DefinitionError([Fault(shown, error.lineno, f"not valid JSON: {error.msg}", error.colno, line)]) from None
    except RecursionError:
        raise DefinitionError([Fault(shown, 1, "nested too deeply")]) from None
    root = parse(source)
    if root is None:
        return Servers()
    faults: list[Fault] = []
    warnings: list[Fault] = []
    fields = Fields[Any](root, ("mcpServers",), faults)
    unknown = [fault for fault in faults if fault.text.startswith("unknown key")]
    warnings += (attrs.evolve(fault, text=f"{fault.text}: not used", warning=True) for fault in unknown)
    faults[:] = [fault for fault in faults if fault not in unknown]
    found: dict[str, Entry] = {}
    if (block := fields.place("mcpServers")) is not None:
        try:
            found = entries(block, foreign=True, warnings=warnings)
        except Wrong as wrong:
            faults += wrong.faults or [(wrong.at or block).fault(f"mcpServers: {wrong}")]
    if faults:
        raise DefinitionError(sorted(faults, key=lambda fault: (fault.line, fault.column)))
    return Servers(found, tuple(warnings))
