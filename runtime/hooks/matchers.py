"""Which tools or agents a hook is for: names with `*` and `?`, several with `|` between them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

import attrs

_NAME = re.compile(r"[A-Za-z0-9_*?./-]+")

_FURTHER: Mapping[str, tuple[str, ...]] = {"task": ("delegate_to_*", "start_*"), "skill": ("use_skill",)}


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
        patterns += _ours(name)
    return Matcher(tuple(dict.fromkeys(patterns)))


def _ours(name: str) -> tuple[str, ...]:
    """What Claude Code's hooks mean by a tool's name: all of ours that do such a thing; any other name is itself."""
    if not name[:1].isupper():
        return (name,)
    from runtime.foreign.names import CLAUDE, COUNTERPARTS  # which read files that have hooks themselves

    kind = CLAUDE.get(name)
    return (name,) if kind is None else COUNTERPARTS[kind].takes or _FURTHER[kind]
