"""Which runs may go: pure."""

from __future__ import annotations

from collections.abc import Sequence

from .read import NEVER_BEGAN, RunInfo

DAYS = 30.0
BEGINNING = 600.0
"""Seconds after which a folder in which no run has begun is not one that begins just now."""
_DAY = 86_400.0


def outlived(
    runs: Sequence[RunInfo], now: float, *, older_than: float | None = None, keep: int | None = None
) -> list[RunInfo]:
    """The runs that are older than so many days and not among the `keep` newest, the oldest first.

    With neither, those older than DAYS. A run that is live, or waits for a human, stays however old it is; a folder in
    which none ever began goes at once.
    """
    if older_than is None:
        older_than = DAYS if keep is None else 0.0
    begun = sorted((each for each in runs if each.problem != NEVER_BEGAN), key=_when, reverse=True)
    gone = [each for each in begun[keep or 0 :] if each.status != "waiting" and now - _when(each) >= older_than * _DAY]
    gone += [each for each in runs if each.problem == NEVER_BEGAN and now - _when(each) >= BEGINNING]
    return sorted((each for each in gone if not each.owned), key=_when)


def _when(each: RunInfo) -> float:
    return each.row.ended or each.row.started
