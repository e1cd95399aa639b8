"""What one call may touch of the workspace: the very places that were decided, however links are changed meanwhile."""

from __future__ import annotations

import attrs

from .permits import Permits
from .policy.decision import decide
from .policy.subjects import PathSubject, PathUse, Subject, Use

CHANGED = "leads elsewhere than when the call was decided"


@attrs.frozen
class Bounds:
    """The decided subject of a call, and the rules it was decided by."""

    subject: Subject
    permits: Permits

    def __call__(self, use: Use, path: str) -> str | None:
        """Why a use of a real path is not covered by the decision, None where it is."""
        decided = self.subject.uses if isinstance(self.subject, PathSubject) else None
        if use in ("write", "delete"):
            if decided is not None:
                return None if any(each.use == use and each.path == path for each in decided) else CHANGED
            return self._denied(use, path)
        if decided is not None and any(each.path == path for each in decided):
            return None
        return None if self.permits.readable(path) else self._denied("read", path) or CHANGED

    def _denied(self, use: Use, path: str) -> str | None:
        subject = PathSubject(self.subject.tool, (PathUse(use, path),), use in ("write", "delete"))
        decision = decide(subject, self.permits.own, self.permits.ceiling)
        return f"is denied by rule {decision.rule} ({decision.by})" if decision.verdict == "deny" else None
