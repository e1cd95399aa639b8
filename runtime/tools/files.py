"""The tools that look at and change files of the workspace: list_files, find_files, read_file, write_file."""

from __future__ import annotations

import trio

from runtime.messages import JsonObject
from runtime.policy.globs import GlobError, compile_glob
from runtime.policy.paths import Entry

from ._text import counted, plain
from ._tool import PathUses, Tool, ToolContext, ToolError, tool
from .diff import unified
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
def read_file(ctx: ToolContext, path: str, start: int = 1, end: int | None = None) -> str:
    """Read a text file of the workspace: a first line that names the file and the lines shown, then numbered lines.

    Args:
        path: The file, relative to the workspace.
        start: The first line to show, counted from 1.
        end: The last line to show; by default as many as fit.
    """
    if start < 1 or (end is not None and end < start):
        raise ToolError(f"start={start}, end={end}: lines are counted from 1, and end is not before start")
    with ctx.workspace.open_read(path) as file:
        return read_page(file, path, start, end, trio.from_thread.check_cancelled)


@tool(effects="idempotent", paths={"path": "write"})
def write_file(ctx: ToolContext, path: str, content: str) -> str:
    """Write a whole text file of the workspace, new or in place of what is there; folders on the way are made.

    Args:
        path: The file, relative to the workspace.
        content: All of the file's text.
    """
    try:
        after = content.encode()
    except UnicodeEncodeError:
        raise ToolError("content is no valid Unicode text: it holds half of a surrogate pair") from None
    written = ctx.workspace.write_bytes(path, after)
    size = f"{counted(len(after.splitlines()), 'line', 'lines')}, {counted(len(after), 'byte', 'bytes')}"
    if not written.created and written.before == after:
        return f"{plain(written.path)} already has this content ({size})"
    ctx.changed(written.path, written.before, after, _change(written.path, written.created, written.before, after))
    return f"{'wrote the new file' if written.created else 'replaced'} {plain(written.path)} ({size})"


def _change(path: str, created: bool, before: bytes | None, after: bytes) -> str:
    if before is None and not created:
        return f"File {path} replaced; what was there is too large to compare\n"
    return unified(path, before, after)


FILE_TOOLS: tuple[Tool, ...] = (list_files, find_files, read_file, write_file)
