"""The tools that come with Elenco, by name; agent files choose from them."""

from __future__ import annotations

from ._tool import Tool
from .files import find_files, list_files, read_file, write_file
from .passages import search_passages
from .search import search_text


def built_in() -> tuple[Tool, ...]:
    """All of them but those that belong to one run or one actor (`read_result`, delegation)."""
    return (list_files, find_files, search_text, search_passages, read_file, write_file)
