"""The command `elenco`: reads the words, hands over to one module a command, turns errors into one clear line."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (0 to 4, 130); never a traceback for a person's mistake."""
    words = list(sys.argv[1:] if argv is None else argv)
    _survive_any_locale()
    from runtime.errors import ElencoError

    from .parser import parse

    try:
        command, arguments = parse(words)
        return command(arguments)
    except ElencoError as error:
        from .faults import show

        return show(error)
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except KeyboardInterrupt:
        return 130


_STAND_INS = {
    "●": "*", "✓": "+", "■": "#", "✗": "x", "⚠": "!", "├": "|", "└": "`", "│": "|", "…": "...", "→": "->",
    "“": '"', "”": '"', "·": "-",
}  # fmt: skip


def _survive_any_locale() -> None:
    """A terminal that cannot show a character shows a stand-in; the program goes on."""
    codecs.register_error("elenco", _stand_in)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="elenco")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(char, "?") for char in text), error.end


def _silence_stdout() -> None:
    """Whoever read our output has left (`| head`): nothing more may be written, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
