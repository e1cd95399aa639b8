"""The places in a workspace that are Elenco's own: records of runs, control sockets, the user's settings, trust."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .config import user_folder
from .journal.folder import state_path
from .watch.runtime_folder import places

_OF_STATE = (
    *("runs", "allowed"),
    *(f"{name}{ending}" for name in ("index.db", "memory.db") for ending in ("", "-wal", "-shm", "-journal")),
)
_OF_USER = ("config.yaml", "trusted")


def closed_in(root: str, state: Path | None, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Those that lie in the workspace `root` (a real path), relative to it; `state` is the folder in use."""
    usual = state_path(None, environment, environment.get("HOME"))
    user = user_folder(environment)
    folders: list[tuple[Path, tuple[str, ...]]] = [(each, _OF_STATE) for each in (state, usual) if each is not None]
    folders += [(user, _OF_USER)] if user is not None else []
    folders += [(each, ()) for each in places(environment)]
    return tuple(dict.fromkeys(_inside(root, folders)))


def _inside(root: str, folders: Iterable[tuple[Path, tuple[str, ...]]]) -> Iterator[str]:
    for folder, names in folders:
        real = os.path.realpath(folder)
        if real == root:
            yield from names
        elif real.startswith(root.rstrip("/") + "/"):
            yield os.path.relpath(real, root)
