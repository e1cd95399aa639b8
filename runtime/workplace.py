"""The folder agents are to work in, as somebody named it: whether there is one."""

from __future__ import annotations

import stat
from pathlib import Path

from .errors import UsageError


def check_workspace(folder: Path) -> None:
    """Raises UsageError for what is missing, is no folder, or cannot be looked at, each in its own words."""
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        raise UsageError(f"the workspace {folder} does not exist: name a folder that is there, or make it") from None
    except OSError as error:
        raise UsageError(f"the workspace {folder} cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(mode):
        what = "a file" if stat.S_ISREG(mode) else "no folder"
        raise UsageError(f"the workspace {folder} is {what}: name the folder it is in")
