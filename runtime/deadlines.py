"""Cancel scopes that follow the run's stopwatches: one watchdog wakes when the first of them may be due.

A pause only ever puts a deadline off, so the watchdog may wake early and look again, never late.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal

import attrs
import trio

from .limits.clock import Clocks

BREATH = 0.02
"""Seconds between the end of a child and that of who waits for it, so that its report is not cut off with it."""


@attrs.define(eq=False)
class _Watched:
    """A context manager, and no generator, for every actor at work holds one."""

    deadlines: Deadlines
    path: str
    which: Literal["soft", "hard"]
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)

    def __enter__(self) -> trio.CancelScope:
        self.deadlines.add(self)
        return self.scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.deadlines.discard(self)
        return self.scope.__exit__(kind, error, trace)


class Deadlines:
    """The clocks of one run at the rim. `watch` runs in the run's nursery; everything else is synchronous."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self._watched: set[_Watched] = set()
        self._until = trio.CancelScope()

    async def watch(self) -> None:
        """Cancel what is due, for ever; cancelled, it leaves all scopes as they are."""
        while True:
            with trio.CancelScope(deadline=self._sweep()) as self._until:
                await trio.sleep_forever()

    def start(self, path: str, parent: str | None, timeout: float | None, elapsed: float = 0.0) -> None:
        """Start an actor's clock; `elapsed` is what it showed before the process was restarted."""
        self.clocks.start(path, parent, timeout, trio.current_time(), elapsed=elapsed)

    def finish(self, path: str) -> None:
        self.clocks.finish(path, trio.current_time())

    def rest(self, path: str, strands: int = 1) -> None:
        """So many of the actor's strands now wait for a human or a child."""
        self.clocks.pause(path, trio.current_time(), strands)

    def work(self, path: str, strands: int = 1) -> None:
        """So many more of the actor's strands work."""
        stood = not self.clocks.runs(path)
        self.clocks.resume(path, trio.current_time(), strands)
        if stood:
            self._look_again()

    def change(self, path: str, timeout: float | None) -> None:
        self.clocks.change(path, timeout)
        self._look_again()

    def elapsed(self, path: str) -> float:
        """Seconds on the actor's clock."""
        return round(self.clocks.elapsed(path, trio.current_time()), 3)

    def idle(self, path: str) -> bool:
        """Whether nobody in this subtree does anything but wait for a human."""
        return not self.clocks.runs(path)

    def left(self, path: str) -> float | None:
        """Seconds until the actor's wrap-up must begin, None without a deadline."""
        deadline = self.clocks.deadline(path, trio.current_time())
        return None if deadline is None else max(0.0, deadline.wrap_up_at - trio.current_time())

    def explain(self, path: str) -> str:
        """Which deadline binds the actor, for a person."""
        deadline = self.clocks.deadline(path, trio.current_time())
        if deadline is None:
            return "the deadline has passed"
        whose = "" if deadline.scope == path else f" of {deadline.scope}"
        return f"the time{whose} is used up ({deadline.timeout:g} s)"

    def soft(self, path: str) -> AbstractContextManager[trio.CancelScope]:
        """Cancelled when the actor's wrap-up must begin."""
        return _Watched(self, path, "soft")

    def hard(self, path: str) -> AbstractContextManager[trio.CancelScope]:
        """Cancelled when the actor must have ended."""
        return _Watched(self, path, "hard")

    def add(self, watched: _Watched) -> None:
        self._watched.add(watched)
        if (due := self._due(watched)) < self._until.deadline:
            self._until.deadline = due

    def discard(self, watched: _Watched) -> None:
        self._watched.discard(watched)

    def _look_again(self) -> None:
        self._until.deadline = -math.inf

    def _due(self, watched: _Watched) -> float:
        deadline = self.clocks.deadline(watched.path, trio.current_time())
        if deadline is None:
            return math.inf
        return deadline.wrap_up_at if watched.which == "soft" else deadline.at

    def _sweep(self) -> float:
        """Cancel what is due, the deepest actors first; returns when to look again."""
        now = trio.current_time()
        dues = [(self._due(watched), watched) for watched in self._watched]
        over = [watched for due, watched in dues if due <= now]
        deepest = max((watched.path.count("/") for watched in over), default=0)
        for watched in over:
            if watched.path.count("/") == deepest:
                watched.scope.cancel()
                self._watched.discard(watched)
        if any(not watched.scope.cancel_called for watched in over):
            return now + BREATH
        return min((due for due, _ in dues if due > now), default=math.inf)
