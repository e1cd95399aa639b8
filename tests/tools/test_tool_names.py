"""The names of the tools that come with Elenco, known without loading them."""

from __future__ import annotations

from runtime.known import TOOL_NAMES
from runtime.tools.registry import built_in


def test_the_names_told_beforehand_are_those_of_the_tools() -> None:
    """The names a slip is told by are the names of the tools there are."""
    assert {tool.name for tool in built_in()} == set(TOOL_NAMES)
    assert len(TOOL_NAMES) == len(set(TOOL_NAMES))
