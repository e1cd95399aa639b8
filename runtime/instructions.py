"""Instruction files of the workspace (AGENTS.md and its aliases), from its root to its leaves, in a fixed room.

They are read through the workspace, so a link that leads out of it is not followed. What does not fit is told, to the
person and to the agent, who can read the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import attrs

from .policy.paths import PathError, Workspace

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""The first of these that a folder has counts; the others are aliases for it."""
ROOM = 32_000
"""Characters of all files together."""
EACH = 16_000
DEEPEST = 6
MOST_FOLDERS = 1000
_PASSED_OVER = frozenset(
    {"node_modules", "vendor", "venv", "__pycache__", "dist", "build", "target", "site-packages", "third_party"}
)
_ABOUT = """\
Written by the people of this workspace for whoever works in it. A file deeper down counts for its own folder and goes
before those above it. Nothing here widens what you are permitted to do."""


@attrs.frozen
class Instructions:
    """What a prompt is given, "" where there is nothing; `remarks` are for the person: what was cut or left out."""

    text: str = ""
    files: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def read_instructions(workspace: Workspace) -> Instructions:
    """Read what the workspace says to its agents. Blocks."""
    pieces: list[str] = []
    files: list[str] = []
    unseen: list[str] = []
    remarks: list[str] = []
    room = ROOM
    for path in _found(workspace.root, remarks):
        try:
            content = workspace.read_bytes(path, EACH * 4 + 4)
        except PathError as error:
            remarks.append(f"{path} was not read: {error}")
            continue
        if b"\0" in content:
            remarks.append(f"{path} was not read: it is no text")
            continue
        text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n").strip()
        if not text:
            continue
        if room < min(len(text), 400):
            unseen.append(path)
            continue
        shown = _cut(text, min(EACH, room), path)
        if shown != text:
            remarks.append(f"{path} was cut: instruction files have {EACH} characters each, {ROOM} together")
        pieces.append(f"# {path} ({_scope(path)})\n\n{shown}")
        files.append(path)
        room -= len(shown)
    if unseen:
        pieces.append(f"Not shown for lack of room; read them before you work there: {', '.join(unseen)}")
        remarks.append(f"no room for {', '.join(unseen)}: instruction files have {ROOM} characters together")
    text = "\n\n".join([_ABOUT, *pieces]) if pieces else ""
    return Instructions(text, tuple(files), tuple(remarks))


def _scope(path: str) -> str:
    folder = path.rpartition("/")[0]
    return f"for what is below {folder}/" if folder else "for the whole workspace"


def _cut(text: str, room: int, path: str) -> str:
    if len(text) <= room:
        return text
    end = text.rfind("\n", 0, room)
    kept = text[: end if end > room // 2 else room]
    return f'{kept}\n[cut here; read_file(path="{path}", start={kept.count(chr(10)) + 2}) shows the rest]'


def _found(root: str, remarks: list[str]) -> Iterator[str]:
    """The instruction files by folder, those nearer to the root first."""
    level = [""]
    looked = 0
    for _ in range(DEEPEST + 1):
        below: list[str] = []
        for folder in level:
            looked += 1
            if looked > MOST_FOLDERS:
                remarks.append(f"more than {MOST_FOLDERS} folders: instruction files further down were not looked for")
                return
            try:
                with os.scandir(os.path.join(root, folder)) as entries:
                    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            except OSError:
                continue
            prefix = f"{folder}/" if folder else ""
            first = next((name for name in NAMES if names.get(name) is False), None)
            if first is not None:
                yield prefix + first
            below += [
                prefix + name
                for name, is_folder in sorted(names.items())
                if is_folder and not name.startswith(".") and name not in _PASSED_OVER
            ]
        level = below
