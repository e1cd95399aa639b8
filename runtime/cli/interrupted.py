"""Serving until somebody ends it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import trio

from runtime.signals import ending_signals


async def until_interrupted(serve: Callable[[], Awaitable[None]]) -> bool:
    """Serve to the end, or to the first signal, which cancels it cleanly; whether one came.

    A second signal ends the process at once. A cancelled call leaves what a cancelled `serve` does.
    Without this a KeyboardInterrupt would come up wherever Python is.
    """
    came = False
    with trio.open_signal_receiver(*ending_signals()) as signals:
        async with trio.open_nursery() as nursery:

            async def listen() -> None:
                nonlocal came
                async for _ in signals:
                    if came:
                        os._exit(130)
                    came = True
                    work.cancel()

            work = trio.CancelScope()
            nursery.start_soon(listen)
            with work:
                await serve()
            nursery.cancel_scope.cancel()
    return came
