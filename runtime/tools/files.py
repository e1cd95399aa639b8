"""The tools that look at and change files of the workspace: list_files, find_files, read_file, write_file."""

from __future__ import annotations

import io

import trio

from runtime.handover.sources import READ, Source, read_data
from runtime.messages import JsonObject
from runtime.policy.globs import GlobError, compile_glob
from runtime.policy.paths import Entry

from ._text import counted, plain
from ._tool import Output, PathUses, Tool, ToolContext, ToolError, tool
from .changes import MAX_EDIT_BYTES, Change, carry_out, find, unseen
from .document import DocumentError, in_the_manner_of
from .memory import SEEN
from .reading import read_page

MAX_ENTRIES = 1000
MAX_FOUND = 500


def _listed(arguments: JsonObject) -> PathUses:
    return {str(arguments.get("path") or "."): "list"}


@tool(effects="none", paths=_listed)
def list_files(ctx: ToolContext, path: str = ".") -> str:
    """List what a folder of the workspace holds: folders end with a slash, files show their size.

    Args:
        path: The folder, relative to the workspace.
    """
    folder = ctx.workspace.real_path(path or ".")
    entries = ctx.workspace.listdir(path or ".")
    lines = [f"{folder}: {counted(len(entries), 'entry', 'entries')}", *map(_entry_line, entries[:MAX_ENTRIES])]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{len(entries) - MAX_ENTRIES} more not shown; use find_files]")
    return "\n".join(lines)


def _entry_line(entry: Entry) -> str:
    name = plain(entry.path)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}\t{entry.size} bytes"
        case "link":
            return f"{name}\tlink"
        case _:
            return f"{name}\tpipe, socket or device"


@tool(effects="none", paths=lambda _: {".": "list"})
def find_files(ctx: ToolContext, pattern: str) -> str:
    """Find files of the workspace by their path. What .gitignore excludes is left out, so is .git.

    Args:
        pattern: A glob such as *.py (in any folder), src/**/test_*.py or docs/*.{md,txt}.
    """
    try:
        matches = compile_glob(pattern)
    except GlobError as error:
        raise ToolError(str(error)) from error
    found: list[str] = []
    more = 0
    for entry in ctx.workspace.walk():
        trio.from_thread.check_cancelled()
        if matches(entry.path) and ctx.readable(entry.path):
            if len(found) < MAX_FOUND:
                found.append(plain(entry.path))
            else:
                more += 1
    if not found:
        return f"no file matches {pattern}"
    if more:
        found.append(f"[{more} more not shown; use a narrower pattern]")
    return "\n".join(found)


@tool(effects="none", paths={"path": "read"})
def read_file(ctx: ToolContext, path: str, start: int = 1, end: int | None = None) -> Output:
    """Read a text file of the workspace: a first line that names the file and the lines shown, then numbered lines.

    Args:
        path: The file, relative to the workspace.
        start: The first line to show, counted from 1.
        end: The last line to show; by default as many as fit.
    """
    if start < 1 or (end is not None and end < start):
        raise ToolError(f"start={start}, end={end}: lines are counted from 1, and end is not before start")
    with ctx.workspace.open_read(path) as file:
        content = file.read(MAX_EDIT_BYTES + 1)
        if len(content) > MAX_EDIT_BYTES:
            file.seek(0)
            text = read_page(file, path, start, end, trio.from_thread.check_cancelled)
            return Output(text, data={READ: _shown(ctx.workspace.real_path(path), text, start)})
    # What is shown and what is remembered as seen are the same bytes.
    text = read_page(io.BytesIO(content), path, start, end, trio.from_thread.check_cancelled)
    real = ctx.workspace.real_path(path)
    ctx.memory.saw(real, content)
    return Output(text, data={SEEN: {real: ctx.memory.seen[real]}, READ: _shown(real, text, start)})


def _shown(real: str, page: str, start: int) -> list[JsonObject]:
    """What a page has shown: a line that names the file, then one for each of the file's."""
    lines = page.count("\n")
    return read_data([(real, start, start + lines - 1)]) if lines else [Source(real).as_json()]


def _preview_write(ctx: ToolContext, arguments: JsonObject) -> str:
    return _plan_write(ctx, **arguments).diff


@tool(effects="idempotent", paths={"path": "write"}, preview=_preview_write)
def write_file(ctx: ToolContext, path: str, content: str) -> str:
    """Write a whole text file of the workspace, new or in place of one that you have read; folders are made.

    Args:
        path: The file, relative to the workspace.
        content: All of the file's text.
    """
    with ctx.workspace.edits:
        change = _plan_write(ctx, path, content)
        after = change.after or b""
        lines = content.count("\n") + bool(content and not content.endswith("\n"))
        size = f"{counted(lines, 'line', 'lines')}, {counted(len(after), 'byte', 'bytes')}"
        if change.before == after:
            ctx.memory.saw(change.path, after)
            return f"{plain(change.path)} already has this content ({size})"
        carry_out(ctx, [change])
    return f"{'wrote the new file' if change.before is None else 'replaced'} {plain(change.path)} ({size})"


def _plan_write(ctx: ToolContext, path: str, content: str) -> Change:
    """What a write would do. Raises PathError, ToolError over a content that the actor does not know."""
    found = find(ctx, path)
    try:
        after = in_the_manner_of(found.content if found is not None else b"", content)
    except DocumentError as error:
        raise ToolError(str(error)) from error
    if found is None:
        return Change(ctx.workspace.real_path(path), None, after)
    if found.content != after and (refusal := unseen(ctx, found)) is not None:
        raise refusal
    return Change(found.path, found.content, after, found.mode)


FILE_TOOLS: tuple[Tool, ...] = (list_files, find_files, read_file, write_file)
