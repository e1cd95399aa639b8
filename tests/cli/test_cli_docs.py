"""The pages about commands, agent files and records name everything there is, and nothing else."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from runtime.cli.parser import COMMANDS
from runtime.definitions import KEYS, VARIABLES
from runtime.events import TYPES

DOCS = Path(__file__).parents[2] / "docs"


def flags_of(name: str) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    COMMANDS[name][0](parser)
    return {option for action in parser._actions for option in action.option_strings if option.startswith("--")}  # pyright: ignore[reportPrivateUsage]


def test_every_command_and_flag_is_documented() -> None:
    """docs/commands.md names every command, and every flag of each."""
    page = (DOCS / "commands.md").read_text()
    for name in COMMANDS:
        assert f"elenco {name}" in page, name
        for flag in flags_of(name):
            assert flag in page, f"{name} {flag}"


def test_no_command_or_flag_is_made_up() -> None:
    """What docs/commands.md names as a command or a flag exists."""
    page = (DOCS / "commands.md").read_text()
    known = {"--state", "--help"}.union(*map(flags_of, COMMANDS))
    assert set() == set(re.findall(r"`elenco ([a-z-]+)", page)) - set(COMMANDS)
    assert set() == set(re.findall(r"--[a-z][a-z-]+", page)) - known


def test_every_key_and_variable_of_agent_files_is_documented() -> None:
    """docs/agent-files.md names every key of the front matter and every variable of the prompt."""
    page = (DOCS / "agent-files.md").read_text()
    for key in KEYS:
        assert f"`{key}" in page, key
    for variable in VARIABLES:
        assert f"{{{variable}}}" in page, variable


def test_every_event_is_documented() -> None:
    """docs/journal.md names every event of a run's record, and those that are never stored."""
    page = (DOCS / "journal.md").read_text()
    streams_own = {"gap", "snapshot"}
    assert set() == {name for name in TYPES if f"`{name}`" not in page} - streams_own
