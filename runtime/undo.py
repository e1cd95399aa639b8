"""Taking back what a run did to files: worked out from its record, refused as a whole where a file changed since."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs

from .errors import JournalError, UsageError
from .events import FileChanged, FileChanging, FilesRestored, Record, RunStarted
from .journal.folder import RunFolder
from .journal.interface import Contents
from .journal.visit import visit
from .policy.paths import PathError, Workspace, hash_of

Current: TypeAlias = Callable[[str], str | None]
"""The hash of what a file holds now, None where there is none."""


@attrs.frozen
class Restore:
    """One file to be put back: hashes of what it is to hold and of what it holds now, None for no file.

    `mode` are the permission bits of one that has to be made anew.
    """

    path: str
    content: str | None
    found: str | None
    mode: int | None = None


@attrs.frozen
class Undone:
    """What an undo did: the files put back, and those that were made by the run and are gone now."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class CannotUndo(UsageError):
    """Nothing was changed; `paths` are the files that stand in the way."""

    def __init__(self, paths: Iterable[str], why: str) -> None:
        self.paths = tuple(paths)
        super().__init__(f"nothing was undone: {', '.join(self.paths)} {why}")


def restores(records: Iterable[Record], to: int, current: Current) -> list[Restore]:
    """What to put back so that files are as they were after the event `to`, the newest change first; pure.

    A change that never came about, or was taken back already, is passed over. Raises CannotUndo where a file holds
    something that nobody in this run left there.
    """
    chains: dict[str, list[FileChanging | FileChanged]] = {}
    for change in reversed(_standing(records, to)):
        chains.setdefault(change.path, []).append(change)
    found: list[Restore] = []
    foreign: list[str] = []
    for path, chain in chains.items():
        now = current(path)
        if now == chain[-1].before:
            continue  # put back by hand, or by an undo that was cut off
        then, mode = now, None
        for change in chain:
            if then == change.after:
                then = change.before
                mode = change.mode if isinstance(change, FileChanging) else None
            elif then != change.before:
                foreign.append(path)
                break
        if then != now:
            found.append(Restore(path, then, now, mode))
    if foreign:
        which, it = ("changed since", "it") if len(foreign) == 1 else ("have changed since", "them")
        raise CannotUndo(
            sorted(foreign), f"{which}: move {it} away or put {it} back as the run left {it}, then undo again"
        )
    return found


def _standing(records: Iterable[Record], to: int) -> list[FileChanging | FileChanged]:
    """The changes after `to` that no earlier undo has taken back, oldest first."""
    changes: list[tuple[int, FileChanging | FileChanged]] = []
    announced: set[tuple[str, str]] = set()
    for record in records:
        match record.event:
            case FileChanging() as event:
                announced.add((event.call_id, event.path))
                changes.append((record.seq, event))
            case FileChanged() as event if (event.call_id, event.path) not in announced:
                changes.append((record.seq, event))
            case FilesRestored() as event:
                changes = [(seq, change) for seq, change in changes if seq <= event.to]
            case _:
                pass
    return [change for seq, change in changes if seq > to]


def undo(folder: RunFolder, contents: Contents, to: int = 0, by: str = "you") -> Undone:
    """Put all files back as they were after the event `to`, or none of them, and record it. Blocks.

    Raises CannotUndo, UsageError for an event that is not there, JournalError: the run is live, damaged, or a content
    is gone.
    """
    with visit(folder) as visitor:
        records = list(visitor.records())
        last = records[-1].seq if records else 0
        if not 0 <= to <= last:
            raise UsageError(f"run {folder.id} has the events 1 to {last}; there is no {to}")
        started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
        if started is None:
            raise UsageError(f"run {folder.id} has no beginning on record")
        try:
            with Workspace(started.workspace) as workspace:
                done = _carry_out(workspace, contents, records, to)
        except PathError as error:
            raise UsageError(f"nothing was undone: {error}") from error
        if _standing(records, to):
            try:
                visitor.append(FilesRestored(to=to, paths=(*done.restored, *done.removed), by=by))
            except JournalError as error:
                raise JournalError(
                    f"{error}; the files are back as they were, the same undo again records it"
                ) from error
    return done


def _carry_out(workspace: Workspace, contents: Contents, records: Iterable[Record], to: int) -> Undone:
    wanted = restores(records, to, lambda path: _held(workspace, path))
    content: dict[str, bytes | None] = {}
    for each in wanted:
        try:
            content[each.path] = contents.get(each.content) if each.content is not None else None
        except JournalError as error:
            raise CannotUndo([each.path], f"cannot be put back: what it held is not kept ({error})") from error
    held: dict[str, bytes | None] = {}
    done: list[Restore] = []
    try:
        for each in wanted:
            held[each.path] = found = _content(workspace, each.path)
            if _hash(found) != each.found:
                raise CannotUndo([each.path], "changes right now")
            done.append(each)
            _put(workspace, each.path, content[each.path], each.mode)
    except (PathError, CannotUndo):
        for each in done:
            with contextlib.suppress(PathError):
                _put(workspace, each.path, held[each.path])
        raise
    return Undone(
        tuple(each.path for each in wanted if each.content is not None),
        tuple(each.path for each in wanted if each.content is None),
    )


def _held(workspace: Workspace, path: str) -> str | None:
    """The hash of what a file holds, read piece by piece: it may be larger than what there is memory for."""
    try:
        with workspace.open_read(path) as file:
            return hash_of(file.fileno())
    except PathError as error:
        if error.fault == "missing":
            return None
        raise


def _content(workspace: Workspace, path: str) -> bytes | None:
    try:
        return workspace.read_bytes(path)
    except PathError as error:
        if error.fault == "missing":
            return None
        raise


def _put(workspace: Workspace, path: str, content: bytes | None, mode: int | None = None) -> None:
    if content is not None:
        workspace.write_bytes(path, content, mode=mode)
    elif _content(workspace, path) is not None:
        workspace.unlink(path)


def _hash(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
