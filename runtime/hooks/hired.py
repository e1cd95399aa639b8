"""Which hooks an actor has when it is hired: those of the whole run, then those of its own file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .settings import Hook

if TYPE_CHECKING:
    from runtime.definitions import Definition
    from runtime.run import Run


def hooks_of(run: Run, definition: Definition) -> tuple[Hook, ...]:
    """The run's hooks and the agent file's; a workspace nobody trusts brings none to either."""
    return (*run.settings.hooks, *definition.hooks)
