"""Whether an actor does anything itself, or only waits for humans and children: what its clock goes by."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from .run import Run

Ready: TypeAlias = Callable[[], bool]


class Activity:
    """An actor's strands: its loop is one, each of several calls running side by side another."""

    def __init__(self, run: Run, path: str) -> None:
        self._run = run
        self._path = path
        self._strands = 1
        self._waits: list[Ready] = []

    @property
    def works(self) -> bool:
        """Whether a strand works, or is about to, because what it waits for has come."""
        return self._strands > 0 or any(ready() for ready in self._waits)

    def idle(self, ready: Ready) -> AbstractContextManager[None]:
        """While inside, one strand waits for a human or a child; `ready` says whether its wait is over."""
        return _Wait(self, ready)

    def begin_wait(self, ready: Ready) -> None:
        """What `idle` does at its start."""
        self._waits.append(ready)
        self._change(-1)

    def end_wait(self, ready: Ready) -> None:
        """What `idle` does at its end."""
        self._waits.remove(ready)
        self._change(1)

    def awaiting(self, *children: str) -> AbstractContextManager[None]:
        """While inside, one strand waits until one of the children at these paths has ended."""
        return self.idle(lambda: any(child not in self._run.live for child in children))

    @contextmanager
    def forked(self, count: int) -> Generator[Callable[[], None]]:
        """While inside, so many strands work instead of one; each calls what is given when it is done.

        The last one done is the loop's own again: between two strands that work nobody is seen idle.
        """
        left = count
        self._change(count - 1)

        def done() -> None:
            nonlocal left
            left -= 1
            if left:
                self._change(-1)

        try:
            yield done
        finally:
            if left:
                self._change(1 - left)

    def _change(self, strands: int) -> None:
        self._strands += strands
        if strands < 0:
            self._run.deadlines.rest(self._path, -strands)
        else:
            self._run.deadlines.work(self._path, strands)
        self._run.check_waiting()


class _Wait:
    """A context manager, and no generator, for every call of a child holds one."""

    __slots__ = ("_activity", "_ready")

    def __init__(self, activity: Activity, ready: Ready) -> None:
        self._activity = activity
        self._ready = ready

    def __enter__(self) -> None:
        self._activity.begin_wait(self._ready)

    def __exit__(self, *_: object) -> None:
        self._activity.end_wait(self._ready)
