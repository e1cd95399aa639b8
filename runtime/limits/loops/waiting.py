"""Whether time was let pass on purpose, and whether there is still something to wait for."""

import re

from .steps import CallSeen, Flags

WAIT = 10.0
"""Seconds of waiting between two equal calls that make the second one a fair question."""
LATER = 30.0
"""The same for a poll, measured from reply to reply."""
PAUSE = 2.0
"""A deliberate pause, too short to be a wait."""

_ENDED = frozenset(  # one word a line would be a page
    """
    succeeded success successful completed complete finished done failed failure cancelled canceled approved
    rejected exited terminated
    """.split()  # noqa: SIM905
)
_PENDING = frozenset(  # one word a line would be a page
    """
    running pending in_progress inprogress progressing waiting waited queued starting still not training
    building yet remaining
    """.split()  # noqa: SIM905
)
_SLEEPING = frozenset({"sleep", "wait"})
_WAITING = frozenset("sleep wait watch follow timeout until poll".split())  # noqa: SIM905
_WORD = re.compile(r"[a-z_]+")
_PART = re.compile(r"\d\s*(?:%|/\s*\d|of\s+\d)")
"""A part of a whole: 45 %, 3/8, 3 of 8."""


def waits(call: CallSeen, flags: Flags, arguments: str, text: str) -> bool:
    """Whether a call let time pass on purpose: a poll, or a long call that asks to wait or says "not yet".

    A slow call that fails or does its work is no wait, unless it sleeps.
    """
    if flags.poll:
        return True
    if call.seconds < WAIT:
        return False
    if call.is_error:
        return bool(_words(arguments) & _SLEEPING)
    return not text.strip() or bool(_words(text) & _PENDING) or bool(_words(arguments) & _WAITING)


def ended(text: str) -> bool:
    """Whether a poll's answer says that there is nothing more to wait for."""
    if _PART.search(text[:300]):
        return False
    words = _words(text)
    return bool(words & _ENDED) and not words & _PENDING


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text[:500].casefold()))
