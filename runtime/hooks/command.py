"""One hook's command: started under the reaper, told the event on standard input, its exit code and output taken."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import trio

from runtime.reaper import Process, Reaper

from .answers import MOST_ERROR, MOST_OUTPUT, Failed, Said, read_exit
from .moments import Moment

SETTLE = 0.5
"""Seconds to read on after the command has ended: what it left behind may hold its pipes open."""
_CHUNK = 65_536


async def run_command(
    reaper: Reaper,
    moment: Moment,
    command: str | tuple[str, ...],
    event: bytes,
    *,
    cwd: str,
    env: Mapping[str, str],
) -> Said:
    """What the command says of the event. A cancelled call, such as one whose time is up, leaves no process behind.

    Whatever the command has started and left is ended with it.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    output, error = _Kept(MOST_OUTPUT), _Kept(MOST_ERROR)
    try:
        async with reaper.running(argv, cwd=cwd, env=env, stdin=subprocess.PIPE, grace=0.0) as process:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_tell, process, event)
                nursery.start_soon(_read, process.stdout, output)
                nursery.start_soon(_read, process.stderr, error)
                code = await process.wait()
                # Readers that are still at work have this long; then they are of no use any more.
                nursery.cancel_scope.deadline = trio.current_time() + SETTLE
    except OSError as fault:
        return Failed(f"it cannot be started: {fault.strerror or fault}")
    return read_exit(moment, code, bytes(output.data), bytes(error.data), cut=output.cut)


class _Kept:
    """The first bytes of a stream; the rest is read and dropped, so that nobody waits for us."""

    def __init__(self, most: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._most = most

    def add(self, chunk: bytes) -> None:
        room = self._most - len(self.data)
        self.data += chunk[:room]
        self.cut = self.cut or len(chunk) > room


async def _tell(process: Process, event: bytes) -> None:
    assert process.stdin is not None
    try:
        await process.stdin.send_all(event)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # a command need not read what it is told
    await process.stdin.aclose()


async def _read(stream: trio.lowlevel.FdStream | None, kept: _Kept) -> None:
    assert stream is not None
    while chunk := await stream.receive_some(_CHUNK):
        kept.add(chunk)
