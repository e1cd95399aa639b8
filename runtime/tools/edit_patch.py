"""The tool apply_patch: a unified diff over several files, made whole or not at all."""

from __future__ import annotations

import attrs

from runtime.messages import JsonObject
from runtime.policy.beneath import shown

from ._text import counted, plain
from ._tool import PathUse, PathUses, Tool, ToolContext, ToolError, tool
from .changes import Change, Found, carry_out, document, encoded, find, find_there, tell, unseen
from .document import Document
from .patch import FilePatch, PatchError, apply_hunks, read_patch


def _patched(arguments: JsonObject) -> PathUses:
    """What a patch does to which path; one that cannot be read touches nothing."""
    try:
        files = read_patch(str(arguments.get("patch")))
    except PatchError:
        return {}
    uses: dict[str, tuple[PathUse, ...]] = {}
    for file in files:
        if file.old is not None:
            uses[file.old] = (*uses.get(file.old, ()), "read", *(() if file.old == file.new else ("delete",)))
        if file.new is not None:
            uses[file.new] = (*uses.get(file.new, ()), "write")
    return {path: tuple(dict.fromkeys(each)) for path, each in uses.items()}


def _preview(ctx: ToolContext, arguments: JsonObject) -> str:
    return "".join(change.diff for change in _plan(ctx, **arguments).changes)


@tool(effects="idempotent", paths=_patched, preview=_preview)
def apply_patch(ctx: ToolContext, patch: str) -> str:
    """Apply a unified diff to files that you have read: all of it, or nothing if any part does not fit.

    Args:
        patch: For each file `--- a/PATH` and `+++ b/PATH` (/dev/null for a new or removed file), then hunks, each of
            `@@ -LINE,COUNT +LINE,COUNT @@` and lines that begin with a space (kept), - (removed) or + (added).
    """
    with ctx.workspace.edits:
        plan = _plan(ctx, patch)
        tell(ctx, plan.done)
        for found in plan.there:
            ctx.memory.saw(found.path, found.content)
        carry_out(ctx, plan.changes)
    if not plan.changes:
        return "the files have these changes already; nothing was changed"
    rows = [_row(change) for change in (*plan.done, *plan.changes)]
    return "\n".join([f"patched {counted(len(rows), 'file', 'files')}:", *rows])


def _row(change: Change) -> str:
    name = plain(change.path)
    if change.before is None:
        return f"{name}: new"
    if change.after is None:
        return f"{name}: removed"
    gone = change.diff.count("\n-")
    come = change.diff.count("\n+") - 1
    return f"{name}: +{come} -{gone}"


@attrs.define
class _Plan:
    """What is to be done, what an earlier try of the same call did already, and new files that are there already."""

    changes: list[Change] = attrs.Factory(list[Change])
    done: list[Change] = attrs.Factory(list[Change])
    there: list[Found] = attrs.Factory(list[Found])


@attrs.define
class _File:
    """A file while the patch is planned: as it was, and as it is after the parts looked at so far."""

    found: Found | None
    text: Document | None
    mode: int | None


def _plan(ctx: ToolContext, patch: str) -> _Plan:
    """What the patch would do. Raises PathError, ToolError where any of it does not fit."""
    try:
        files = read_patch(patch)
        return _Planner(ctx).plan(files)
    except PatchError as error:
        raise ToolError(f"nothing was changed: {error}") from error


class _Planner:
    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._files: dict[str, _File] = {}
        self._plan = _Plan()

    def plan(self, files: tuple[FilePatch, ...]) -> _Plan:
        for file in files:
            if not self._is_done(file):
                self._take(file)
        for path, planned in self._files.items():
            before = planned.found.content if planned.found is not None else None
            after = encoded(path, planned.text) if planned.text is not None else None
            if before != after:
                self._plan.changes.append(Change(path, before, after, planned.mode))
        return self._plan

    def _take(self, file: FilePatch) -> None:
        text, mode = Document(""), None
        if file.old is not None:
            source = self._open(file.old)
            if source.text is None:
                raise ToolError(f"nothing was changed: {shown(file.old)} does not exist")
            text, mode = source.text, source.mode
            if file.new != file.old:
                source.text = None
        after = apply_hunks(text, file.hunks, plain(file.path))
        if file.new is None:
            if file.hunks and after.text:
                raise PatchError(f"it removes {plain(file.path)}, but not all of its lines")
            return
        target = self._open(file.new) if file.new != file.old else self._open(file.path)
        if file.new != file.old:
            if target.text is not None:
                raise PatchError(f"{plain(file.path)} is there already")
            target.mode = mode if target.found is None else target.found.mode
        target.text = after

    def _open(self, path: str) -> _File:
        """The file as planned so far; one that is there must be known to the actor as it is."""
        real = self._ctx.workspace.real_path(path)
        if real not in self._files:
            found = find(self._ctx, path)
            if found is None:
                self._files[real] = _File(None, None, None)
            else:
                if (refusal := unseen(self._ctx, found)) is not None:
                    raise ToolError(f"nothing was changed: {refusal}")
                self._files[real] = _File(found, document(path, found.content), found.mode)
        return self._files[real]

    def _is_done(self, file: FilePatch) -> bool:
        """Whether this part took effect before the call was interrupted: taken back, it gives what the actor knew."""
        memory = self._ctx.memory
        if file.old is None:
            return self._is_made(file)
        if file.old != file.new:
            return self._is_moved(file.old, file.new)
        real = self._ctx.workspace.real_path(file.old)
        if real in self._files or not memory.knows(real):
            return False
        found = find_there(self._ctx, file.old)
        if memory.is_current(real, found.content):
            return False
        try:
            before = apply_hunks(
                document(file.old, found.content), [hunk.reversed for hunk in file.hunks], plain(file.old)
            )
        except PatchError:
            return False
        content = encoded(file.old, before)
        if not memory.is_current(real, content):
            return False
        self._plan.done.append(Change(real, content, found.content, found.mode))
        return True

    def _is_made(self, file: FilePatch) -> bool:
        """Whether a new file is there just as the patch makes it."""
        real = self._ctx.workspace.real_path(file.path)
        found = None if real in self._files else find(self._ctx, file.path)
        if found is None or found.content != apply_hunks(Document(""), file.hunks, plain(file.path)).encode():
            return False
        self._plan.there.append(found)
        return True

    def _is_moved(self, old: str, new: str | None) -> bool:
        """Whether a removal or a move is behind us: what the actor knew is gone."""
        real = self._ctx.workspace.real_path(old)
        if real in self._files or not self._ctx.memory.knows(real) or find(self._ctx, old) is not None:
            return False
        return new is None or find(self._ctx, new) is not None


PATCH_TOOLS: tuple[Tool, ...] = (apply_patch,)
