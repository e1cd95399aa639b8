"""Results too long for a conversation: shortened for the model, kept in full for a while, paged on request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.errors import JournalError
from runtime.limits.estimate import byte_length

from ._tool import Output, Tool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from runtime.journal.interface import Contents

PAGE_CHARS = 20_000
KEPT_CHARS = 32_000_000
KEPT_BYTES = 256_000_000
LEAST_CHARS = 160
"""What is shorter is not worth a marker."""
_NEAR = 200


def shorten(text: str, limit: int, handle: str | None = None) -> str:
    """Keep the head and the tail of a text longer than `limit` characters, with a marker that says what is missing.

    With a `handle`, the marker says how to read the rest. The answer has at most `limit` characters, unless the
    marker alone is longer.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_marker(0, len(text), len(text), handle)) - len(str(len(text))))
    head_end = _line_end_before(text, room * 2 // 3)
    tail_start = _line_start_after(text, len(text) - (room - room * 2 // 3))
    return text[:head_end] + _marker(head_end, tail_start, len(text), handle) + text[tail_start:]


def fitting(text: str, room: int, keep: Callable[[str], str | None]) -> str:
    """The text in about `room` UTF-8 bytes; one that is longer goes to `keep`, which gives the handle to the rest."""
    size = byte_length(text)
    if size <= room:
        return text
    return shorten(text, max(LEAST_CHARS, len(text) * room // size), keep(text))


def _marker(start: int, end: int, whole: int, handle: str | None) -> str:
    how = f'; read_result(handle="{handle}", start={start}) shows them' if handle else ""
    return f"\n[... {end - start} of {whole} characters left out{how} ...]\n"


def _line_end_before(text: str, at: int) -> int:
    found = text.rfind("\n", max(0, at - _NEAR), at)
    return at if found < 0 else found + 1


def _line_start_after(text: str, at: int) -> int:
    found = text.find("\n", at, at + _NEAR)
    return at if found < 0 else found + 1


@attrs.frozen
class Page:
    """A piece of a kept text: characters `start` to `end` (exclusive) of `whole`."""

    text: str
    start: int
    end: int
    whole: int


def page(text: str, start: int = 0, chars: int = PAGE_CHARS) -> Page:
    """Cut one page out of a text, at the end of a line where one is near. Pages that follow `end` leave no gap."""
    start = min(max(start, 0), len(text))
    end = min(start + max(chars, 1), len(text))
    if end < len(text):
        at_line = text.rfind("\n", max(start, end - _NEAR), end)
        end = end if at_line < 0 else at_line + 1
    return Page(text[start:end], start, end, len(text))


class ResultStore:
    """The full texts of one run's long results, at most `limit` characters in memory, the newest ones.

    With `contents`, up to `on_disk` bytes are on disk as well, where a later process finds them.
    """

    def __init__(self, limit: int = KEPT_CHARS, contents: Contents | None = None, on_disk: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._contents = contents
        self._room = on_disk
        self._names: dict[str, str] = {}

    def keep(self, handle: str, text: str) -> str | None:
        """Keep a text under its handle; None when it is larger than everything that may be kept.

        What is kept under a handle stays: a shortened text does not take the place of the whole one.
        """
        if handle in self._texts or handle in self._names:
            return handle
        if len(text) > self._limit:
            return None
        self._size += len(text)
        self._texts[handle] = text
        while self._size > self._limit:
            _, dropped = self._texts.popitem(last=False)
            self._size -= len(dropped)
        return handle

    def get(self, handle: str) -> str | None:
        """The text, where it is in memory."""
        return self._texts.get(handle)

    async def save(self, handle: str) -> str:
        """Put a kept text on disk and give its name there, "" where it is not kept there.

        It cannot be cancelled while it writes.
        """
        text = self._texts.get(handle)
        if text is None or self._contents is None or handle in self._names:
            return self._names.get(handle, "")
        data = text.encode(errors="replace")
        if len(data) > self._room:
            return ""
        try:
            # The call has ended; its result must not be lost to a late cancel.
            with trio.CancelScope(shield=True):
                self._names[handle] = await trio.to_thread.run_sync(self._contents.put, data)
        except OSError:
            return ""  # It is in memory; a full disk shows itself where it matters.
        self._room -= len(data)
        return self._names[handle]

    def name_of(self, handle: str) -> str:
        """The name of a saved text, "" where there is none."""
        return self._names.get(handle, "")

    def restore(self, names: Mapping[str, str]) -> None:
        """Take over what an earlier process has saved."""
        self._names.update(names)

    async def fetch(self, handle: str) -> str | None:
        """The text, from memory or from disk. A cancelled call leaves nothing behind."""
        if (text := self._texts.get(handle)) is not None or self._contents is None or handle not in self._names:
            return text
        try:
            data = await trio.to_thread.run_sync(self._contents.get, self._names[handle])
        except JournalError:
            return None
        return data.decode(errors="replace")

    @cached_property
    def reader(self) -> Tool:
        """The tool that reads from this store, one for all agents."""
        return read_result_tool(self)

    @property
    def handles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._names, *self._texts]))


def read_result_tool(store: ResultStore) -> Tool:
    """The tool `read_result` over one run's store."""

    @tool(effects="none", private=True, max_result_chars=PAGE_CHARS + 1000)
    async def read_result(ctx: ToolContext, handle: str, start: int = 0, chars: int = PAGE_CHARS) -> Output:
        """Read a piece of an earlier tool result that was too long to show in full.

        Args:
            handle: The handle named where the result was cut.
            start: The first character to show, counted from 0.
            chars: How many characters to show at most.
        """
        text = await store.fetch(handle) if ctx.opens(handle) else None
        if text is None:
            known = ", ".join([each for each in store.handles if ctx.opens(each)][-20:]) or "none"
            raise ToolError(f"no kept result has the handle {handle!r}; kept: {known}. Call the tool again instead.")
        piece = page(text, start, min(chars, PAGE_CHARS))
        more = f"; go on with start={piece.end}" if piece.end < piece.whole else "; this is the end"
        return Output(f"{piece.text}\n[characters {piece.start} to {piece.end} of {piece.whole}{more}]")

    return read_result
