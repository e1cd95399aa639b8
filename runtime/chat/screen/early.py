"""Keys and signals that come before the screen can take them: the keys are taken from the terminal, signals wait."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import termios
from collections.abc import Generator

import attrs

_NO_TEXT = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
MOST = 65_536
_IFLAG, _LFLAG = 0, 3
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.frozen
class Early:
    """`sent` are the lines that Enter has ended, `begun` is what was typed after the last of them."""

    sent: tuple[str, ...] = ()
    begun: str = ""


@contextlib.contextmanager
def early_keys(descriptor: int = 0) -> Generator[Early]:
    """Take what was typed so far; within the block the terminal makes no lines, at its end it is as it was.

    A terminal that makes lines has a line end for Enter, which a screen that comes later cannot tell from Ctrl-J.
    Signals that end the process wait for `signals_may_come`, since nobody would give the terminal back.
    """
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield Early()
        return
    now = termios.tcgetattr(descriptor)
    now[_IFLAG] &= ~termios.ICRNL
    now[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        termios.tcsetattr(descriptor, termios.TCSANOW, now)
        yield read(_waiting(descriptor))
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
        signals_may_come()


def signals_may_come() -> None:
    """Whoever handles them is there."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)


def read(data: bytes) -> Early:
    """What was typed, without keys that are no text."""
    text = _NO_TEXT.sub("", data.decode(errors="replace").replace("\r", "\n"))
    *sent, begun = text.split("\n")
    return Early(tuple(line for line in sent if line.strip()), begun)


def _waiting(descriptor: int) -> bytes:
    found = b""
    while len(found) < MOST and select.select([descriptor], [], [], 0)[0]:
        data = os.read(descriptor, 4096)
        if not data:
            break
        found += data
    return found
