"""An editor's sessions, as they are kept: which runs make one up, so that it can be loaded again."""

from __future__ import annotations

import json
import os
import re
import secrets
from pathlib import Path
from typing import Any, cast

import attrs

from runtime.errors import UsageError

_ID = re.compile(r"[0-9a-f]{16}")


@attrs.define
class Kept:
    """A conversation in one folder with one agent; `runs` are its turns, the last one holds all that was said."""

    id: str
    workspace: str
    agent: str
    runs: list[str] = attrs.Factory(list[str])


def new_session(workspace: str, agent: str) -> Kept:
    return Kept(secrets.token_hex(8), workspace, agent)


def keep(folder: Path, session: Kept) -> None:
    """Write it down. Blocks. Raises OSError."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    draft = folder / f"{session.id}.{os.getpid()}"
    with open(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8"
    ) as out:
        json.dump(attrs.asdict(session), out)
    draft.rename(folder / f"{session.id}.json")


def find(folder: Path, id: str) -> Kept:
    """Blocks. Raises UsageError for a session nobody knows."""
    try:
        if not _ID.fullmatch(id):
            raise ValueError(id)
        found: Any = json.loads((folder / f"{id}.json").read_bytes())
        kept = cast("dict[str, Any]", found)
        runs = [str(run) for run in kept["runs"]]
        return Kept(id, str(kept["workspace"]), str(kept["agent"]), runs)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"there is no session {id!r} here") from None
