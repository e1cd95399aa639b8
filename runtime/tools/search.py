"""The tool that looks for text in the workspace: search_text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs
import trio

from runtime.handover.sources import READ, read_data
from runtime.messages import JsonObject
from runtime.policy.beneath import shown
from runtime.policy.paths import Entry, PathError

from ._grep import MAX_SECONDS, Match, Matcher, TooSlow
from ._text import counted, decode, plain
from ._tool import Output, PathUses, Tool, ToolContext, ToolError, tool

MAX_MATCHES = 200
MAX_FILE_BYTES = 4_000_000
_MAX_PATTERN = 1000


def _searched(arguments: JsonObject) -> PathUses:
    return {str(arguments.get("path") or "."): "read"}


@tool(effects="none", paths=_searched)
def search_text(ctx: ToolContext, pattern: str, path: str = ".") -> Output:
    """Search the text files of the workspace for a regular expression, line by line: each match as `path:line: text`.

    Args:
        pattern: A regular expression in Python's syntax; (?i) in front ignores case.
        path: The folder or file to search, relative to the workspace. What .gitignore excludes is left out.
    """
    if len(pattern) > _MAX_PATTERN:
        raise ToolError(f"the pattern has more than {_MAX_PATTERN} characters")
    try:
        matcher = Matcher(pattern, MAX_MATCHES + 1, trio.from_thread.check_cancelled)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"{shown(pattern)} is no regular expression: {error}. Put a \\ before ( [ . * meant as text."
        ) from error
    tally = _Tally()
    try:
        matches = list(_matches(ctx, matcher, path or ".", tally))
    except TooSlow:
        raise ToolError(f"{shown(pattern)} takes longer than {MAX_SECONDS:.0f} s; use a simpler pattern") from None
    lines = [f"{plain(match.path)}:{match.line}: {match.text}" for match in matches[:MAX_MATCHES]]
    if not lines:
        lines.append(f"no match for {pattern} in {counted(tally.searched, 'file', 'files')}")
    elif len(matches) > MAX_MATCHES:
        lines.append(f"[only the first {MAX_MATCHES} matches; use a narrower pattern or path]")
    if tally.too_large:
        lines.append(f"[not searched, larger than {MAX_FILE_BYTES} bytes: {', '.join(tally.too_large[:5])}]")
    if tally.kept_out:
        lines.append(f"[not searched, permission rules: {counted(tally.kept_out, 'file', 'files')}]")
    read = read_data((match.path, match.line, match.line) for match in matches[:MAX_MATCHES])
    return Output("\n".join(lines), data={READ: read})


@attrs.define
class _Tally:
    searched: int = 0
    kept_out: int = 0
    too_large: list[str] = attrs.field(factory=list[str])


def _matches(ctx: ToolContext, matcher: Matcher, path: str, tally: _Tally) -> Iterator[Match]:
    for entry in _entries(ctx, path):
        if matcher.full:
            return
        if not ctx.readable(entry.path):
            tally.kept_out += 1
        elif entry.size > MAX_FILE_BYTES:
            tally.too_large.append(plain(entry.path))
        else:
            try:
                decoded = decode(ctx.workspace.read_bytes(entry.path, MAX_FILE_BYTES))
            except PathError:
                continue  # Gone meanwhile, or not ours to read.
            if decoded is not None:
                tally.searched += 1
                yield from matcher.search(entry.path, decoded.text)
    yield from matcher.finish()


def _entries(ctx: ToolContext, path: str) -> Iterator[Entry]:
    entry = ctx.workspace.stat(path)
    match entry.kind:
        case "folder":
            yield from ctx.workspace.walk(path)
        case "file":
            yield entry
        case _:
            raise ToolError(f"{shown(path)} is a pipe, socket or device, not a file")


SEARCH_TOOLS: tuple[Tool, ...] = (search_text,)
