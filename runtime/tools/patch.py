"""Unified diffs as models and git write them: read into changes of files, and applied to a document. Pure.

A hunk applies where its context and its removed lines stand exactly, at the line it names or, if that has shifted, at
the one other place where they do. Line counts that are wrong are forgiven; content is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from .document import Document, Span
from .near import hint

MAX_FILES = 200
_HUNK = re.compile(r"@@+(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@)?")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_NO_END = "\\ "


class PatchError(ValueError):
    """A patch that cannot be read or does not fit; the message says where and why."""


@attrs.frozen
class Hunk:
    """`old` and `new` are whole lines without ends; `start` is the first old line's number from 1, None if not given.

    `new_start` is the first new line's; `line` is where the hunk stands in the patch. `ends` says of the old and the
    new text whether the patch marks its last line as one without an end.
    """

    start: int | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int
    ends: tuple[bool, bool] = (False, False)
    new_start: int | None = None

    @property
    def reversed(self) -> Hunk:
        return Hunk(self.new_start, self.new, self.old, self.line, (self.ends[1], self.ends[0]), self.start)


@attrs.frozen
class FilePatch:
    """What a patch does to one file: `old` None makes a new one, `new` None removes it, two different names move it."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()

    @property
    def path(self) -> str:
        return self.new or self.old or ""


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """The changes a patch stands for, in its order. Raises PatchError."""
    reader = _Reader(text.replace("\r\n", "\n").split("\n"))
    files = tuple(reader.files())
    if not files:
        raise PatchError(
            "the patch names no file: it needs '--- a/PATH' and '+++ b/PATH' lines, then hunks that begin with '@@'"
        )
    if len(files) > MAX_FILES:
        raise PatchError(f"the patch changes more than {MAX_FILES} files")
    return files


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> Iterator[FilePatch]:
        old: str | None = None
        new: str | None = None
        git = moved = fresh = gone = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            follows = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
            if line.startswith("diff --git "):
                if git:
                    yield from _without_hunks(old, new, moved, fresh, gone)
                old, new = _git_names(line)
                git, moved, fresh, gone = True, False, False, False
            elif line.startswith("--- ") and follows.startswith("+++ "):
                old, new = _names(line[4:], follows[4:])
                self._at += 2
                yield FilePatch(old, new, self._hunks(old or new or ""))
                old = new = None
                git = False
                continue
            elif line.startswith(("rename from ", "rename to ")):
                moved = True
                path = _unquoted(line.split(" ", 2)[2])
                old, new = (path, new) if line.startswith("rename from ") else (old, path)
            elif line.startswith("new file mode "):
                fresh = True
            elif line.startswith("deleted file mode "):
                gone = True
            elif line.startswith(("GIT binary patch", "Binary files ")):
                raise PatchError(f"line {self._at + 1}: a binary patch cannot be applied here")
            elif git and line.startswith(("old mode ", "copy from ")):
                raise PatchError(f"line {self._at + 1}: '{line}' cannot be done here; only content and names change")
            elif _HUNK.match(line) and line.startswith("@@"):
                raise PatchError(f"line {self._at + 1}: a hunk without '--- a/PATH' and '+++ b/PATH' before it")
            self._at += 1
        if git:
            yield from _without_hunks(old, new, moved, fresh, gone)

    def _hunks(self, path: str) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while self._at < len(self._lines) and (found := _HUNK.match(self._lines[self._at])):
            self._at += 1
            counts = None if found[1] is None else (int(found[2] or 1), int(found[4] or 1))
            start, new_start = (None if found[1] is None else int(found[at]) for at in (1, 3))
            hunk = self._hunk(path, start, counts)
            hunks.append(attrs.evolve(hunk, new_start=new_start))
        if not hunks:
            raise PatchError(
                f"line {self._at + 1}: no hunk for {path}; one begins with '@@ -LINE,COUNT +LINE,COUNT @@'"
            )
        return tuple(hunks)

    def _hunk(self, path: str, start: int | None, counts: tuple[int, int] | None) -> Hunk:
        """One hunk; its counts are believed while they fit what stands there, and forgotten when they do not."""
        first = self._at
        if counts is not None and (hunk := self._counted(start, counts)) is not None:
            return hunk
        self._at = first
        return self._uncounted(path, start)

    def _counted(self, start: int | None, counts: tuple[int, int]) -> Hunk | None:
        first, old_left, new_left = self._at, *counts
        body = _Body()
        while old_left or new_left:
            if self._at >= len(self._lines):
                return None
            line = self._lines[self._at]
            match line[:1]:
                case " " | "":
                    old_left, new_left = old_left - 1, new_left - 1
                case "-":
                    old_left -= 1
                case "+":
                    new_left -= 1
                case "\\":
                    pass
                case _:
                    return None
            if old_left < 0 or new_left < 0:
                return None
            body.add(line)
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith(_NO_END):
            body.add(self._lines[self._at])
            self._at += 1
        # What follows must be something else than more of this hunk, else the counts were wrong.
        follows = self._lines[self._at] if self._at < len(self._lines) else ""
        if follows[:1] in (" ", "+", "-") and not self._is_next_file() and not self._is_signature():
            return None
        return body.hunk(start, first)

    def _uncounted(self, path: str, start: int | None) -> Hunk:
        first = self._at
        body = _Body()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(("@@", "diff --git ")) or self._is_next_file() or self._is_signature():
                break
            if line[:1] not in (" ", "+", "-", "\\", ""):
                raise PatchError(
                    f"line {self._at + 1}: {line[:60]!r} in the hunk for {path} begins with none of ' ', '+', '-'"
                )
            body.add(line)
            self._at += 1
        body.drop_blank_end()
        return body.hunk(start, first)

    def _is_next_file(self) -> bool:
        here, follows = self._lines[self._at], self._lines[self._at + 1 : self._at + 2]
        return here.startswith("--- ") and bool(follows) and follows[0].startswith("+++ ")

    def _is_signature(self) -> bool:
        """Git's mails end with `-- ` and its version."""
        here, follows = self._lines[self._at], self._lines[self._at + 1 : self._at + 2]
        return here == "-- " and bool(follows) and re.match(r"\d+\.\d", follows[0]) is not None


