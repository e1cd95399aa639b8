"""Results too long for a conversation: shortened for the model, kept in full for a while, paged on request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.context.excerpt import LEAST_CHARS, NEAR
from runtime.context.excerpt import shorten as shorten
from runtime.errors import JournalError
from runtime.limits.estimate import byte_length

from ._tool import Output, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from runtime.journal.interface import Contents

PAGE_CHARS = 20_000
KEPT_CHARS = 32_000_000
KEPT_BYTES = 256_000_000


def fitting(text: str, room: int, keep: Callable[[str], str | None]) -> str:
    """The text in about `room` UTF-8 bytes; one that is longer goes to `keep`, which gives the handle to the rest."""
    size = byte_length(text)
    if size <= room:
        return text
    return shorten(text, max(LEAST_CHARS, len(text) * room // size), keep(text))


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
        at_line = text.rfind("\n", max(start, end - NEAR), end)
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

    @property
    def handles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._names, *self._texts]))


async def _found(store: ResultStore, handles: Sequence[str], words: str) -> Output:
    """The lines of kept texts that hold the words, as many as fit on a page."""
    lines: list[str] = []
    room = PAGE_CHARS
    for handle in handles:
        text = await store.fetch(handle) or ""
        low, wanted, at = text.lower(), words.lower(), 0
        while (at := low.find(wanted, at)) >= 0 and room > 0:
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = len(text) if end < 0 else end
            line = f"{handle} at {begin}: {text[max(begin, at - 200) : min(end, at + 400)]}"
            lines.append(line)
            room -= len(line)
            at = end
        if room <= 0:
            lines.append("[more was found; give more words, or one handle]")
            break
    return Output("\n".join(lines) or f"nothing that was kept holds {words!r}")


@tool(effects="none", private=True, max_result_chars=PAGE_CHARS + 1000)
async def read_result(ctx: ToolContext, handle: str, start: int = 0, chars: int = PAGE_CHARS, find: str = "") -> Output:
    """Read a piece of an earlier tool result that was too long to show in full, or find words in it.

    Args:
        handle: The handle named where the result was cut; `*` with `find` looks through all that was kept.
        start: The first character to show, counted from 0.
        chars: How many characters to show at most.
        find: Show only lines that hold these words, upper or lower case, each with its handle and place.
    """
    store = ctx.results
    if store is None:
        raise ToolError("no results are kept here. Call the tool again instead.")
    if find.strip():
        names = store.handles[::-1] if handle == "*" else (handle,)
        return await _found(store, tuple(filter(ctx.opens, names)), find.strip())
    text = await store.fetch(handle) if ctx.opens(handle) else None
    if text is None:
        known = ", ".join([each for each in store.handles if ctx.opens(each)][-20:]) or "none"
        raise ToolError(f"no kept result has the handle {handle!r}; kept: {known}. Call the tool again instead.")
    piece = page(text, start, min(chars, PAGE_CHARS))
    more = f"; go on with start={piece.end}" if piece.end < piece.whole else "; this is the end"
    return Output(f"{piece.text}\n[characters {piece.start} to {piece.end} of {piece.whole}{more}]")
