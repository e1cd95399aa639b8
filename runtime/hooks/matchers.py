"""Which tools or agents a hook is for: names with `*` and `?`, several with `|` between them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

import attrs

_NAME = re.compile(r"[A-Za-z0-9_*?./-]+")

TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "Bash": ("shell",),
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("edit_file", "apply_patch", "insert_lines", "replace_lines", "delete_lines"),
    "MultiEdit": ("edit_file", "apply_patch"),
    "LS": ("list_files",),
    "Glob": ("find_files",),
    "Grep": ("search_text",),
    "WebFetch": ("fetch_url",),
    "WebSearch": ("search_web",),
    "TodoWrite": ("todo_write",),
    "AskUserQuestion": ("ask_user",),
    "Skill": ("use_skill",),
    "Task": ("delegate_to_*", "start_*"),
    "Agent": ("delegate_to_*", "start_*"),
}
"""What the tools of Claude Code's hooks are called here."""


@attrs.frozen
class Matcher:
    """Patterns of which one must fit; none at all fits everything."""

    patterns: tuple[str, ...] = ()

    def fits(self, name: str) -> bool:
        return not self.patterns or any(fnmatchcase(name, pattern) for pattern in self.patterns)


def read_matcher(text: str) -> Matcher:
    """The matcher a text stands for. Raises ValueError for what is no pattern of names."""
    if text.strip() in ("", "*"):
        return Matcher()
    patterns: list[str] = []
    for part in text.split("|"):
        name = part.strip().replace(".*", "*")  # as a regular expression would say it
        if not _NAME.fullmatch(name) or "." in name:
            raise ValueError(f"'{part.strip()}' is no pattern of names: write them as write_file|edit_file or mcp_*")
        patterns += TOOL_NAMES.get(name, (name,))
    return Matcher(tuple(dict.fromkeys(patterns)))
