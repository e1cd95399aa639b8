"""The cast: every agent that can be found, the first place wins; the rest of a name's files are shadowed, not lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from . import shipped
from .config import user_folder
from .definitions import Definition, FaultyAgent, Style, load
from .errors import DefinitionError, Fault, UsageError, did_you_mean

Origin: TypeAlias = Literal["workspace", "user", "shipped"]

WORKSPACE_PLACES = ("agents", ".agents/agents")
FOREIGN_PLACES: tuple[tuple[str, Style], ...] = (
    (".claude/agents", "claude"),
    (".opencode/agents", "opencode"),
    (".opencode/agent", "opencode"),
)


@attrs.frozen
class Member:
    """An agent file that was found: its Definition, or the faults that make it unusable and what is readable of it."""

    name: str
    path: Path
    shown: str
    origin: Origin
    definition: Definition | None
    faults: tuple[Fault, ...] = ()
    readable: Definition | None = None


@attrs.frozen
class Cast:
    """All agents by name, in the order their places come; `shadowed` are later files of a name already taken.

    `disabled` are those whose files say that they are offered to nobody.
    """

    members: dict[str, Member]
    shadowed: tuple[Member, ...] = ()
    disabled: tuple[Member, ...] = ()

    def get(self, name: str) -> Definition:
        """The usable Definition of that name. Raises UsageError for none, DefinitionError for a faulty file."""
        member = self.members.get(name)
        if member is None:
            raise UsageError(f"{self.unknown(name)}  (elenco agents)")
        if member.definition is None and member.readable is not None:
            raise FaultyAgent(member.faults, attrs.evolve(member.readable, name=name))
        if member.definition is None:
            raise DefinitionError(member.faults)
        return member.definition

    def unknown(self, name: str) -> str:
        """What to tell of a name that no agent has."""
        return f"unknown agent '{name}'{self.misnamed.get(name) or did_you_mean(name, self.members)}"

    @property
    def misnamed(self) -> dict[str, str]:
        """For the name of a file whose agent is called otherwise: how it is called, to end an error message with."""
        return {
            member.path.stem: f"; the agent in {member.shown} is called '{member.name}'"
            for member in self.members.values()
            if member.path.stem not in self.members
        }

    def given(self, name: str, servers: Iterable[str]) -> Cast:
        """The cast with MCP servers added to those an agent's file names; an agent that is unusable stays as it is."""
        member = self.members.get(name)
        if member is None or member.definition is None:
            return self
        mcps = tuple(dict.fromkeys((*member.definition.mcps, *servers)))
        richer = attrs.evolve(member, definition=attrs.evolve(member.definition, mcps=mcps))
        return attrs.evolve(self, members={**self.members, name: richer})

    def watched(self, loops: Mapping[str, Any]) -> Cast:
        """The cast with what settings say of the loop guard, under what each agent's own file says of it."""
        if not loops:
            return self
        return attrs.evolve(self, members={name: _watched(member, loops) for name, member in self.members.items()})

    def without_model(self, name: str) -> Cast:
        """The cast with an agent that asks the run's model, also where its file names another."""
        member = self.members.get(name)
        if member is None or member.definition is None:
            return self
        freed = attrs.evolve(member, definition=attrs.evolve(member.definition, model=None))
        return attrs.evolve(self, members={**self.members, name: freed})

    def closure(self, name: str) -> list[Definition]:
        """The agent and all it may reach by delegation, each once. Raises as `get`, at the file that names it."""
        found: dict[str, Definition] = {}
        waiting = [name]
        while waiting:
            current = waiting.pop(0)
            if current in found:
                continue
            found[current] = definition = self.get(current)
            for child in definition.subagents:
                if child not in self.members:
                    raise DefinitionError([Fault(definition.path, 1, self.unknown(child))])
            waiting.extend(definition.subagents)
        return list(found.values())


def _watched(member: Member, loops: Mapping[str, Any]) -> Member:
    definition = member.definition
    if definition is None or definition.loops == "off":
        return member
    return attrs.evolve(member, definition=attrs.evolve(definition, loops={**loops, **definition.loops}))


def find(workspace: Path, user: Path | None = None) -> Cast:
    """Look in all places. A file that cannot be read is a member with faults, so that it is told, not missed."""
    members: dict[str, Member] = {}
    shadowed: list[Member] = []
    disabled: list[Member] = []
    for member in _places(workspace, user if user is not None else user_folder()):
        if member.definition is not None and member.definition.disabled:
            disabled.append(member)
        elif member.name in members:
            shadowed.append(member)
        else:
            members[member.name] = member
    members = {name: _with_known_children(member, members) for name, member in members.items()}
    return Cast(members, tuple(shadowed), tuple(disabled))


def _with_known_children(member: Member, members: dict[str, Member]) -> Member:
    """Another runtime's file may name agents that are not here: it goes without them, and that is told."""
    definition = member.definition
    if definition is None or definition.style == "native":
        return member
    missing = [
        name for name in definition.subagents if (child := members.get(name)) is None or child.definition is None
    ]
    if not missing:
        return member
    told = (Fault(definition.path, 1, f"there is no agent '{name}' to call", warning=True) for name in missing)
    warnings = (*definition.warnings, *told)
    kept = tuple(name for name in definition.subagents if name not in missing)
    known = attrs.evolve(definition, subagents=kept, warnings=warnings)
    return attrs.evolve(member, definition=known, faults=warnings)


def _places(workspace: Path, user: Path | None) -> Iterator[Member]:
    for place in WORKSPACE_PLACES:
        yield from _folder(workspace / place, "workspace", place)
    for place, style in FOREIGN_PLACES:
        yield from _foreign(workspace / place, place, style)
    if user is not None:
        yield from _folder(user / "agents", "user", str(user / "agents"))
    yield from _folder(shipped.folder("agents"), "shipped", "shipped:agents")


def _foreign(folder: Path, shown: str, style: Style) -> Iterator[Member]:
    """The agent files of another runtime, those in folders below as well."""
    if not folder.is_dir():
        return
    from .foreign.models import settled
    from .foreign.read import load_foreign

    for path in sorted(path for path in folder.rglob("*.md") if path.is_file()):
        below = path.relative_to(folder)
        name = below.with_suffix("").as_posix()
        place = f"{shown}/{below.as_posix()}"
        try:
            definition = settled(load_foreign(path, place, style, name), os.environ)
        except DefinitionError as error:
            yield Member(path.stem, path, place, "workspace", None, error.faults)
        except OSError as error:
            fault = Fault(place, 1, f"cannot be read: {error.strerror}")
            yield Member(path.stem, path, place, "workspace", None, (fault,))
        else:
            yield Member(definition.name, path, place, "workspace", definition, definition.warnings)


def _folder(folder: Path, origin: Origin, shown: str) -> Iterator[Member]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".md" and path.is_file())
    except OSError:
        return
    for path in files:
        name = f"{shown}/{path.name}"
        try:
            definition = load(path, name)
        except FaultyAgent as faulty:
            readable = faulty.readable
            yield Member(readable.name or path.stem, path, name, origin, None, faulty.faults, readable)
        except DefinitionError as error:
            yield Member(path.stem, path, name, origin, None, error.faults)
        except OSError as error:
            fault = Fault(name, 1, f"cannot be read: {error.strerror}")
            yield Member(path.stem, path, name, origin, None, (fault,))
        else:
            yield Member(definition.name, path, name, origin, definition, definition.warnings)
