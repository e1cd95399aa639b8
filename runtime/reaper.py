"""Processes that leave nothing behind: whatever a tool starts ends with its call, with the run, or with the runtime.

They run under the program `runtime.warden`, which is told by a closed socket that the runtime is gone, however it went.
What hangs below a command when it is ended is ended too, also what has made itself a session or an orphan. Nothing here
counts on a parent-death signal, which fires when the spawning thread ends.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from .warden import FIRST_PASSED, MESSAGE, TERM

GRACE = 2.0
"""Seconds between asking a command to end and killing it."""
DYING = 3.0
"""Seconds to wait for what was killed."""
_PROGRAM = Path(__file__).with_name("warden.py")


@asynccontextmanager
async def open_reaper() -> AsyncGenerator[Reaper]:
    """A reaper while the block lasts; when it ends, so has everything that was started. It costs nothing until then."""
    reaper = Reaper()
    try:
        yield reaper
    finally:
        await reaper.aclose()


class Reaper:
    """Starts processes, and ends those that are left. Its warden is started with the first of them.

    Descriptors that are `passed` to a program have the numbers from FIRST_PASSED on there.
    """

    FIRST_PASSED = FIRST_PASSED

    def __init__(self) -> None:
        self._warden: trio.Process | None = None
        self._socket: trio.socket.SocketType | None = None
        self._starting = trio.Lock()
        self._living: set[Process] = set()
        self._closed = False

    @asynccontextmanager
    async def running(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        passed: Sequence[int] = (),
        wraps: bool = False,
        grace: float = GRACE,
    ) -> AsyncGenerator[Process]:
        """A process while the block lasts; then it and all below it are ended: TERM, after `grace` seconds KILL.

        Raises as `start`. However the block is left, nothing of the process is.
        """
        process = await self.start(
            argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, passed=passed, wraps=wraps
        )
        try:
            yield process
        finally:
            await process.end(grace)

    async def start(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        passed: Sequence[int] = (),
        wraps: bool = False,
    ) -> Process:
        """Start a program; whoever starts it ends it. The streams are as in subprocess: PIPE, DEVNULL, a descriptor.

        A program that `wraps` another is not asked to end itself: it does when the other has, which needs time to.

        Raises OSError where it cannot be started. A cancelled call leaves no process.
        """
        order = {
            "argv": [os.fspath(word) for word in argv],
            "cwd": os.fspath(cwd if cwd is not None else Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "wraps": wraps,
        }
        ends = _Ends()
        try:
            control = ends.control()
            streams = ends.plan(stdin, stdout, stderr)
            ends.theirs.extend(map(os.dup, passed))
        except BaseException:
            ends.close()
            await ends.abandon()
            raise
        process = Process(control, *streams, living=self._living)
        try:
            await self._hand_over(ends.theirs)
            ends.close()
            await process.begin(order)
        except BaseException:
            ends.close()
            await process.end(0.0)
            raise
        return process

    async def aclose(self) -> None:
        """End all processes and the warden; shielded, and bounded."""
        self._closed = True
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                for process in list(self._living):
                    nursery.start_soon(process.end)
            await self._retire()

    async def _hand_over(self, descriptors: Sequence[int]) -> None:
        async with self._starting:
            for attempt in (0, 1):
                channel = await self._warden_socket()
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                try:
                    await channel.sendmsg([MESSAGE], rights)
                except (BrokenPipeError, ConnectionResetError):
                    await self._retire()
                    if attempt:
                        raise
                else:
                    return

    async def _warden_socket(self) -> trio.socket.SocketType:
        if self._closed:
            raise OSError("the run is over: nothing is started any more")
        if self._socket is None:
            ours, theirs = socket.socketpair()
            channel = trio.socket.from_stdlib_socket(ours)
            with theirs:
                try:
                    self._warden = await trio.lowlevel.open_process(
                        [sys.executable, "-I", "-S", str(_PROGRAM)],
                        stdin=theirs,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        cwd="/",
                        env={},
                        start_new_session=True,
                    )
                except BaseException:
                    channel.close()
                    raise
            self._socket = channel
        return self._socket

    async def _retire(self) -> None:
        warden, channel = self._warden, self._socket
        self._warden = self._socket = None
        with trio.CancelScope(shield=True):
            if channel is not None:
                channel.close()
            if warden is not None:
                with trio.move_on_after(DYING):
                    await warden.wait()
                    return
                warden.kill()
                await warden.wait()


class Process:
    """A running program, made by `Reaper.start`. `stdin`, `stdout`, `stderr` are streams where PIPE was asked for."""

    def __init__(
        self,
        channel: trio.SocketStream,
        stdin: trio.lowlevel.FdStream | None,
        stdout: trio.lowlevel.FdStream | None,
        stderr: trio.lowlevel.FdStream | None,
        *,
        living: set[Process],
    ) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._channel = channel
        self._reading = trio.Lock()
        self._buffer = b""
        self._asked = False
        self._gone = False
        self._living = living
        living.add(self)

    async def begin(self, order: Mapping[str, Any]) -> None:
        """Have the keeper start it. Raises OSError."""
        try:
            await self._channel.send_all(json.dumps(order).encode() + b"\n")
        except trio.BrokenResourceError as error:
            raise OSError("the warden of processes went away") from error
        while not self.pid:
            said = await self._hear()
            if "pid" in said:
                self.pid = said["pid"]
            elif said:
                raise OSError(said["errno"], said["error"], order["argv"][0])
            else:
                raise OSError("the warden of processes went away")

    async def wait(self) -> int:
        """The exit code, negative for a signal; what it has started may live on until `end`.

        A cancelled wait changes nothing.
        """
        while self.returncode is None:
            await self._hear()
        return self.returncode

    async def terminate(self) -> None:
        """Ask it, and everything below it, to end (SIGTERM)."""
        self._asked = True
        try:
            await self._channel.send_all(TERM)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def end(self, grace: float = GRACE) -> int:
        """End it and everything below it: TERM, after `grace` seconds KILL; its exit code. Shielded, and bounded."""
        with trio.CancelScope(shield=True):
            if self.stdin is not None:
                await self.stdin.aclose()
            if not self._gone and grace > 0:
                if not self._asked:
                    await self.terminate()
                with trio.move_on_after(grace):
                    await self._gone_by_itself()
            if not self._gone:
                # The keeper takes a half-closed control for the end, and closes its own half when nothing is left.
                try:
                    await self._channel.send_eof()
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._gone = True
                with trio.move_on_after(DYING):
                    await self._gone_by_itself()
            for stream in (self.stdout, self.stderr, self._channel):
                if stream is not None:
                    await stream.aclose()
            self._living.discard(self)
        if self.returncode is None:
            self.returncode = -signal.SIGKILL
        return self.returncode

    async def _gone_by_itself(self) -> None:
        while not self._gone:
            await self._hear()

    async def _hear(self) -> dict[str, Any]:
        """The next thing the keeper says, nothing once it is gone. A cancelled call loses nothing."""
        before = (self.returncode, self._gone)
        async with self._reading:
            if (self.returncode, self._gone) != before:
                return {}
            while b"\n" not in self._buffer and not self._gone:
                try:
                    data = await self._channel.receive_some()
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    data = b""
                self._buffer += data
                self._gone = not data
            line, _, self._buffer = self._buffer.partition(b"\n")
            said: dict[str, Any] = json.loads(line) if line else {}
            if "exit" in said:
                self.returncode = said["exit"]
            elif self._gone and self.returncode is None:
                self.returncode = -signal.SIGKILL
            return said


class _Ends:
    """The descriptors that go to the warden: control, standard input, output, error; and our ends of them."""

    def __init__(self) -> None:
        self.theirs: list[int] = []
        self._ours: list[trio.SocketStream | trio.lowlevel.FdStream] = []

    def control(self) -> trio.SocketStream:
        ours, theirs = socket.socketpair()
        self.theirs.append(theirs.detach())
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self._ours.append(stream)
        return stream

    def plan(self, *asked: int) -> list[trio.lowlevel.FdStream | None]:
        """Make the pipes that are asked for: our ends of them. Raises OSError."""
        return [self._one(place, each) for place, each in enumerate(asked)]

    def _one(self, place: int, asked: int) -> trio.lowlevel.FdStream | None:
        if asked == subprocess.PIPE:
            reading, writing = os.pipe()
            mine, other = (writing, reading) if place == 0 else (reading, writing)
            self.theirs.append(other)
            stream = trio.lowlevel.FdStream(mine)
            self._ours.append(stream)
            return stream
        if asked == subprocess.STDOUT:
            self.theirs.append(os.dup(self.theirs[-1]))
        elif asked == subprocess.DEVNULL:
            self.theirs.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        else:
            self.theirs.append(os.dup(asked))
        return None

    def close(self) -> None:
        """Close what went to the warden."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs.clear()

    async def abandon(self) -> None:
        for stream in self._ours:
            await trio.aclose_forcefully(stream)
