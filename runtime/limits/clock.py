"""Stopwatches of a tree of actors: a clock runs while anyone in its subtree does anything but wait for a human.

An actor counts its strands: its loop is one, each of several calls running side by side is another. A strand that
waits for a human, or for a child (whose own strands then tell), is paused. The clock of an actor runs while it, or
anyone below it, has a strand left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from runtime.messages import JsonObject

MARGIN_SHARE = 0.1
MARGIN_MOST = 30.0
LEAD_SHARE = 0.02
LEAD_MOST = 1.0
"""A child has ended this much before its parent's last turn must begin, so that its report arrives."""


@attrs.frozen
class Deadline:
    """When an actor must have ended (`at`), and when its last turn must begin (`wrap_up_at`), on the caller's clock.

    `scope` is the actor whose `timeout` it is; a child's deadline lies before the wrap-up of whoever waits for it.
    """

    at: float
    wrap_up_at: float
    scope: str
    timeout: float


@attrs.define(eq=False)
class _Watch:
    path: str
    parent: _Watch | None
    timeout: float | None
    strands: int = 0
    working: int = 0
    elapsed: float = 0.0
    since: float = 0.0
    below: dict[str, _Watch] = attrs.Factory(dict[str, "_Watch"])

    def chain(self) -> Iterator[_Watch]:
        watch: _Watch | None = self
        while watch is not None:
            yield watch
            watch = watch.parent

    def read(self, now: float) -> float:
        return self.elapsed + (max(0.0, now - self.since) if self.working else 0.0)

    def shift(self, strands: int, now: float) -> None:
        """Change how many strands work in this subtree; time so far is banked."""
        self.elapsed = self.read(now)
        self.since = now
        self.working += strands


class Clocks:
    """All clocks of one run. `now` is in seconds, of any clock that never goes back. KeyError: no such actor."""

    def __init__(self) -> None:
        self._watches: dict[str, _Watch] = {}

    def start(
        self,
        path: str,
        parent: str | None,
        timeout: float | None,
        now: float,
        strands: int = 1,
        elapsed: float = 0.0,
    ) -> None:
        """Start an actor's clock, its loop being the one strand. Raises ValueError where it has been started.

        `elapsed` is what it showed when an earlier process ended; the clocks above know of it already.
        """
        if path in self._watches:
            raise ValueError(f"the clock of {path} has been started")
        above = None if parent is None else self._watches[parent]
        watch = self._watches[path] = _Watch(path, above, timeout, elapsed=elapsed)
        if above is not None:
            above.below[path] = watch
        self._shift(watch, strands, now)

    def finish(self, path: str, now: float) -> float:
        """End an actor's clock and those below it; returns the seconds it ran."""
        watch = self._watches[path]
        seconds = watch.read(now)
        for child in tuple(watch.below.values()):
            self.finish(child.path, now)
        self._shift(watch, -watch.strands, now)
        del self._watches[path]
        if watch.parent is not None:
            del watch.parent.below[path]
        return seconds

    def pause(self, path: str, now: float, strands: int = 1) -> None:
        """So many strands wait for a human, or for an actor with a clock of its own. Raises ValueError below none."""
        watch = self._watches[path]
        if strands > watch.strands:
            raise ValueError(f"{path} has {watch.strands} strands, not {strands} to pause")
        self._shift(watch, -strands, now)

    def resume(self, path: str, now: float, strands: int = 1) -> None:
        """So many strands work (again): for n calls side by side, pause the loop's own one and resume n."""
        self._shift(self._watches[path], strands, now)

    def change(self, path: str, timeout: float | None) -> None:
        """A limit was raised while the clock runs on."""
        self._watches[path].timeout = timeout

    def elapsed(self, path: str, now: float) -> float:
        """Seconds on an actor's clock."""
        return self._watches[path].read(now)

    def runs(self, path: str) -> bool:
        return self._watches[path].working > 0

    def deadline(self, path: str, now: float) -> Deadline | None:
        """The tightest deadline of an actor and all above it; None while no clock with a timeout runs.

        It moves when anyone in the tree pauses or resumes: ask again then.
        """
        found: Deadline | None = None
        for watch in reversed(tuple(self._watches[path].chain())):
            if found is not None:
                at = found.wrap_up_at - min(LEAD_SHARE * found.timeout, LEAD_MOST)
                found = attrs.evolve(found, at=at, wrap_up_at=_wrap_up_at(at, found.timeout))
            if watch.timeout is None or not watch.working:
                continue
            at = now + watch.timeout - watch.read(now)
            if found is None or at < found.at:
                found = Deadline(at, _wrap_up_at(at, watch.timeout), watch.path, watch.timeout)
        return found

    def snapshot(self, now: float) -> JsonObject:
        """All clocks as JSON: what they show, not when."""
        watches = [
            {
                "path": watch.path,
                "parent": watch.parent.path if watch.parent is not None else None,
                "timeout": watch.timeout,
                "elapsed": watch.read(now),
                "strands": watch.strands,
            }
            for watch in self._watches.values()
        ]
        return {"watches": watches}

    @classmethod
    def restore(cls, data: JsonObject, now: float) -> Clocks:
        """The clocks of a snapshot, going on from `now`."""
        clocks = cls()
        for entry in data["watches"]:
            row: dict[str, Any] = entry
            clocks.start(row["path"], row["parent"], row["timeout"], now, row["strands"])
            clocks._watches[row["path"]].elapsed = row["elapsed"]
        return clocks

    @staticmethod
    def _shift(watch: _Watch, strands: int, now: float) -> None:
        watch.strands += strands
        for each in watch.chain():
            each.shift(strands, now)


def _wrap_up_at(at: float, timeout: float) -> float:
    return at - min(MARGIN_SHARE * timeout, MARGIN_MOST)
