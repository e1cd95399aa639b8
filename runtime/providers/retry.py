"""Whether and when to ask a model again after a failed attempt: a pure policy, chance and time come in."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from runtime.model import ProviderError

ATTEMPTS = 4
"""Tries of one turn in all, the first included."""
CONNECT_ATTEMPTS = 3
FIRST_WAIT = 1.0
MOST_WAIT = 30.0
MOST_RETRY_AFTER = 120.0
"""Seconds; a server that wants a longer pause is not waited for."""


@attrs.frozen
class Retry:
    """Try again after `wait` seconds; `limit` is how many tries there are in all."""

    wait: float
    limit: int


@attrs.frozen
class GiveUp:
    """The error is final: it cannot heal, there were enough tries, or the time is used up."""

    why: str


Verdict: TypeAlias = Retry | GiveUp


def decide(error: ProviderError, attempt: int, chance: float, seconds_left: float | None) -> Verdict:
    """What to do after attempt number `attempt` (from 0) failed.

    `chance` is in [0, 1); `seconds_left` is what the actor's deadline leaves, None without one. A server's own word on
    how long to wait is obeyed up to MOST_RETRY_AFTER; else the wait doubles, with jitter of a quarter.
    """
    limit = CONNECT_ATTEMPTS if error.kind == "connect" else ATTEMPTS
    if not error.retryable:
        return GiveUp("asking again cannot help")
    if attempt + 1 >= limit:
        return GiveUp(f"{limit} tries")
    if error.retry_after is not None:
        if error.retry_after > MOST_RETRY_AFTER:
            return GiveUp(f"the server wants a pause of {error.retry_after:.0f} s")
        wait = max(0.0, error.retry_after) + chance * 0.25
    else:
        wait = min(MOST_WAIT, FIRST_WAIT * 2**attempt) * (0.75 + 0.5 * chance)
    if seconds_left is not None and wait >= seconds_left:
        return GiveUp("the deadline comes first")
    return Retry(wait, limit)
