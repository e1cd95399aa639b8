"""The tools todo_write and todo_read: one actor's list of what is to be done, which people see as it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from runtime.events import NotesChanged
from runtime.messages import JsonObject

from ._text import counted
from ._tool import Tool, ToolContext, ToolError, tool

MAX_ITEMS = 100
MAX_ITEM_CHARS = 500
_BOXES = {"open": "[ ]", "doing": "[~]", "done": "[x]", "dropped": "[-]"}


@attrs.frozen
class Item:
    """One thing to do.

    Args:
        text: What is to be done, in one line.
        status: Where it stands; only one item should be `doing`.
    """

    text: str
    status: Literal["open", "doing", "done", "dropped"] = "open"


@tool(effects="idempotent", progress=False, private=True)
async def todo_write(ctx: ToolContext, items: Sequence[Item]) -> str:
    """Keep a list of what is to be done; each call replaces the whole list. It is yours alone, and shown to people.

    Args:
        items: All items, in the order they are to be done.
    """
    if len(items) > MAX_ITEMS:
        raise ToolError(f"{len(items)} items are too many; keep at most {MAX_ITEMS}")
    notes: list[JsonObject] = []
    for item in items:
        text = " ".join(item.text.split())
        if not text or len(text) > MAX_ITEM_CHARS:
            raise ToolError(f"an item has 1 to {MAX_ITEM_CHARS} characters, this one {len(text)}: {text[:60]!r}")
        notes.append({"text": text, "status": item.status})
    if tuple(notes) != ctx.memory.notes:
        ctx.memory.notes = tuple(notes)
        ctx.report(NotesChanged(notes=ctx.memory.notes))
    done = sum(note["status"] == "done" for note in notes)
    return f"kept {counted(len(notes), 'item', 'items')}, {done} done"


@tool(effects="none", private=True)
async def todo_read(ctx: ToolContext) -> str:
    """Read the list that todo_write keeps."""
    if not ctx.memory.notes:
        return "the list is empty"
    return "\n".join(f"{_BOXES.get(str(note.get('status')), '[ ]')} {note.get('text')}" for note in ctx.memory.notes)


NOTE_TOOLS: tuple[Tool, ...] = (todo_write, todo_read)
