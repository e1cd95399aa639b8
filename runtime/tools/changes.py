"""Changes of files that take effect together or not at all, and only over what their author has seen.

A tool looks, plans and acts while it holds the workspace's `edits`; what other programs do meanwhile is noticed just
before a file is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from runtime.policy.beneath import shown
from runtime.policy.paths import PathError, Written

from ._text import plain
from ._tool import ToolContext, ToolError
from .diff import unified
from .document import Document, DocumentError, read_document
from .memory import fingerprint

MAX_EDIT_BYTES = 8_000_000


@attrs.frozen
class Found:
    """A file as it is now: its real path, content and permission bits."""

    path: str
    content: bytes
    mode: int


@attrs.frozen
class Change:
    """One file's content before (None: it is not there) and after (None: it goes). A new file gets `mode`."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None

    @property
    def diff(self) -> str:
        return unified(self.path, self.before, self.after)


def find(ctx: ToolContext, path: str) -> Found | None:
    """The file at a path, None where there is nothing. Raises PathError, ToolError for what is too large to edit."""
    try:
        entry = ctx.workspace.stat(path)
        if entry.kind == "file" and entry.size > MAX_EDIT_BYTES:
            raise ToolError(
                f"{shown(path)} has {entry.size} bytes, more than the {MAX_EDIT_BYTES} that are edited here"
            )
        content = ctx.workspace.read_bytes(path, MAX_EDIT_BYTES + 1)
    except PathError as error:
        if error.fault == "missing":
            return None
        raise
    if len(content) > MAX_EDIT_BYTES:
        raise ToolError(f"{shown(path)} grows while it is read; it is not edited here")
    return Found(ctx.workspace.real_path(path), content, entry.mode)


def find_there(ctx: ToolContext, path: str) -> Found:
    """The file at a path. Raises PathError, ToolError where there is none."""
    found = find(ctx, path)
    if found is None:
        raise ToolError(f"{shown(path)} does not exist")
    return found


def fingerprint_at(ctx: ToolContext, path: str) -> str | None:
    """The name of a file's content, None where there is no file, or one too large to edit."""
    try:
        found = find(ctx, path)
    except ToolError:
        return None
    return None if found is None else fingerprint(found.content)


def unseen(ctx: ToolContext, found: Found) -> ToolError | None:
    """Why the actor may not change this content: it has not read the file, or not as it is now."""
    if ctx.memory.is_current(found.path, found.content):
        return None
    if ctx.memory.knows(found.path):
        return ToolError(f"{plain(found.path)} has changed since you last read it; read_file it again, then change it")
    return ToolError(f"you have not read {plain(found.path)} yet; read_file it first, then change it")


def document(path: str, content: bytes) -> Document:
    """A file's content as text. Raises ToolError for what is none."""
    try:
        return read_document(content)
    except DocumentError as error:
        raise ToolError(f"{shown(path)} {error}") from error


def encoded(path: str, text: Document) -> bytes:
    """The bytes of an edited text. Raises ToolError for a character its encoding cannot hold."""
    try:
        return text.encode()
    except DocumentError as error:
        raise ToolError(f"{shown(path)} was not changed: {error}") from error


def carry_out(ctx: ToolContext, changes: Sequence[Change]) -> None:
    """Make all the changes, tell the log and remember them; if one fails, those before it are taken back.

    Raises PathError, ToolError. The caller holds `ctx.workspace.edits`.
    """
    done: list[Change] = []
    try:
        # What is removed goes last: a file that is gone is the hardest thing to bring back.
        for change in sorted(changes, key=lambda change: change.after is None):
            _make(ctx, change)
            done.append(change)
    except BaseException:
        _take_back(ctx, reversed(done))
        raise
    tell(ctx, changes)


def tell(ctx: ToolContext, changes: Iterable[Change]) -> None:
    """Remember changes that were made, and put them into the log."""
    for change in changes:
        ctx.memory.saw(change.path, change.after)
    for change in changes:
        ctx.changed(change.path, change.before, change.after, change.diff)


def _make(ctx: ToolContext, change: Change) -> None:
    def check(written: Written) -> None:
        if written.created != (change.before is None) or written.before != change.before:
            raise _meanwhile(change.path)

    if change.after is not None:
        ctx.workspace.write_bytes(
            change.path, change.after, keep_before=MAX_EDIT_BYTES + 1, mode=change.mode, check=check
        )
        return
    if ctx.workspace.read_bytes(change.path, MAX_EDIT_BYTES + 1) != change.before:
        raise _meanwhile(change.path)
    ctx.workspace.unlink(change.path)


def _take_back(ctx: ToolContext, done: Iterable[Change]) -> None:
    lost: list[str] = []
    for change in done:
        try:
            if change.before is None:
                ctx.workspace.unlink(change.path)
            else:
                ctx.workspace.write_bytes(change.path, change.before, mode=change.mode)
        except PathError as error:
            lost.append(str(error))
    if lost:
        raise ToolError(f"the change failed half-way and could not be taken back: {'; '.join(lost)}")


def _meanwhile(path: str) -> ToolError:
    return ToolError(f"{plain(path)} was changed by somebody else just now; nothing was done. Read it again.")
