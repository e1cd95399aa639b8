"""Where what a report says is from: lines of files and pages of the web that were really read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from runtime.messages import JsonObject

Lines: TypeAlias = tuple[tuple[int, int], ...]
"""First and last line of each stretch, from 1, in their order and apart from each other."""

READ = "read"
"""The key under which a result's data names what its call has shown: `{path, lines}` and `{url}`."""


@attrs.frozen
class Source:
    """A file of the workspace with the lines of it that were read (none: the file is empty), or a page's address."""

    path: str = ""
    lines: Lines = ()
    url: str = ""

    def __str__(self) -> str:
        if self.url:
            return self.url
        stretches = (f"{first}-{last}" if last > first else str(first) for first, last in self.lines)
        return f"{self.path}:{','.join(stretches)}" if self.lines else self.path

    def as_json(self) -> JsonObject:
        return {"url": self.url} if self.url else {"path": self.path, "lines": [list(each) for each in self.lines]}


@attrs.frozen
class Kept:
    """A long result that is kept whole: the handle to open it with, and the call it is of."""

    handle: str
    call: str

    def as_json(self) -> JsonObject:
        return {"handle": self.handle, "call": self.call}


def source_from_json(data: JsonObject) -> Source:
    """The source of a report or of a result's data; a shape that is none gives an empty one."""
    url, path, lines = data.get("url"), data.get("path"), data.get("lines", ())
    if isinstance(url, str) and url:
        return Source(url=url)
    return Source(path, merged(tuple(each) for each in lines)) if isinstance(path, str) else Source()


def kept_from_json(data: JsonObject) -> Kept:
    return Kept(str(data.get("handle", "")), str(data.get("call", "")))


def read_data(found: Iterable[tuple[str, int, int]]) -> list[JsonObject]:
    """What a result's data says of lines that were shown, each as path, first and last line."""
    files: dict[str, list[tuple[int, int]]] = {}
    for path, first, last in found:
        files.setdefault(path, []).append((first, last))
    return [Source(path, merged(lines)).as_json() for path, lines in files.items()]


def merged(stretches: Iterable[tuple[int, ...]]) -> Lines:
    """The stretches in their order, those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((each[0], each[-1]) for each in stretches):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)
