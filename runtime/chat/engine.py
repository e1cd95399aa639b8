"""The runtime process as the screen has it: started, told what to do, heard, and ended with the screen."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from runtime.errors import ElencoError, UsageError
from runtime.messages import JsonObject
from runtime.watch.commands import Command, command_to_json

PATIENCE = 20.0
"""Seconds the runtime has to leave a turn as it stands when the screen goes."""
LINE = 1 << 24


@attrs.define(eq=False)
class Engine:
    """`hear` is called with each message of the process, and once with None when it has ended."""

    words: Sequence[str]
    hear: Callable[[JsonObject | None], None]
    _waiting: dict[int, asyncio.Future[JsonObject]] = attrs.field(
        init=False, factory=dict[int, "asyncio.Future[JsonObject]"]
    )
    words_of_it: deque[str] = attrs.field(init=False, factory=lambda: deque[str](maxlen=40))
    _asked: int = attrs.field(init=False, default=0)
    _process: asyncio.subprocess.Process | None = attrs.field(init=False, default=None)
    _tasks: list[asyncio.Task[None]] = attrs.field(init=False, factory=list[asyncio.Task[None]])

    async def start(self) -> None:
        """Begin a process; one that is there already must have ended."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "runtime.chat", *self.words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE,
            start_new_session=True,  # no signal of the terminal is meant for it
        )
        self._tasks = [asyncio.create_task(self._listen(self._process)), asyncio.create_task(self._err(self._process))]

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def code(self) -> int | None:
        """How the process ended; below zero: by that signal."""
        return self._process.returncode if self._process is not None else None

    def send(self, op: str, **body: Any) -> None:
        """Tell the process something; one that has ended does not hear it."""
        if self._process is not None and self._process.stdin is not None and self.alive:
            self._process.stdin.write(json.dumps({"op": op, **body}).encode() + b"\n")

    async def steer(self, command: Command) -> JsonObject:
        """Have the turn under way carry a command out; what it answers. Raises ElencoError, also where there is none.

        A cancelled call may have taken effect.
        """
        if not self.alive:
            raise UsageError("no turn is under way")
        number = self._asked = self._asked + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send("steer", number=number, command=command_to_json(command))
        try:
            found = await answer
        finally:
            del self._waiting[number]
        if "error" in found:
            raise ElencoError(str(found["error"]))
        result: JsonObject = found["result"]
        return result

    def answered(self, message: JsonObject) -> None:
        """What the process answers to a command."""
        answer = self._waiting.get(int(message["number"]))
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def close(self, *, detach: bool = False) -> bool:
        """Leave: the process ends by itself, or is killed when it takes too long; False if it had to be."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        self.send("leave", detach=detach)
        assert process.stdin is not None
        process.stdin.close()
        if detach:
            return True
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            return False
        return True

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.hear(json.loads(line))
        await process.wait()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ElencoError("the runtime has ended"))
        self.hear(None)

    async def _err(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.words_of_it.append(line.decode(errors="replace").rstrip())
