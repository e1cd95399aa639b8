"""The journal: what happened in a run, durable, and the pure fold that makes state of it again.

Its names are loaded when first asked for: whoever only wants to know where runs are kept pays for no database.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .blobs import Blobs as Blobs
    from .durable import SqliteJournal as SqliteJournal
    from .durable import open_journal as open_journal
    from .folder import RunFolder as RunFolder
    from .folder import State as State
    from .folder import create_run as create_run
    from .folder import find_run as find_run
    from .folder import open_state as open_state
    from .index import RunRow as RunRow
    from .interface import AlreadyRecorded as AlreadyRecorded
    from .interface import Clock as Clock
    from .interface import Journal as Journal
    from .interface import Publish as Publish
    from .memory import MemoryJournal as MemoryJournal
    from .read import Follower as Follower
    from .read import RunInfo as RunInfo
    from .read import RunReader as RunReader
    from .read import follow as follow
    from .read import load as load
    from .read import runs as runs
    from .replay import fold as fold
    from .state import ActorState as ActorState
    from .state import CallState as CallState
    from .state import RunState as RunState

_PLACES = {
    "blobs": ("Blobs",),
    "durable": ("SqliteJournal", "open_journal"),
    "folder": ("RunFolder", "State", "create_run", "find_run", "open_state"),
    "index": ("RunRow",),
    "interface": ("AlreadyRecorded", "Clock", "Journal", "Publish"),
    "memory": ("MemoryJournal",),
    "read": ("Follower", "RunInfo", "RunReader", "follow", "load", "runs"),
    "replay": ("fold",),
    "state": ("ActorState", "CallState", "RunState"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found: object = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = found
    return found
