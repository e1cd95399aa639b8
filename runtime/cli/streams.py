"""The three standard streams as the command needs them: there, able to write any text, and quiet once nobody reads."""

from __future__ import annotations

import codecs
import os
import re
import sys

_UNDECODED = re.compile("[\udc80-\udcff]")
_STAND_INS = {
    "●": "*", "✓": "+", "■": "#", "✗": "x", "⚠": "!", "├": "|", "└": "`", "│": "|", "…": "...", "→": "->",
    "“": '"', "”": '"', "·": "-",
}  # fmt: skip


def prepare() -> None:
    """A stream that was closed reads and writes nothing; one that cannot show a character shows a stand-in."""
    codecs.register_error("elenco", _stand_in)
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            _take_nothing(descriptor, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
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
