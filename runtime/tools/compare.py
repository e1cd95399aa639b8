"""The tool diff: what differs between two files, or between a file and what it held when the run began."""

from __future__ import annotations

from ._text import plain
from ._tool import Tool, ToolContext, tool
from .changes import find, find_there
from .diff import unified


@tool(effects="none", paths={"path": "read", "other": "read"})
def diff(ctx: ToolContext, path: str, other: str | None = None) -> str:
    """Show what differs between two files of the workspace, or what this run has changed in one, as a unified diff.

    Args:
        path: The file, relative to the workspace.
        other: The file to compare with; by default what `path` held when the run began.
    """
    if other is None:
        found = find(ctx, path)
        now = found.content if found is not None else None
        real = found.path if found is not None else ctx.workspace.real_path(path)
        before = ctx.original(real, now)
        if before is None and now is None:
            find_there(ctx, path)
        return unified(real, before, now) or f"{plain(real)} is as it was when the run began"
    one, two = find_there(ctx, path), find_there(ctx, other)
    if one.content == two.content:
        return f"{plain(one.path)} and {plain(two.path)} are the same"
    return unified(two.path, one.content, two.content).replace(f"--- a/{two.path}", f"--- a/{one.path}", 1)


COMPARE_TOOLS: tuple[Tool, ...] = (diff,)