class _Body:
    """The lines of a hunk as they come."""

    def __init__(self) -> None:
        self._rows: list[str] = []
        self._ends = [False, False]

    def add(self, line: str) -> None:
        if line.startswith("\\"):
            last = self._rows[-1][:1] if self._rows else " "
            self._ends[0] = self._ends[0] or last in (" ", "-")
            self._ends[1] = self._ends[1] or last in (" ", "+")
        else:
            self._rows.append(line or " ")

    def drop_blank_end(self) -> None:
        """Blank lines at the end of a patch belong to nobody."""
        while self._rows and self._rows[-1] == " ":
            self._rows.pop()

    def hunk(self, start: int | None, first: int) -> Hunk:
        old = tuple(row[1:] for row in self._rows if row[0] in " -")
        new = tuple(row[1:] for row in self._rows if row[0] in " +")
        if not self._rows:
            raise PatchError(f"line {first}: the hunk is empty")
        return Hunk(start, old, new, first, (self._ends[0], self._ends[1]))


def _without_hunks(old: str | None, new: str | None, moved: bool, fresh: bool, gone: bool) -> Iterator[FilePatch]:
    """A file of a git patch that has no hunk: moved, made empty, or removed while empty."""
    if moved and old and new:
        yield FilePatch(old, new)
    elif fresh and new:
        yield FilePatch(None, new)
    elif gone and old:
        yield FilePatch(old, None)


