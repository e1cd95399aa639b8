"""Attachments gathered for a child: files the parent may read itself, results it may open, each within its share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.bounds import Bounds
from runtime.limits.estimate import byte_length
from runtime.policy.paths import PathError, Workspace
from runtime.tools import Tool, ToolError
from runtime.tools._text import decode, plain
from runtime.tools.results import fitting
from runtime.turn import BYTES_PER_TOKEN

from .attachment import MOST, MOST_BYTES, Attachment, part_of, shares

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.definitions import Definition
    from runtime.permits import Permits

MOST_FILE_BYTES = 4_000_000
READ_FILE = "read_file"


async def gather(parent: Agent, child: Definition, names: Sequence[str], call_id: str) -> tuple[Attachment, ...]:
    """What the call `call_id` attaches for a child, as the child will be shown it.

    Raises ToolError for what is not there, what the parent may not read without a question, and what the child's own
    rules deny. A cancelled call leaves at most kept texts behind.
    """
    names = list(dict.fromkeys(names))
    if len(names) > MOST:
        raise ToolError(f"{len(names)} attachments are too many; attach at most {MOST}")
    if not names:
        return ()
    from runtime.hiring import permits_of

    run = parent.run
    permits = permits_of(run, child, parent)
    found = [await _one(parent, permits, name) for name in names]
    rooms = shares((byte_length(each.text) for each in found), _room(parent, child))
    can_open = bool(child.tools or child.subagents or child.mcps or child.skills)
    return tuple(
        [
            await _fitted(parent, each, room, f"{call_id}f{number}" if can_open else "")
            for number, (each, room) in enumerate(zip(found, rooms, strict=True))
        ]
    )


def _room(parent: Agent, child: Definition) -> int:
    """Bytes for all of them: a child with a small window gets a quarter of it."""
    window = parent.run.models.resolve(child.model or parent.run.settings.model).window
    return MOST_BYTES if window is None else min(MOST_BYTES, window * BYTES_PER_TOKEN // 4)


async def _one(parent: Agent, permits: Permits, name: str) -> Attachment:
    if parent.trail.opens(name) and (text := await parent.run.results.fetch(name)) is not None:
        return Attachment(plain(name), "result", text, len(text), handle=name, full=parent.run.results.name_of(name))
    tool = parent.toolbox.get(READ_FILE)
    if tool is None:
        raise ToolError(f"{plain(name)!r} is not attached: no kept result has that handle, and you read no files")
    try:
        return await _file(parent, permits, tool, name, name, None)
    except PathError as error:
        if error.fault != "missing" or (part := part_of(name)) is None:
            raise ToolError(f"{plain(name)!r} is not attached: {error}") from error
    path, first, last = part
    try:
        return await _file(parent, permits, tool, name, path, (first, last))
    except PathError as error:
        raise ToolError(f"{plain(name)!r} is not attached: {error}") from error


async def _file(
    parent: Agent, permits: Permits, tool: Tool, name: str, path: str, lines: tuple[int, int] | None
) -> Attachment:
    """Raises PathError, ToolError."""
    subject = await parent.permits.subject(tool, {"path": path}, parent.workspace)
    mine = parent.permits.judge(subject)
    if mine.verdict == "ask":
        raise ToolError(
            f"{plain(name)!r} is not attached: reading it asks a human ({mine.rule}); read it yourself first"
        )
    if mine.verdict == "deny" and mine.by != "workspace":
        raise ToolError(f"{plain(name)!r} is not attached: denied by rule {mine.rule} ({mine.by})")
    theirs = permits.judge(subject)
    if theirs.verdict == "deny" and theirs.by != "workspace":
        raise ToolError(f"{plain(name)!r} is not attached: the rules of the child deny it: {theirs.rule}")
    workspace = parent.workspace.bounded(Bounds(subject, parent.permits))
    return await trio.to_thread.run_sync(_read, workspace, path, lines)


def _read(workspace: Workspace, path: str, lines: tuple[int, int] | None) -> Attachment:
    """Raises PathError, ToolError. Blocks."""
    shown = plain(workspace.real_path(path))
    with workspace.open_read(path) as file:
        if lines is None:
            content = file.read(MOST_FILE_BYTES + 1)
            first = 1
        else:
            first, last = lines
            content, number = b"", 0
            while number < last and len(content) <= MOST_FILE_BYTES and (line := file.readline(MOST_FILE_BYTES + 1)):
                number += 1
                content += line if number >= first else b""
            if not content:
                raise ToolError(f"{shown} is not attached: it has only {number} lines")
    if len(content) > MOST_FILE_BYTES:
        raise ToolError(
            f"{shown} is not attached: it has more than {MOST_FILE_BYTES} bytes; attach a part: {shown}:1-400"
        )
    decoded = decode(content)
    if decoded is None:
        raise ToolError(f"{shown} is not attached: it is not text")
    text = decoded.text.replace("\r\n", "\n")
    count = text.count("\n") + bool(text and not text.endswith("\n"))
    return Attachment(shown, "file", text, len(text), (first, first + count - 1) if count else None)


async def _fitted(parent: Agent, attachment: Attachment, room: int, handle: str) -> Attachment:
    """Without secrets and within its room; the whole of what is shown in part is kept, where the child can open it."""
    results = parent.run.results
    text = parent.run.veil.text(attachment.text)
    attachment = attrs.evolve(attachment, text=text, chars=len(text))
    if byte_length(text) <= room:
        return attachment
    handle = (attachment.handle or handle) if handle else ""
    text = fitting(text, room, lambda whole: results.keep(handle, whole) if handle else None)
    full = await results.save(handle) if handle else ""
    return attrs.evolve(attachment, text=text, handle=handle, full=full)
