"""What in a workspace is treated apart: files that govern agents are not written, our own folders not seen. Blocks.

Every place is looked at beneath the workspace's own descriptor and never through a link, and remembered by its number:
`entry` makes sure from inside the box that it is still the same.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

import attrs

from runtime.policy.decision import PROTECTED_ANYWHERE, PROTECTED_AT_TOP

from .view import Guarded, guard, is_inside

GIT = (".git/hooks", ".git/config")
_NAMES = PROTECTED_ANYWHERE | PROTECTED_AT_TOP
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.frozen
class Seen:
    """What is treated apart, the `device:inode` of each place that is mounted, and the names that govern agents."""

    guarded: Guarded = Guarded()
    identities: tuple[tuple[str, str], ...] = ()
    governing: frozenset[str] = frozenset()


def see(workspace: str, hidden: Sequence[str], *, writable: bool) -> Seen:
    """Look at a workspace. `hidden` are real paths; those that are not there are made when their folder is hidden."""
    root = os.open(workspace, _FOLDER)
    try:
        governing = names_that_govern(root)
        frozen = list(_frozen(root, governing)) if writable else []
        inside = [each for each in hidden if is_inside(each, workspace) and (writable or os.path.isdir(each))]
        guarded = guard(workspace, [f"{workspace}/{name}" for name in frozen], inside)
        places = (*guarded.pinned, *guarded.frozen) if writable else ()
        found: list[tuple[str, str]] = []
        for place in places:
            seen = identity(root, place[len(workspace) + 1 :])
            if seen is not None:
                found.append((place, f"{seen.st_dev}:{seen.st_ino}"))
        there = {place for place, _ in found}
        kept = attrs.evolve(
            guarded,
            pinned=tuple(each for each in guarded.pinned if each in there),
            frozen=tuple(each for each in guarded.frozen if each in there),
        )
        return Seen(kept, tuple(found), governing)
    finally:
        os.close(root)


def names_that_govern(root: int) -> frozenset[str]:
    """The names at the top of a workspace that govern agents, however they are spelled."""
    return frozenset(name for name in os.listdir(_readable(root)) if name.casefold().rstrip(" .") in _NAMES)


def made_meanwhile(workspace: str, before: frozenset[str]) -> list[str]:
    """What governs agents and was not there before."""
    try:
        root = os.open(workspace, _FOLDER)
    except OSError:
        return []
    try:
        return sorted(names_that_govern(root) - before)
    finally:
        os.close(root)


def identity(root: int, path: str) -> os.stat_result | None:
    """What is at a path beneath a folder, None where a link is on the way or nothing is there."""
    parts = path.split("/")
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(folder)
    return found if stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode) else None


def _frozen(root: int, governing: frozenset[str]) -> Iterator[str]:
    for name in sorted(governing):
        found = identity(root, name)
        if found is None:
            continue
        if name == ".git" and stat.S_ISDIR(found.st_mode):
            _make_hooks(root)
            yield from GIT
        else:
            yield name


def _make_hooks(root: int) -> None:
    # A folder that is not there cannot be mounted; git makes it as well, and an empty one changes nothing.
    try:
        git = os.open(".git", _FOLDER, dir_fd=root)
    except OSError:
        return
    try:
        os.mkdir("hooks", dir_fd=git)
    except OSError:
        pass  # It is there, or the workspace cannot be written: then nobody else makes it either.
    finally:
        os.close(git)


def _readable(root: int) -> str:
    return f"/proc/self/fd/{root}"
