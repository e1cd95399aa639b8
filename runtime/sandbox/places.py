"""The folders of our own that no command may see: the record of runs, control sockets with their tokens, settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from runtime.config import user_folder
from runtime.journal.folder import state_path
from runtime.watch.runtime_folder import places


def own_folders(state: Path | None, environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """All of them, whether they are there or not; `state` is the one in use."""
    usual = state_path(None, environ, environ.get("HOME"))
    user = user_folder(environ)
    return (
        *((state,) if state is not None else ()),
        *((usual,) if usual is not None else ()),
        *((user,) if user is not None else ()),
        *places(environ),
    )
