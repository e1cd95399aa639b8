"""Whether an actor does anything itself, or only waits for humans and children: what its clock goes by."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from .run import Run


class Activity:
    """An actor's strands: its loop is one, each of several calls running side by side another."""

    def __init__(self, run: Run, path: str) -> None:
        self._run = run
        self._path = path
        self._strands = 1
        self._awaited: list[str] = []

    @property
    def works(self) -> bool:
        """Whether a strand works, or is about to: one that waits for a child that has ended is."""
        return self._strands > 0 or any(child not in self._run.live for child in self._awaited)

    @contextmanager
    def idle(self, *children: str) -> Generator[None]:
        """While inside, one strand waits for a human, or for the children at these paths."""
        self._strands -= 1
        self._awaited += children
        self._run.deadlines.rest(self._path)
        try:
            yield
        finally:
            self._strands += 1
            for child in children:
                self._awaited.remove(child)
            self._run.deadlines.work(self._path)

    @contextmanager
    def busy(self) -> Generator[None]:
        """One more strand works: the opposite of idle."""
        self._strands += 1
        self._run.deadlines.work(self._path)
        try:
            yield
        finally:
            self._strands -= 1
            self._run.deadlines.rest(self._path)
