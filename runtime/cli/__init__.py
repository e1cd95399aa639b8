"""The command `elenco`: reads the words, hands over to one module a command, turns errors into one clear line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (0 to 4, 130); never a traceback for a person's mistake or Ctrl-C."""
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return 130
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        return 130


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    from runtime.errors import ElencoError
    from runtime.journal.elsewhere import kept_in

    from . import streams
    from .parser import parse

    streams.prepare()
    code = 0
    try:
        with ExitStack() as told:
            try:
                command, arguments = parse(words)
                told.enter_context(kept_in(getattr(arguments, "state", None)))
                code = command(arguments)
            except ElencoError as error:
                from .faults import show

                code = show(error)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has seen enough, as of `head`: that takes nothing from what the command came to.
        streams.silence_stdout()
    except OSError as error:
        streams.silence_stdout()
        where = f": {error.filename}" if error.filename else ""
        print(f"error: {error.strerror or error}{where}", file=sys.stderr)
        return 1
    return code
