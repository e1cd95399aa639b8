"""The tool `search_passages`: the passages of the workspace that fit a question best, with where they stand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import attrs
import trio

from runtime.context.bm25 import Index, IndexedFile, index_file
from runtime.context.found import render_found
from runtime.handover.sources import READ, read_data
from runtime.policy.paths import Entry, PathError, Workspace

from ._text import decode
from ._tool import Output, Tool, ToolContext, ToolError, tool

MOST_PASSAGES = 40
MOST_FILE_BYTES = 400_000
MOST_BYTES = 32_000_000
"""Of all files together: an index takes about ten times the memory of its texts."""
MOST_WORKSPACES = 4


@attrs.frozen
class _Known:
    modified: int
    size: int
    file: IndexedFile | None


@attrs.frozen
class Searched:
    """An index, and how many text files were left out of it for their size."""

    index: Index
    left_out: int


class PassageCache:
    """The indexed files of the workspaces searched last; a file is read again when its time or size has changed.

    Safe for use from several threads: they build one index after another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workspaces: OrderedDict[str, dict[str, _Known]] = OrderedDict()

    def index(self, workspace: Workspace, readable: Callable[[str], bool]) -> Searched:
        """An index of what may be read in a workspace as it is now. Blocks. Raises PathError."""
        with self._lock:
            before = self._workspaces.pop(workspace.root, {})
            now: dict[str, _Known] = {}
            budget = MOST_BYTES
            left_out = 0
            for entry in workspace.walk():
                _end_if_cancelled()
                if not entry.path.isprintable():
                    continue  # Its name could not be shown in one line, nor found again by what is shown.
                if entry.size > min(budget, MOST_FILE_BYTES):
                    left_out += 1
                    continue
                known = before.get(entry.path)
                if known is None or (known.modified, known.size) != (entry.modified, entry.size):
                    known = _Known(entry.modified, entry.size, _read(workspace, entry))
                now[entry.path] = known
                budget -= entry.size if known.file is not None else 0
            self._workspaces[workspace.root] = now
            while len(self._workspaces) > MOST_WORKSPACES:
                self._workspaces.popitem(last=False)
        files = (known.file for known in now.values() if known.file is not None)
        return Searched(Index.of(file for file in files if readable(file.path)), left_out)


def search_passages_tool(cache: PassageCache) -> Tool:
    """The tool over one cache; it looks only at what the actor's rules let it read."""

    @tool(effects="none", paths=lambda _: {".": "list"})
    def search_passages(
        ctx: ToolContext,
        query: Annotated[str, "The words to look for, or the whole question."],
        top: Annotated[int, "How many passages to show at most."] = 8,
    ) -> Output:
        """Find the paragraphs, list items, table rows and pieces of code that fit a question best, best first.

        Each comes with its path, its lines and the headings above it. Word forms and parts of names count: "retried"
        finds `retry_after`. For an exact text or a regular expression use search_text.
        """
        if not query.strip():
            raise ToolError("query is empty: give the words to look for, or the whole question")
        try:
            searched = cache.index(ctx.workspace, ctx.readable)
        except PathError as error:
            raise ToolError(str(error)) from error
        index = searched.index
        found = index.search(query, max(1, min(top, MOST_PASSAGES)))
        counts = index.frequencies(query)
        text = render_found(found, counts, index.passage_count, len(index.files), searched.left_out)
        return Output(text, data={READ: read_data((each.path, each.start_line, each.end_line) for each in found)})

    return search_passages


search_passages = search_passages_tool(PassageCache())


def _read(workspace: Workspace, entry: Entry) -> IndexedFile | None:
    """The file's passages, or None for what is no text or has gone meanwhile."""
    try:
        content = workspace.read_bytes(entry.path, MOST_FILE_BYTES)
    except PathError:
        return None
    decoded = decode(content)
    return index_file(entry.path, decoded.text) if decoded is not None else None


def _end_if_cancelled() -> None:
    with suppress(RuntimeError):  # Called outside of Trio's threads: nobody can cancel it.
        trio.from_thread.check_cancelled()


__all__ = ["PassageCache", "search_passages", "search_passages_tool"]
