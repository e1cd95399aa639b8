"""The cast that ships: its files load, and its tools give the offline policy the part that each name promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtime.context.prompt import render
from runtime.definitions import Definition, load

AGENTS = Path(__file__).parents[2] / "agents"
NAMES = ["coordinator", "researcher", "reviewer", "writer"]


def agent(name: str) -> Definition:
    return load(AGENTS / f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_agent_has_no_fault(name: str) -> None:
    """A shipped agent loads without fault or warning, under the name of its file."""
    definition = agent(name)
    assert name == definition.name
    assert () == definition.warnings
    assert definition.description


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_of_a_prompt_is_filled_in(name: str) -> None:
    """Every variable in a shipped prompt is one that is filled in."""
    values = {variable: variable.upper() for variable in ("model", "workspace", "tools", "subagents", "skills", "date")}
    assert not re.search(r"\{\w+\}", render(agent(name).prompt, values))


def test_tools_decide_the_parts() -> None:
    """Only the coordinator has children, only the researcher searches, the reviewer reads, the writer has nothing."""
    assert ("researcher", "reviewer", "writer") == agent("coordinator").subagents
    searching = [name for name in NAMES if "search_passages" in (agent(name).tools or ())]
    assert ["researcher"] == searching
    assert ("read_file",) == agent("reviewer").tools
    assert not agent("writer").tools
    assert not any(agent(name).subagents for name in NAMES[1:])
