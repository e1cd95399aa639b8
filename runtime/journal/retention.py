"""Which runs may go: pure."""

from __future__ import annotations

from collections.abc import Sequence

from .read import RunInfo

DAYS = 30.0
_DAY = 86_400.0


def outlived(
    runs: Sequence[RunInfo], now: float, *, older_than: float | None = None, keep: int | None = None
) -> list[RunInfo]:
    """The runs that are older than so many days and not among the `keep` newest, the oldest first.

    With neither, those older than DAYS. A run that is live, or waits for a human, stays however old it is.
    """
    if older_than is None:
        older_than = DAYS if keep is None else 0.0
    newest_first = sorted(runs, key=_when, reverse=True)
    return [
        each
        for each in reversed(newest_first[keep or 0 :])
        if not each.owned and each.status != "waiting" and now - _when(each) >= older_than * _DAY
    ]


def _when(each: RunInfo) -> float:
    return each.row.ended or each.row.started