def _git_names(line: str) -> tuple[str | None, str | None]:
    """The names of `diff --git a/X b/X`, as far as they can be told apart."""
    rest = line.removeprefix("diff --git ")
    if rest.startswith('"'):
        found = re.fullmatch(r'("(?:[^"\\]|\\.)*") (.*)', rest)
        return (None, None) if found is None else _names(found[1], found[2])
    half = len(rest) // 2
    if rest[half : half + 1] == " " and rest[:half].partition("/")[2] == rest[half + 1 :].partition("/")[2]:
        return _names(rest[:half], rest[half + 1 :])
    old, _, new = rest.partition(" b/")
    return _names(old, f"b/{new}") if new else (None, None)


def _names(old: str, new: str) -> tuple[str | None, str | None]:
    """Both paths as they are in the workspace: None for /dev/null, without git's a/ and b/."""
    before, after = _plain_name(old), _plain_name(new)
    gone, fresh = after == "/dev/null", before == "/dev/null"
    if gone and fresh:
        raise PatchError("a patch from /dev/null to /dev/null changes nothing")
    if (fresh or before.startswith("a/")) and (gone or after.startswith("b/")):
        before, after = before if fresh else before[2:], after if gone else after[2:]
    return (None if fresh else before), (None if gone else after)


def _plain_name(text: str) -> str:
    name = text if text.startswith('"') else text.partition("\t")[0].rstrip()
    name = _unquoted(name)
    if not name:
        raise PatchError("a file in the patch has no name")
    return name


def _unquoted(name: str) -> str:
    """A path as git writes it: in quotes with C escapes where it holds anything unusual."""
    if len(name) < 2 or not (name.startswith('"') and name.rstrip().endswith('"')):
        return name

    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _QUOTED.sub(plain, name.rstrip()[1:-1].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def apply_hunks(document: Document, hunks: Sequence[Hunk], path: str) -> Document:
    """The document with every hunk applied, in order. Raises PatchError at the first that does not fit."""
    spans: list[Span] = []
    after, shift = 0, 0
    for number, hunk in enumerate(hunks, 1):
        at = _place(document.lines, hunk, after, shift, f"hunk {number} of {len(hunks)} for {path}")
        spans.append(_span(document, hunk, at))
        if (stated := _stated(hunk)) is not None:
            shift = at - stated
        after = at + len(hunk.old)
    return document.replaced(spans)


def _stated(hunk: Hunk) -> int | None:
    """The index of the first old line, by the hunk's word; one without old lines names the line before it."""
    return hunk.start if hunk.start is None or not hunk.old else hunk.start - 1


def _place(lines: Sequence[str], hunk: Hunk, after: int, shift: int, name: str) -> int:
    old = list(hunk.old)
    stated = _stated(hunk)
    guess = len(lines) if stated is None else stated + shift
    if not old:
        if after <= guess <= len(lines):
            return guess
        raise PatchError(f"{name}: it adds after line {hunk.start}, but the file has {len(lines)}")
    if after <= guess and lines[guess : guess + len(old)] == old:
        return guess
    places = [
        at for at in range(after, len(lines) - len(old) + 1) if lines[at] == old[0] and lines[at : at + len(old)] == old
    ]
    match places:
        case [one]:
            return one
        case []:
            raise PatchError(f"{name} does not fit. {hint(lines, chr(10).join(old))}")
        case _:
            where = ", ".join(str(at + 1) for at in places[:8])
            raise PatchError(f"{name} fits at lines {where}: give its line numbers right, or more context")


def _span(document: Document, hunk: Hunk, at: int) -> Span:
    """The change as a span; the end of the file's last line is as the hunk says, or as it was."""
    new = "\n".join(hunk.new)
    end = at + len(hunk.old)
    last = end >= len(document.lines)
    if not last:
        return Span(document.starts[at], document.starts[end], new + "\n" if hunk.new else "")
    marked = hunk.ends[0] or hunk.ends[1]
    ended = not hunk.ends[1] if marked else document.ended
    start = document.starts[at]
    if at == len(document.lines) and not document.ended and hunk.new:
        return Span(start, start, "\n" + new + ("\n" if ended and marked else ""))
    if not hunk.new and at > 0 and not ended:
        start -= 1
    return Span(start, len(document.plain), (new + "\n" if ended else new) if hunk.new else "")
