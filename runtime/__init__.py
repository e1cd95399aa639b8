"""Elenco's agent runtime. Names are loaded when first used, so that importing it costs next to nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import DefinitionError as DefinitionError
    from .errors import ElencoError as ElencoError
    from .errors import JournalError as JournalError
    from .errors import UsageError as UsageError
    from .events import Event as Event
    from .events import Record as Record
    from .library import Runtime as Runtime
    from .library import WaitingForHuman as WaitingForHuman
    from .library import open_runtime as open_runtime
    from .limits.limits import Limits as Limits
    from .messages import Usage as Usage
    from .model import Provider as Provider
    from .model import ProviderError as ProviderError
    from .model import Reply as Reply
    from .report import Report as Report
    from .tools import Output as Output
    from .tools import Tool as Tool
    from .tools import ToolContext as ToolContext
    from .tools import ToolError as ToolError
    from .tools import tool as tool

_HOMES = {
    "errors": ("DefinitionError", "ElencoError", "JournalError", "UsageError"),
    "events": ("Event", "Record"),
    "library": ("Runtime", "WaitingForHuman", "open_runtime"),
    "limits.limits": ("Limits",),
    "messages": ("Usage",),
    "model": ("Provider", "ProviderError", "Reply"),
    "report": ("Report",),
    "tools": ("Output", "Tool", "ToolContext", "ToolError", "tool"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'runtime' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
