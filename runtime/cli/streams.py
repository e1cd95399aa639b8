"""The three standard streams as the command needs them: there, able to write any text, and quiet once nobody reads."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

from runtime.errors import UsageError

_UNDECODED = re.compile("[\udc80-\udcff]")
_STAND_INS = {
    "●": "*", "✓": "+", "■": "#", "✗": "x", "⚠": "!", "├": "|", "└": "`", "│": "|", "…": "...", "→": "->",
    "“": '"', "”": '"', "·": "-", "‖": "=", "▰": "#", "▱": "-", "▸": ">",
}  # fmt: skip


_absent: set[str] = set()


class _Named(io.FileIO):
    """Standard output: what it cannot take is an OSError that says where."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None


class _Lossy(io.FileIO):
    """Standard error: what it cannot take any more is dropped, since progress is no reason to end a run."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            _take_nothing(self.fileno(), os.O_WRONLY)
            return len(data)


def stdout_is_absent() -> bool:
    """Whether this process was started without a standard output."""
    return "stdout" in _absent


def check_output(path: Path) -> None:
    """Whether an answer could be written there, as far as can be told beforehand. Raises UsageError."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"--output {path}: that is a folder; name a file in it")
    if not folder.is_dir():
        raise UsageError(f"--output {path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"--output {path}: it cannot be written")


def check_record(folder: Path) -> None:
    """Whether files could be written in a folder that may have to be made. Raises UsageError."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise UsageError(f"--record {folder}: {there} is no folder")
    if not os.access(there, os.W_OK):
        raise UsageError(f"--record {folder}: nothing can be written in {there}")


def prepare() -> None:
    """A stream that was closed reads and writes nothing; one that cannot show a character shows a stand-in."""
    codecs.register_error("elenco", _stand_in)
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            _absent.add(name)
            _take_nothing(descriptor, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    if (stdout := sys.__stdout__) is not None and sys.stdout is stdout:
        named = io.BufferedWriter(_Named(stdout.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(
            named, stdout.encoding, line_buffering=stdout.line_buffering, write_through=stdout.write_through
        )
    if (stderr := sys.__stderr__) is not None and sys.stderr is stderr:
        raw = _Lossy(stderr.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), encoding=stderr.encoding, line_buffering=True)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "elenco"), (sys.stderr, "elenco")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)


def as_text(word: str) -> str:
    """A word of the command line as text: in a locale without UTF-8 its bytes came in undecoded."""
    return os.fsencode(word).decode("utf-8", "replace") if _UNDECODED.search(word) else word


def silence_stdout() -> None:
    """Whoever read our output has left (`| head`), or it cannot be written: nothing more may be, not even at exit."""
    _take_nothing(sys.stdout.fileno(), os.O_WRONLY)


def _take_nothing(descriptor: int, mode: int) -> None:
    opened = os.open(os.devnull, mode)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(char, "?") for char in text), error.end
