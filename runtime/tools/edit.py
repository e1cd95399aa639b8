"""The tools that change a part of a text file: edit_file, insert_lines, replace_lines, delete_lines.

All of them want the file read first, as it is now. One that was cut off and runs again finds its own work by what the
actor knew: the content that its change, taken back, would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import attrs

from runtime.messages import JsonObject

from ._text import counted, plain
from ._tool import PathUses, Tool, ToolContext, ToolError, tool
from .changes import Change, carry_out, document, encoded, find_there, tell, unseen
from .document import Document, Span, exchanged, inserted, removed
from .near import hint, numbered

Spans: TypeAlias = list[Span]
_CONTEXT = 3
_SHOWN = 40
_MOST_UNDONE = 200


@attrs.frozen
class Edit:
    """An edit that fits: the change, the text it leads to, what was changed in it, and whether that is done already."""

    change: Change
    text: Document
    spans: Spans
    done: bool = False


_EDITED: PathUses = {"path": ("read", "write")}


def _plan(
    ctx: ToolContext,
    path: str,
    spans_of: Callable[[Document], Spans],
    taken_back: Callable[[Document], Iterable[Spans]],
) -> Edit:
    """What an edit would do. Raises PathError, ToolError for one that does not fit, or over an unseen content."""
    found = find_there(ctx, path)
    text = document(path, found.content)
    refusal = unseen(ctx, found)
    if refusal is None:
        spans = spans_of(text)
        after = text.replaced(spans)
        return Edit(Change(found.path, found.content, encoded(path, after), found.mode), after, spans)
    if ctx.memory.knows(found.path):
        for spans in islice(taken_back(text), _MOST_UNDONE):
            before = encoded(path, text.replaced(spans))
            if ctx.memory.is_current(found.path, before):
                return Edit(Change(found.path, before, found.content, found.mode), text, [], done=True)
    raise refusal


def _perform(ctx: ToolContext, plan: Callable[[], Edit]) -> str:
    with ctx.workspace.edits:
        edit = plan()
        name = plain(edit.change.path)
        if edit.done:
            tell(ctx, [edit.change])
            return f"{name} has this change already: it was made before this call was interrupted"
        if edit.change.before == edit.change.after:
            return f"{name} already reads like that; nothing was changed"
        carry_out(ctx, [edit.change])
    return f"changed {name}{_where(edit)}"


def _where(edit: Edit) -> str:
    """The lines around a single change as they are now, so that the next one finds its place."""
    if len(edit.spans) != 1:
        return f" in {len(edit.spans)} places"
    (span,) = edit.spans
    lines = edit.text.lines
    first = edit.text.line_at(span.start)
    last = min(len(lines), first + max(0, span.text.count("\n") - span.text.endswith("\n")))
    first, last = max(1, first - _CONTEXT), min(len(lines), last + _CONTEXT)
    if not lines:
        return "; it is empty now"
    if last - first >= _SHOWN:
        return f", now {counted(len(lines), 'line', 'lines')}"
    return f"; lines {first}-{last} of {len(lines)} now:\n{numbered(lines, first, last)}"


# --- by text -----------------------------------------------------------------------------------------------------


def _preview_edit(ctx: ToolContext, arguments: JsonObject) -> str:
    return _plan_edit(ctx, **arguments).change.diff


@tool(effects="idempotent", paths=_EDITED, preview=_preview_edit)
def edit_file(ctx: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
    """Replace a piece of a text file that you have read. The old text must be in it exactly, and only once.

    Args:
        path: The file, relative to the workspace.
        old_text: The text to replace, exactly as in the file, without line numbers, with enough around it to be unique.
        new_text: What takes its place; empty to remove it.
        replace_all: Replace every place where the old text stands.
    """
    return _perform(ctx, lambda: _plan_edit(ctx, path, old_text, new_text, replace_all))


def _plan_edit(ctx: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool = False) -> Edit:
    old, new = old_text.replace("\r\n", "\n"), new_text.replace("\r\n", "\n")
    if not old:
        raise ToolError("old_text is empty; to add lines use insert_lines, for a new file write_file")
    if old == new:
        raise ToolError("old_text and new_text are the same")

    def spans_of(text: Document) -> Spans:
        places = list(_places(text.plain, old, overlapping=not replace_all))
        if not places:
            raise ToolError(f"old_text is not in {plain(path)}. {hint(text.lines, old)}")
        if len(places) > 1 and not replace_all:
            lines = ", ".join(str(text.line_at(at)) for at in places[:10])
            more = ", …" if len(places) > 10 else ""
            raise ToolError(
                f"old_text is in {plain(path)} {len(places)} times, at lines {lines}{more}; "
                "add lines around it until it is unique, or set replace_all"
            )
        return [Span(at, at + len(old), new) for at in places]

    def taken_back(text: Document) -> Iterator[Spans]:
        if new:
            spans = [Span(at, at + len(new), old) for at in _places(text.plain, new, overlapping=not replace_all)]
            yield from [spans] if replace_all else ([span] for span in spans)

    return _plan(ctx, path, spans_of, taken_back)


def _places(text: str, wanted: str, *, overlapping: bool) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + (1 if overlapping else len(wanted)))


# --- by number ---------------------------------------------------------------------------------------------------


def _preview_insert(ctx: ToolContext, arguments: JsonObject) -> str:
    return _plan_insert(ctx, **arguments).change.diff


@tool(effects="idempotent", paths=_EDITED, preview=_preview_insert)
def insert_lines(ctx: ToolContext, path: str, after: int, expected: str, content: str) -> str:
    """Put new lines into a text file that you have read, after the line with this number.

    Args:
        path: The file, relative to the workspace.
        after: The number of the line to insert after, counted from 1; 0 to insert before the first.
        expected: What that line reads now, as a check; empty where after is 0.
        content: The new lines.
    """
    return _perform(ctx, lambda: _plan_insert(ctx, path, after, expected, content))


def _plan_insert(ctx: ToolContext, path: str, after: int, expected: str, content: str) -> Edit:
    new = _new_lines(content)

    def spans_of(text: Document) -> Spans:
        if after:
            _expect(path, text, after, after, expected)
        elif expected.strip():
            raise ToolError("after=0 inserts before the first line; leave expected empty, or name the line in after")
        return [inserted(text, after, new)]

    def taken_back(text: Document) -> Iterator[Spans]:
        if text.lines[after : after + len(new)] == new:
            yield [removed(text, after + 1, after + len(new))]

    return _plan(ctx, path, spans_of, taken_back)


def _preview_replace(ctx: ToolContext, arguments: JsonObject) -> str:
    return _plan_replace(ctx, **arguments).change.diff


@tool(effects="idempotent", paths=_EDITED, preview=_preview_replace)
def replace_lines(ctx: ToolContext, path: str, start: int, end: int, expected: str, content: str) -> str:
    """Replace whole lines of a text file that you have read, by their numbers.

    Args:
        path: The file, relative to the workspace.
        start: The first line to replace, counted from 1.
        end: The last line to replace.
        expected: What these lines read now, without line numbers, as a check.
        content: The lines that take their place, as many as you like.
    """
    return _perform(ctx, lambda: _plan_replace(ctx, path, start, end, expected, content))


def _plan_replace(ctx: ToolContext, path: str, start: int, end: int, expected: str, content: str) -> Edit:
    new = _new_lines(content)

    def spans_of(text: Document) -> Spans:
        _expect(path, text, start, end, expected)
        return [exchanged(text, start, end, new)]

    def taken_back(text: Document) -> Iterator[Spans]:
        last = start + len(new) - 1
        if text.lines[start - 1 : last] == new:
            yield [exchanged(text, start, last, _lines(expected))]

    return _plan(ctx, path, spans_of, taken_back)


def _preview_delete(ctx: ToolContext, arguments: JsonObject) -> str:
    return _plan_delete(ctx, **arguments).change.diff


@tool(effects="idempotent", paths=_EDITED, preview=_preview_delete)
def delete_lines(ctx: ToolContext, path: str, start: int, end: int, expected: str) -> str:
    """Remove whole lines of a text file that you have read, by their numbers.

    Args:
        path: The file, relative to the workspace.
        start: The first line to remove, counted from 1.
        end: The last line to remove.
        expected: What these lines read now, without line numbers, as a check.
    """
    return _perform(ctx, lambda: _plan_delete(ctx, path, start, end, expected))


def _plan_delete(ctx: ToolContext, path: str, start: int, end: int, expected: str) -> Edit:
    def spans_of(text: Document) -> Spans:
        _expect(path, text, start, end, expected)
        return [removed(text, start, end)]

    def taken_back(text: Document) -> Iterator[Spans]:
        if 0 < start <= len(text.lines) + 1:
            yield [inserted(text, start - 1, _lines(expected))]

    return _plan(ctx, path, spans_of, taken_back)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _new_lines(content: str) -> list[str]:
    if not content:
        raise ToolError("content is empty; it needs at least one line (one newline is an empty line)")
    return _lines(content)


def _expect(path: str, text: Document, start: int, end: int, expected: str) -> None:
    """Raises ToolError unless these lines are there and read as expected."""
    lines = text.lines
    if not 1 <= start <= end:
        raise ToolError(f"start={start}, end={end}: lines are counted from 1, and end is not before start")
    if end > len(lines):
        raise ToolError(f"{plain(path)} has only {counted(len(lines), 'line', 'lines')}, no line {end}")
    wanted = _lines(expected)
    if lines[start - 1 : end] == wanted:
        return
    what = f"line {start} reads" if start == end else f"lines {start}-{end} read"
    now = numbered(lines, start, end)
    raise ToolError(f"nothing was changed: {what} otherwise than expected. Now:\n{now}{_elsewhere(lines, wanted)}")


def _elsewhere(lines: Sequence[str], wanted: list[str]) -> str:
    size = len(wanted)
    places = [at + 1 for at, line in enumerate(lines) if line == wanted[0] and list(lines[at : at + size]) == wanted]
    if not places or not any(wanted):
        return ""
    return f"\nWhat you expect stands at line {', '.join(map(str, places[:5]))}."


EDIT_TOOLS: tuple[Tool, ...] = (edit_file, insert_lines, replace_lines, delete_lines)
