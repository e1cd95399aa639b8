"""The ledger at the rim: who does not fit yet waits here until somebody settles."""

from __future__ import annotations

import trio

from .limits.budget import Ask, Granted, Refused, Settled, Wait
from .limits.ledger import Ledger
from .messages import Usage


class Gate:
    """One run's ledger and those who wait for it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._waiters = trio.lowlevel.ParkingLot()

    async def reserve(self, path: str, ask: Ask) -> Granted | Refused:
        """Reserve, waiting while others of the limiting scope are unsettled. A cancelled wait reserves nothing."""
        waited = False
        try:
            while isinstance(answer := self.ledger.reserve(path, ask), Wait):
                waited = True
                await self._waiters.park()
        except trio.Cancelled:
            self.ledger.withdraw(path)
            self.changed()
            raise
        if waited:
            self.changed()
        return answer

    def settle(self, id: int, usage: Usage | None, cost: float | None, *, replied: bool) -> Settled:
        """Settle a call; whoever waited for its room asks again."""
        settled = self.ledger.settle(id, usage, cost, replied=replied)
        self.changed()
        return settled

    def close(self, path: str) -> None:
        self.ledger.close(path)
        self.changed()

    def changed(self) -> None:
        """A limit or a reservation changed: whoever waits may fit now."""
        self._waiters.unpark_all()
