"""Whether a run on record can go on, and under which limits.

Apart from the going on itself, so that who asks for a run with nothing left to do is told before anything slow loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import UsageError
from .journal.elsewhere import in_state
from .journal.state import RunState
from .limits.limits import ROOT_DEFAULTS, Limits, changed


def check_resumable(state: RunState, id: str) -> None:
    """Raises UsageError for a run with nothing left to do."""
    if state.started is None:
        raise UsageError(f"run {id} never began, so nothing of it is on record: elenco delete {id}{in_state()}")
    if state.finished is None:
        return
    status = state.finished.report.get("status")
    if status == "completed":
        at = in_state()
        raise UsageError(
            f'run {id} is completed: elenco show {id}{at}   to follow it up: elenco run --continue {id}{at} "…"'
        )


def limits_after(state: RunState, changes: Mapping[str, str]) -> Limits:
    """The root's limits with the resume's changes. Raises UsageError."""
    limits = Limits.from_json(state.limits)
    # A record from elsewhere may say what it wants; its run ends all the same.
    return changed(limits.or_else(ROOT_DEFAULTS) if state.imported else limits, changes, "resume")
