"""`elenco check`: every fault of agent files and settings, with file, line, column and the line itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from runtime import config as settings
from runtime.cast import Cast, find
from runtime.config import ProviderConfig
from runtime.definitions import read
from runtime.errors import DefinitionError, Fault, UsageError
from runtime.handwritten import read_bytes
from runtime.known import KeyMissing, ModelFlags, check_name
from runtime.vetting import vet_agent, vet_config

from .faults import count_of, excerpts

PLACES = ("agents", ".agents/agents")


def run(arguments: argparse.Namespace) -> int:
    """Print the faults on stdout; 2 if there is one, warnings alone are no reason. Raises UsageError."""
    workspace = Path(arguments.workspace or ".")
    if not workspace.is_dir():
        raise UsageError(f"the workspace {workspace} is no folder")
    files = list(_named(arguments.paths)) if arguments.paths else list(_usual(workspace))
    look = _Look(workspace)
    faults = [fault for path, shown in files for fault in look.at(path, shown)]
    if faults:
        print(excerpts(faults))
    wrong = sum(not fault.warning for fault in faults)
    print(_summary(len(files), wrong, len(faults) - wrong), file=sys.stderr)
    return 2 if wrong else 0


def _summary(files: int, faults: int, warnings: int) -> str:
    if not files:
        return "nothing to check here: no agents/*.md, no elenco.yaml   (elenco init makes a starter)"
    found = [count_of(faults, "fault")] if faults else []
    found += [count_of(warnings, "warning")] if warnings else []
    return f"{count_of(files, 'file')} checked: {', '.join(found) or 'no fault'}"


def _named(paths: list[str]) -> Iterator[tuple[Path, str]]:
    for name in paths:
        path = Path(name)
        if path.is_dir():
            yield from ((file, str(file)) for file in sorted(path.rglob("*.md")))
            yield from ((file, str(file)) for file in sorted(path.glob("*.yaml")))
        elif path.exists():
            yield path, name
        else:
            raise UsageError(f"there is no file {name}")


def _usual(workspace: Path) -> Iterator[tuple[Path, str]]:
    for place in PLACES:
        for file in sorted((workspace / place).glob("*.md")):
            yield file, f"{place}/{file.name}"
    if (workspace / "elenco.yaml").exists():
        yield workspace / "elenco.yaml", "elenco.yaml"
    if (user := settings.user_folder()) is not None:
        for file in sorted((user / "agents").glob("*.md")):
            yield file, str(file)
        if (user / "config.yaml").exists():
            yield user / "config.yaml", str(user / "config.yaml")


class _Look:
    """What a file's names are held against: the cast, the tools, the providers of the settings as far as readable."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._cast: Cast = find(workspace)
        from runtime.tools.registry import built_in

        self._tools = [tool.name for tool in built_in()]
        self._providers: dict[str, ProviderConfig] = {}
        user = settings.user_folder()
        for path in [*([user / "config.yaml"] if user is not None else []), workspace / "elenco.yaml"]:
            try:
                self._providers |= settings.load(path, str(path)).providers
            except DefinitionError:
                continue

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
            if path.suffix in (".yaml", ".yml"):
                found = vet_config(settings.read(content, shown), content, self._check_model(shown))
            else:
                definition = read(content, shown)
                warnings = [*definition.warnings, *self._shadow(definition.name, path, shown)]
                found = vet_agent(
                    definition,
                    content,
                    agents=[*self._cast.members, definition.name],
                    tools=self._tools,
                    check_model=self._check_model(shown),
                    workspace=self._workspace,
                )
        except DefinitionError as error:
            found = list(error.faults)
        return sorted([*found, *warnings], key=lambda fault: (fault.line, fault.column))

    def _check_model(self, shown: str) -> Callable[[str], None]:
        def check(name: str) -> None:
            try:
                check_name(name, ModelFlags(), self._providers, os.environ, shown)
            except KeyMissing as missing:
                print(f"{shown}: {missing}", file=sys.stderr)

        return check

    def _shadow(self, name: str, path: Path, shown: str) -> list[Fault]:
        first = self._cast.members.get(name)
        here = path.resolve()
        if first is None or first.path.resolve() == here:
            return []
        if all(member.path.resolve() != here for member in self._cast.shadowed):
            return []
        return [Fault(shown, 1, f"not used: {first.shown} has that name and comes first", warning=True)]
