"""The tools that move, remove and make files and folders: move_file, delete_file, make_folder."""

from __future__ import annotations

from runtime.messages import JsonObject
from runtime.policy.beneath import shown
from runtime.policy.paths import Entry, PathError

from ._text import plain
from ._tool import Tool, ToolContext, ToolError, tool
from .changes import MAX_EDIT_BYTES, fingerprint_at
from .diff import unified


def _preview_move(ctx: ToolContext, arguments: JsonObject) -> str:
    _movable(ctx, arguments["path"], arguments["to"])
    return f"move {plain(arguments['path'])} to {plain(arguments['to'])}"


@tool(effects="idempotent", paths={"path": ("read", "delete"), "to": "write"}, preview=_preview_move)
def move_file(ctx: ToolContext, path: str, to: str) -> str:
    """Move or rename a file of the workspace; folders on the way are made, nothing is overwritten.

    Args:
        path: The file, relative to the workspace.
        to: Its new path, with its name.
    """
    with ctx.workspace.edits:
        memory = ctx.memory
        if _kind(ctx, path) is None and _kind(ctx, to) == "file":
            source = ctx.workspace.real_path(path)
            if memory.knows(source) and memory.seen[source] == fingerprint_at(ctx, to):
                target = ctx.workspace.real_path(to)
                memory.seen[target] = memory.seen.pop(source)
                return f"{plain(source)} is at {plain(target)} already"
        entry = _movable(ctx, path, to)
        content = ctx.workspace.read_bytes(path) if entry.size <= MAX_EDIT_BYTES else None
        source, target = ctx.workspace.rename(path, to, replace=False)
        if source in memory.seen:
            memory.seen[target] = memory.seen.pop(source)
        if content is None:
            ctx.changed(source, None, None, f"File {source} of {entry.size} bytes moved to {target}\n")
        else:
            ctx.changed(source, content, None, f"rename from {source}\nrename to {target}\n")
            ctx.changed(target, None, content, f"rename from {source}\nrename to {target}\n")
    return f"moved {plain(source)} to {plain(target)}"


def _movable(ctx: ToolContext, path: str, to: str) -> Entry:
    entry = ctx.workspace.stat(path, follow=False)
    if entry.kind != "file":
        what = {"folder": "a folder", "link": "a link"}.get(entry.kind, "a pipe, socket or device")
        raise ToolError(f"{shown(path)} is {what}; only files are moved here")
    match _kind(ctx, to):
        case None:
            return entry
        case "folder":
            raise ToolError(
                f"{shown(to)} is a folder; name the file's new path in it: {plain(to).rstrip('/')}/{entry.name}"
            )
        case _:
            raise ToolError(f"{shown(to)} is there already; delete_file it first if it may go")


def _preview_delete(ctx: ToolContext, arguments: JsonObject) -> str:
    entry = _removable(ctx, arguments["path"])
    if entry.kind == "file" and entry.size <= MAX_EDIT_BYTES:
        return unified(entry.path, ctx.workspace.read_bytes(entry.path), None)
    return f"delete the {'empty ' if entry.kind == 'folder' else ''}{entry.kind} {plain(entry.path)}"


@tool(effects="idempotent", paths={"path": "delete"}, preview=_preview_delete)
def delete_file(ctx: ToolContext, path: str) -> str:
    """Delete a file, a link or an empty folder of the workspace.

    Args:
        path: What to delete, relative to the workspace.
    """
    with ctx.workspace.edits:
        if _kind(ctx, path) is None and ctx.memory.knows(real := ctx.workspace.real_path(path)):
            ctx.memory.saw(real, None)
            return f"{plain(real)} is gone already"
        entry = _removable(ctx, path)
        if entry.kind == "folder":
            ctx.workspace.rmdir(path)
            return f"deleted the empty folder {plain(entry.path)}"
        small = entry.kind == "file" and entry.size <= MAX_EDIT_BYTES
        content = ctx.workspace.read_bytes(entry.path) if small else None
        gone = ctx.workspace.unlink(path)
        ctx.memory.saw(gone, None)
        if content is None:
            ctx.changed(gone, None, None, f"{entry.kind.capitalize()} {gone} of {entry.size} bytes deleted\n")
        else:
            ctx.changed(gone, content, None, unified(gone, content, None))
    return f"deleted {plain(gone)}"


def _removable(ctx: ToolContext, path: str) -> Entry:
    entry = ctx.workspace.stat(path, follow=False)
    if entry.kind == "folder":
        if ctx.workspace.listdir(path):
            raise ToolError(f"{shown(path)} is a folder that is not empty; delete what it holds first")
    elif _is_stale(ctx, entry):
        raise ToolError(f"{plain(entry.path)} has changed since you last read it; read_file it again, then delete it")
    return entry


def _is_stale(ctx: ToolContext, entry: Entry) -> bool:
    if entry.kind != "file" or entry.size > MAX_EDIT_BYTES or not ctx.memory.knows(entry.path):
        return False
    return not ctx.memory.is_current(entry.path, ctx.workspace.read_bytes(entry.path))


@tool(effects="idempotent", paths={"path": "write"})
def make_folder(ctx: ToolContext, path: str) -> str:
    """Make a folder in the workspace, and those above it; one that is there already is fine.

    Args:
        path: The folder, relative to the workspace.
    """
    return f"the folder {plain(ctx.workspace.mkdir(path))} is there"


def _kind(ctx: ToolContext, path: str) -> str | None:
    try:
        return ctx.workspace.stat(path, follow=False).kind
    except PathError as error:
        if error.fault == "missing":
            return None
        raise


PLACE_TOOLS: tuple[Tool, ...] = (move_file, delete_file, make_folder)
