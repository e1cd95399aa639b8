"""A nursery for tasks that serve a block and never fail by themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def serving() -> AsyncGenerator[trio.Nursery]:
    """A nursery that is cancelled when the block ends. What the block raises comes out as it is, in no group."""
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise
