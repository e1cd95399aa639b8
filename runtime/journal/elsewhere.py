"""What a printed command needs so that it finds its run: the flag for a state folder that only this command line names.

It is known once a command begins and wanted wherever a next command is told, so it goes with the context.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_words: ContextVar[str] = ContextVar("in_state", default="")


@contextmanager
def kept_in(flag: str | None) -> Generator[None]:
    """A block whose runs are kept where the flag says."""
    if not flag:
        yield
        return
    import shlex

    from .folder import state_path

    home = os.path.expanduser("~")
    path = state_path(flag, os.environ, home)
    needed = path is not None and path != state_path(None, os.environ, home)
    token = _words.set(f" --state {shlex.quote(str(path))}" if needed else "")
    try:
        yield
    finally:
        _words.reset(token)


def in_state() -> str:
    """` --state DIR` to end a printed command with, nothing where it finds the folder by itself."""
    return _words.get()
