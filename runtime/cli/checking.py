"""What `elenco check` looks at beside agent files of our own: skills, strictly, and files of other runtimes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from runtime.definitions import Definition, Style
from runtime.errors import Fault
from runtime.handwritten import read_start
from runtime.skills.places import FILE, HEAD_BYTES, Shelf, read_skill

from .visible import one_line


def style_of(path: Path) -> Style:
    """Whose agent files are kept where this one is."""
    parts = path.absolute().parts[:-1]
    if ".claude" in parts:
        return "claude"
    return "opencode" if ".opencode" in parts else "native"


def is_skill(path: Path) -> bool:
    return path.name.lower() == FILE.lower()


def belongs_to_skill(path: Path, top: Path) -> bool:
    """Whether a file below `top` is part of a skill, and not its SKILL.md."""
    if is_skill(path):
        return False
    folders = [folder for folder in path.parents if folder == top or top in folder.parents]
    return any((folder / FILE).exists() for folder in folders)


def skill_files(shelf: Shelf) -> Iterator[tuple[Path, str]]:
    """The SKILL.md files that are the person's own to put right."""
    yield from ((entry.path, entry.shown) for entry in shelf.met if entry.origin != "shipped" and not entry.same_as)


def skill_faults(path: Path, shown: str, shelf: Shelf) -> list[Fault]:
    """A SKILL.md's problems by the letter of the specification, and whether another of its name comes first."""
    lines = _lines(path)
    found: list[Fault] = []
    for problem in read_skill(path).problems:
        source = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
        fault = problem.fault(shown, strict=True)
        found.append(attrs.evolve(fault, source=source, width=max(1, len(source))))
    real = os.path.realpath(path)
    for entry, first in shelf.shadowed:
        if os.path.realpath(entry.path) == real:
            found.append(Fault(shown, 1, f"not used: {first.shown} has that name and comes first", warning=True))
    return found


def _lines(path: Path) -> list[str]:
    try:
        return read_start(path, HEAD_BYTES)[0].decode("utf-8-sig", errors="replace").splitlines()
    except OSError:
        return []


def understood(definition: Definition) -> str:
    """In one line, what a file of another runtime is taken for."""
    parts = [f"as '{definition.name}'", f"tools {', '.join(definition.tools) or 'none'}"]
    parts.append(f"model {definition.model}" if definition.model else "the run's model")
    if definition.subagents:
        parts.append(f"may call {', '.join(definition.subagents)}")
    if definition.skills:
        parts.append(f"skills {definition.skills if definition.skills == 'all' else ', '.join(definition.skills)}")
    if definition.mcps:
        parts.append(f"MCP servers {', '.join(definition.mcps)}")
    if definition.caps.max_steps is not None:
        parts.append(f"at most {definition.caps.max_steps} steps")
    rules = definition.permissions
    parts += [
        f"{effect} {', '.join(written)}"
        for effect, written in (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny))
        if written
    ]
    if definition.thinking is not None:
        parts.append(f"thinking {definition.thinking}")
    return one_line(f"{definition.path}: understood {'; '.join(parts)}", 2000)
