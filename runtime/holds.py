"""Who is held: a whole run, or actors of it; they stop before their next step until somebody lets them go on."""

from __future__ import annotations

import trio

from .errors import UsageError
from .journal.state import RunState

RUN = ""
"""The path under which a whole run is held: everybody in it, also those who begin later."""


class Holds:
    """The holds of one run. Whoever changes them puts it on record as well."""

    def __init__(self) -> None:
        self._by: dict[str, str] = {}
        self._stopped = trio.lowlevel.ParkingLot()

    def stop(self, path: str) -> bool:
        """Whether an actor may not take its next step."""
        return RUN in self._by or path in self._by

    async def changed(self) -> None:
        """Until somebody is let go. A cancelled wait leaves nothing behind."""
        await self._stopped.park()

    def hold(self, path: str, by: str) -> None:
        """Raises UsageError where it is held already."""
        if path in self._by:
            raise UsageError(f"{path or 'the run'} is held already, by {self._by[path] or 'somebody'}")
        self._by[path] = by

    def release(self, path: str) -> list[str]:
        """Let an actor go on, or with the run everybody; returns who was held. Raises UsageError where nobody was."""
        if path != RUN and path not in self._by:
            whole = "; the whole run is" if RUN in self._by else ""
            raise UsageError(f"{path} is not held{whole}")
        if not self._by:
            raise UsageError("the run is not held")
        released = [path] if path != RUN else list(self._by)
        for each in released:
            del self._by[each]
        self._stopped.unpark_all()
        return released

    def forget(self, path: str) -> None:
        """An actor has ended."""
        self._by.pop(path, None)

    def restore(self, state: RunState) -> None:
        """Take over what an earlier process held."""
        if state.held is not None:
            self._by[RUN] = state.held.by
        for actor in state.actors.values():
            if actor.held is not None and actor.report is None:
                self._by[actor.path] = actor.held.by
