"""What humans have allowed once and for all: for one run, or for a workspace, kept in the user's own state.

Nothing of it is ever in the workspace, where an agent could write it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import attrs

from .policy.grants import grants_of
from .policy.subjects import Subject


@attrs.define(eq=False)
class Grants:
    """The grants that hold in one run. `file` keeps those for the workspace, None where nothing is kept."""

    file: Path | None = None
    workspace: str = ""
    allowed: set[str] = attrs.Factory(set[str])

    @classmethod
    def of_workspace(cls, state: Path | None, root: str) -> Grants:
        """What was allowed for this workspace before. Blocks; a file that cannot be read allows nothing."""
        if state is None:
            return cls(workspace=root)
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        file = state / "allowed" / f"{name}.json"
        return cls(file, root, set(_read(file, root)))

    def covers(self, subject: Subject) -> bool:
        """Whether all of a call has been allowed."""
        wanted = grants_of(subject)
        return bool(wanted) and self.allowed.issuperset(wanted)

    def add(self, grants: Iterable[str]) -> None:
        """Allow more in this run."""
        self.allowed.update(grants)

    def keep(self, grants: Iterable[str]) -> None:
        """Allow more in every run over this workspace. Blocks. Raises OSError; they hold for this run all the same."""
        added = tuple(grants)
        self.add(added)
        if self.file is None or not added:
            return
        self.file.parent.mkdir(0o700, exist_ok=True)
        with open(_private(self.file.with_suffix(".lock")), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = dict.fromkeys([*_read(self.file, self.workspace), *added])
            draft = self.file.with_suffix(f".{os.getpid()}")
            draft.unlink(missing_ok=True)
            with open(_private(draft), "w", encoding="utf-8") as file:
                json.dump({"workspace": self.workspace, "allow": list(kept)}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self.file)


def _private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read(file: Path, root: str) -> list[str]:
    try:
        found: Any = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(found, dict) or cast("dict[str, Any]", found).get("workspace") != root:
        return []
    allow: Any = cast("dict[str, Any]", found).get("allow")
    return [text for text in cast("list[object]", allow) if isinstance(text, str)] if isinstance(allow, list) else []
