"""Glob patterns over paths: `*` and `?` within a name, `**` across folders, `[..]`, `{a,b}`; never slow.

Paths are relative and use `/`. A pattern without a slash means a name in any folder; one that starts with `/` or `./`
is meant from the top. Matching takes a time proportional to pattern times path, whatever either holds.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

MAX_ALTERNATIVES = 128

Part: TypeAlias = Callable[[str], object] | None  # None stands for **
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class GlobError(ValueError):
    """A pattern that cannot be used; the message says why."""


@functools.lru_cache(maxsize=512)
def compile_glob(pattern: str) -> Callable[[str], bool]:
    """A test for paths. `folder/**` and `folder/` match the folder and everything below it.

    Raises GlobError for an empty pattern, one that leaves the workspace, and one with too many alternatives.
    """
    alternatives = [_compile(each) for each in expand_braces(pattern)]

    def matches(path: str) -> bool:
        parts = tuple(path.split("/")) if path not in ("", ".") else ()
        return any(_match(alternative, parts) for alternative in alternatives)

    return matches


def expand_braces(pattern: str) -> list[str]:
    """`{a,b}c` as `ac` and `bc`; braces without a comma stand for themselves."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        each = todo.pop()
        found = _BRACES.search(each)
        if found is None:
            done.append(each)
        else:
            todo += [each[: found.start()] + choice + each[found.end() :] for choice in reversed(found[1].split(","))]
        if len(todo) + len(done) > MAX_ALTERNATIVES:
            raise GlobError(f"{pattern!r} stands for more than {MAX_ALTERNATIVES} patterns")
    return list(dict.fromkeys(done))


def _compile(pattern: str) -> tuple[Part, ...]:
    text = pattern.removeprefix("./")
    anchored = text != pattern or "/" in text.rstrip("/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.endswith("/"):
        parts.append("**")
    if ".." in parts:
        raise GlobError(f"{pattern!r} goes up with '..'; patterns are relative to the workspace")
    if not parts and not pattern.strip("./"):
        if not pattern:
            raise GlobError("the pattern is empty")
        return ()
    if not anchored:
        parts.insert(0, "**")
    compiled: list[Part] = []
    for part in parts:
        if part != "**":
            compiled.append(re.compile(fnmatch.translate(part)).match)
        elif not compiled or compiled[-1] is not None:
            compiled.append(None)
    return tuple(compiled)


def _match(pattern: Sequence[Part], parts: Sequence[str]) -> bool:
    """One row per pattern part: at which places in the path the pattern so far can end."""
    ends = [True] + [False] * len(parts)
    for part in pattern:
        if part is None:
            first = ends.index(True) if True in ends else len(ends)
            ends = [at >= first for at in range(len(ends))]
        else:
            ends = [False, *(ends[at] and bool(part(name)) for at, name in enumerate(parts))]
    return ends[-1]
