"""A run that goes on by itself: a process in a session of its own, which no terminal owns and no hang-up reaches.

It is forked once all has been looked at and before anything runs, so it begins exactly what was asked for: the same
environment, the same task, also one from standard input. Its words go to a file beside the run's record.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from runtime.errors import JournalError, UsageError
from runtime.journal.elsewhere import in_state

LOG = "detached.log"
"""In the run's folder: what the process wrote to its standard output and error."""

Began: TypeAlias = Callable[[Path], None]
"""To be called in the new process with the run's folder, once the run is on record and can be steered."""


def refuse_unread(arguments: argparse.Namespace) -> None:
    """Raises UsageError where events were to be printed that nobody would read."""
    if arguments.detach and arguments.json:
        raise UsageError("--json has nobody to read it with --detach: elenco tail RUN --follow --json")


def detach(work: Callable[[Began], int]) -> int:
    """Let `work` go on in a process of its own; returns here once it has begun, with 0, or has ended, with its code.

    Until it has begun its errors go where ours go. Only the run's id goes to standard output. In the new process the
    return value is that of `work`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return _told(child, reading)
    os.close(reading)
    os.setsid()
    _let_go()
    return work(lambda folder: began(folder, writing))


def _told(child: int, reading: int) -> int:
    with open(reading, "rb") as pipe:
        run = pipe.read().decode()
    if not run:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or 1
    print(run, flush=True)
    print(
        f"run {run} goes on by itself   elenco tail {run} --follow{in_state()}   elenco cancel {run}{in_state()}",
        file=sys.stderr,
    )
    return 0


def began(folder: Path, writing: int) -> None:
    """Tell the run's id at a descriptor, and close it; from now on what the process says goes to the run's log.

    Raises JournalError.
    """
    log = folder / LOG
    try:
        opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JournalError(f"cannot write {log}: {error.strerror}") from error
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor in (1, 2):
        os.dup2(opened, descriptor)
    os.close(opened)
    with contextlib.suppress(OSError):  # whoever started us may be gone already
        os.write(writing, folder.name.encode())
    os.close(writing)


def _let_go() -> None:
    """Keep nothing of the caller's but its standard error: `$(elenco run --detach …)` waits for every open pipe."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        with contextlib.suppress(OSError):
            # What Python opens is not inheritable; what is, came from the caller.
            if descriptor > 2 and os.get_inheritable(descriptor):
                os.close(descriptor)
