"""What a call of a tool is about, as permission rules see it."""

from __future__ import annotations

import attrs

from runtime.messages import JsonObject
from runtime.policy.paths import PathError, Workspace
from runtime.policy.subjects import PathSubject, PathUse, PlainSubject, ShellSubject, Subject

from ._tool import PathUse as Use
from ._tool import Tool


def subject_of(tool: Tool, arguments: JsonObject, workspace: Workspace) -> Subject:
    """The subject of a call with checked arguments; it looks at the disk, for a path is what it really leads to."""
    if tool.subject is not None:
        subject = tool.subject(arguments)
        # Rules may name the tool that runs a command line as well as `shell`, which means all of them.
        return attrs.evolve(subject, tool=tool.name) if isinstance(subject, ShellSubject) else subject
    uses = tool.uses(arguments)
    if uses:
        return PathSubject(tool.name, tuple(_use(use, path, workspace) for path, use in uses), tool.mutates)
    return PlainSubject(tool.name, changes=tool.mutates, private=tool.private)


def _use(use: Use, path: str, workspace: Workspace) -> PathUse:
    try:
        change = use in ("write", "delete")
        real = workspace.real_path(path, change=change)
        if use == "delete":
            # What goes is the link, wherever it leads.
            real = workspace.real_path(path.rstrip("/") or path, change=change, follow=False)
        return PathUse(use, real)
    except PathError as error:
        return PathUse(use, path, fault=str(error))
