"""read_file and write_file where an editor offers its own view of files: what is not saved yet is read from there."""

from __future__ import annotations

import io
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import attrs
import trio

from runtime.errors import ElencoError
from runtime.tools import Output, Tool, ToolContext, ToolError
from runtime.tools.files import read_file, write_file
from runtime.tools.reading import read_page

Read: TypeAlias = Callable[[str], Awaitable["str | None"]]
Write: TypeAlias = Callable[[str, str], Awaitable[bool]]

UNSAVED = (
    "[The editor holds changes of this file that are not saved: this is what it shows; what is on disk is older. "
    "Ask for it to be saved before you change it.]"
)


def files_of(read: Read | None, write: Write | None) -> list[Tool]:
    """The two tools as they are with this editor; `read` gives a file as the editor has it, None where it has none,
    `write` tells it of a new content, and whether it took it. Both get absolute paths.

    Rules, confinement and record are those of the tools themselves: they look at the disk first.
    """
    found: list[Tool] = []
    if read is not None:
        found.append(attrs.evolve(read_file, run=_reading(read)))
    if write is not None:
        found.append(attrs.evolve(write_file, run=_writing(write)))
    return found


def _reading(read: Read) -> Callable[..., Output]:
    def run(ctx: ToolContext, path: str, start: int = 1, end: int | None = None) -> Output:
        output: Output = read_file.run(ctx, path=path, start=start, end=end)
        real, content = _on_disk(ctx, path)
        if content is None:
            return output
        shown = trio.from_thread.run(read, os.path.join(ctx.workspace.root, real))
        if shown is None or _lines(shown) == _lines(content):
            return output
        page = read_page(io.BytesIO(shown.encode(errors="replace")), path, start, end)
        ctx.memory.seen.pop(real, None)  # what would be changed is not what was shown
        return Output(f"{UNSAVED}\n{page}")

    return run


def _writing(write: Write) -> Callable[..., str]:
    def run(ctx: ToolContext, path: str, content: str) -> str:
        said: str = write_file.run(ctx, path=path, content=content)
        real, written = _on_disk(ctx, path)
        if written is not None and not trio.from_thread.run(write, os.path.join(ctx.workspace.root, real), written):
            said += "; the editor did not take it over"
        return said

    return run


def _on_disk(ctx: ToolContext, path: str) -> tuple[str, str | None]:
    """A file's path in the workspace and its text, None where it is no text or lies elsewhere."""
    try:
        real = ctx.workspace.real_path(path)
        return real, None if os.path.isabs(real) else ctx.workspace.read_bytes(path).decode()
    except (UnicodeDecodeError, ElencoError, ToolError, OSError):
        return path, None


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def offered(capabilities: Any) -> tuple[bool, bool]:
    """Whether an editor offers to read and to write files."""
    fs: Any = cast("dict[str, Any]", capabilities).get("fs") if isinstance(capabilities, dict) else None
    if not isinstance(fs, dict):
        return False, False
    found = cast("dict[str, Any]", fs)
    return found.get("readTextFile") is True, found.get("writeTextFile") is True
