"""`elenco check`: every fault of agent files, skills and settings, with file, line, column and the line itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runtime import config as settings
from runtime.cast import FOREIGN_PLACES, Cast, find
from runtime.config import ProviderConfig
from runtime.definitions import KEYS, Definition, FaultyAgent, Style, read
from runtime.errors import DefinitionError, Fault, UsageError
from runtime.foreign.models import settled
from runtime.foreign.read import read_foreign
from runtime.frontmatter import Source, split
from runtime.handwritten import read_bytes
from runtime.known import KeyMissing, ModelFlags, check_name
from runtime.mcps import settings as servers
from runtime.mcps.settings import JSON_FILE
from runtime.plugins import plugins
from runtime.skills.hired import explained
from runtime.skills.places import find_skills
from runtime.vetting import doubtful_models, near_placeholders, ring_of, rule_names, together, vet_agent, vet_config
from runtime.workplace import check_workspace

from .checking import belongs_to_skill, is_skill, skill_faults, skill_files, style_of, understood
from .faults import count_of, excerpts

if TYPE_CHECKING:
    from runtime.prices import ModelInfo

PLACES = ("agents", ".agents/agents")


def run(arguments: argparse.Namespace) -> int:
    """Print the faults on stdout; 2 if there is one, warnings alone are no reason. Raises UsageError."""
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    named = list(_named(arguments.paths))
    look = Look(workspace)
    files = named if arguments.paths else [*_usual(workspace), *skill_files(look.shelf)]
    faults = [fault for path, shown in files for fault in look.at(path, shown)]
    for line in look.understood:
        print(line)
    if faults:
        print(excerpts(faults))
    wrong = sum(not fault.warning for fault in faults)
    if arguments.effective:
        from .effective import show_effective

        show_effective(workspace)
    print(_summary(len(files), wrong, len(faults) - wrong), file=sys.stderr)
    return 2 if wrong else 0


def _summary(files: int, faults: int, warnings: int) -> str:
    if not files:
        return "nothing to check here: no agents/*.md, no skills, no elenco.yaml   (elenco init makes a starter)"
    found = [count_of(faults, "fault")] if faults else []
    found += [count_of(warnings, "warning")] if warnings else []
    return f"{count_of(files, 'file')} checked: {', '.join(found) or 'no fault'}"


def _named(paths: list[str]) -> Iterator[tuple[Path, str]]:
    for name in paths:
        path = Path(name)
        if path.is_dir():
            files = (file for file in sorted(path.rglob("*.md")) if not belongs_to_skill(file, path))
            yield from ((file, str(file)) for file in files)
            yield from ((file, str(file)) for file in (*sorted(path.glob("*.yaml")), *path.glob(JSON_FILE)))
        elif path.exists():
            yield path, name
        else:
            raise UsageError(f"there is no file {name}")


def _usual(workspace: Path) -> Iterator[tuple[Path, str]]:
    for place in PLACES:
        for file in sorted((workspace / place).glob("*.md")):
            yield file, f"{place}/{file.name}"
    for place, _ in FOREIGN_PLACES:
        for file in sorted((workspace / place).rglob("*.md")):
            yield file, f"{place}/{file.relative_to(workspace / place).as_posix()}"
    for name in ("elenco.yaml", JSON_FILE):
        if (workspace / name).exists():
            yield workspace / name, name
    if (user := settings.user_folder()) is not None:
        for file in sorted((user / "agents").glob("*.md")):
            yield file, str(file)
        if (user / "config.yaml").exists():
            yield user / "config.yaml", str(user / "config.yaml")


def _models_of(config: settings.Config) -> dict[str, ModelInfo]:
    if not config.models:
        return {}
    from runtime.prices import models_from

    return models_from(config.models, "")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


class Look:
    """What a file's names are held against: the cast, the tools, the providers of the settings as far as readable.

    `tools` are further ones; `told` hears what is no fault of the file: a key that is not set.
    """

    def __init__(self, workspace: Path, tools: Iterable[str] = (), told: Callable[[str], None] = _tell) -> None:
        self._workspace = workspace
        self._told = told
        self._cast: Cast = find(workspace)
        self.shelf = find_skills(workspace)
        self.understood: list[str] = []
        from runtime.tools.registry import built_in

        self._tools = [*(tool.name for tool in (*built_in(), *plugins().tools)), *tools]
        self._providers: dict[str, ProviderConfig] = {}
        self._models: dict[str, ModelInfo] = {}
        self._servers: set[str] = set()
        user = settings.user_folder()
        for path in [*([user / "config.yaml"] if user is not None else []), workspace / "elenco.yaml"]:
            try:
                found = settings.load(path, str(path))
            except DefinitionError:
                continue
            self._providers |= found.providers
            with suppress(UsageError):  # The look at that file tells it.
                self._models |= _models_of(found)
            self._servers |= found.mcp_servers.keys()
        with suppress(DefinitionError):
            self._servers |= servers.load(workspace / JSON_FILE, JSON_FILE).entries.keys()

    def at(self, path: Path, shown: str) -> list[Fault]:
        try:
            content = read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            return [Fault(shown, line, "not UTF-8 text; save the file as UTF-8")]
        except OSError as error:
            return [Fault(shown, 1, f"cannot be read: {error.strerror}")]
        warnings: list[Fault] = []
        try:
            if is_skill(path):
                found = skill_faults(path, shown, self.shelf)
            elif (style := style_of(path)) != "native" and path.suffix == ".md":
                found = self._foreign(path, shown, content, style)
            elif path.suffix in (".yaml", ".yml"):
                names = rule_names(self._tools, self._cast.members)
                found = vet_config(
                    settings.read(content, shown), content, self._check_model(shown), names, self._servers
                )
                warnings = doubtful_models(Source(shown, content), settings.KEYS, self._models)
            elif path.suffix == ".json":
                found = list(servers.read(content, shown).warnings)
            else:
                definition, found = self._native(content, shown)
                warnings = self._shadow(definition.name, path, shown)
        except DefinitionError as error:
            found = list(error.faults)
        return sorted([*found, *warnings], key=lambda fault: (fault.line, fault.column))

    def at_draft(self, content: str, shown: str) -> list[Fault]:
        """The faults of an agent file that is not saved yet."""
        try:
            _, found = self._native(content, shown)
        except DefinitionError as error:
            found = list(error.faults)
        return sorted(found, key=lambda fault: (fault.line, fault.column))

    def _native(self, content: str, shown: str) -> tuple[Definition, list[Fault]]:
        """One of our own files as far as it can be read, with its faults and warnings. Raises DefinitionError."""
        faults: tuple[Fault, ...] = ()
        try:
            definition = read(content, shown)
            warnings = definition.warnings
        except FaultyAgent as faulty:
            definition, faults = faulty.readable, faulty.faults
            warnings = ()  # That a key is missing is no news where it is mistyped.
        warnings = (*warnings, *self._ring(definition), *near_placeholders(definition, content))
        cut = split(content)
        warnings += (*doubtful_models(Source(shown, cut.header or "", cut.header_line), KEYS, self._models),)
        return definition, [*together(faults, self._vetted(definition, content, shown)), *warnings]

    def _vetted(self, definition: Definition, content: str, shown: str) -> list[Fault]:
        found = vet_agent(
            definition,
            content,
            agents=[*self._cast.members, definition.name],
            tools=self._tools,
            servers=self._servers,
            skills=self.shelf.skills,
            strict=True,
            check_model=self._check_model(shown),
            workspace=self._workspace,
            hints=self._cast.misnamed,
        )
        return explained(found, self.shelf)

    def _foreign(self, path: Path, shown: str, content: str, style: Style) -> list[Fault]:
        """Another runtime's file as the cast takes it, with what is understood kept to be told."""
        here = path.resolve()
        members = [*self._cast.members.values(), *self._cast.shadowed, *self._cast.disabled]
        member = next((each for each in members if each.path.resolve() == here), None)
        if member is not None and member.definition is not None:
            definition = attrs.evolve(member.definition, path=shown)
        else:
            definition = settled(read_foreign(content, shown, style, path.stem).definition, os.environ)
        self.understood.append(understood(definition))
        warnings = [attrs.evolve(fault, path=shown) for fault in definition.warnings]
        return [*warnings, *self._shadow(definition.name, path, shown)]

    def _ring(self, definition: Definition) -> list[Fault]:
        below = {
            name: member.definition.subagents
            for name, member in self._cast.members.items()
            if member.definition is not None
        }
        ring = ring_of(definition.name, {**below, definition.name: definition.subagents})
        text = f"its subagents lead back to it: {' > '.join(ring)}; max_depth ends that"
        return [Fault(definition.path, 1, text, warning=True)] if ring else []

    def _check_model(self, shown: str) -> Callable[[str], None]:
        def check(name: str) -> None:
            try:
                check_name(name, ModelFlags(), self._providers, os.environ, shown)
            except KeyMissing as missing:
                self._told(f"{shown}: {missing}")

        return check

    def _shadow(self, name: str, path: Path, shown: str) -> list[Fault]:
        first = self._cast.members.get(name)
        here = path.resolve()
        if first is None or first.path.resolve() == here:
            return []
        if all(member.path.resolve() != here for member in self._cast.shadowed):
            return []
        return [Fault(shown, 1, f"not used: {first.shown} has that name and comes first", warning=True)]
