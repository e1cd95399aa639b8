"""A child as its supervisor knows it, with what is waited for in its present incarnation."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from ._cell import Cell, Phase
from ._restart import Restart

Live: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Lives one incarnation to its end; calls its argument when it begins to serve."""


class Child:
    """The supervisor's notes on one child; only the supervisor writes them."""

    __slots__ = ("cell", "exited", "launch_error", "launched", "live", "name", "restart")

    def __init__(self, name: str, restart: Restart, cell: Cell, live: Live) -> None:
        self.name = name
        self.restart = restart
        self.cell = cell
        self.live = live
        self.launched: trio.Event | None = None
        """Set, and forgotten, when the incarnation begins to serve or has ended without."""
        self.launch_error: BaseException | None = None
        self.exited: trio.Event | None = None
        """There only while somebody waits for the incarnation's end: an idle actor shall be small."""

    async def exit(self) -> None:
        """Wait until no incarnation is alive. A cancelled wait leaves nothing behind."""
        while self.cell.phase is not Phase.DOWN and self.cell.phase is not Phase.ENDED:
            if self.exited is None:
                self.exited = trio.Event()
            await self.exited.wait()
