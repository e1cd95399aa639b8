"""Our standard input and output as the two ends of a conversation with another program."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def pipes() -> AsyncGenerator[tuple[trio.lowlevel.FdStream, trio.lowlevel.FdStream]]:
    """Our standard output and input as streams; whoever else writes there writes to standard error meanwhile."""
    receive, send = os.dup(0), os.dup(1)
    kept = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        async with trio.lowlevel.FdStream(send) as sending, trio.lowlevel.FdStream(receive) as receiving:
            yield sending, receiving
    finally:
        os.dup2(kept, 1)
        os.close(kept)
