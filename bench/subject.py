"""What every measured thing can do: the agents of the workloads, on Elenco or on a loop written by hand."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Protocol

import attrs

SYSTEM = "You are a helpful agent."
TASK = "Add the numbers step by step."


@attrs.define
class Marks:
    """When the tool of a loop was called, in seconds of this process's CPU: a step lies between two of them."""

    times: list[float] = attrs.Factory(list[float])

    def note(self) -> None:
        self.times.append(time.process_time())


MARKS = Marks()


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    MARKS.note()
    return str(a + b)


async def note(task: str) -> str:
    """Take a note."""
    return "noted"


class Timer:
    """CPU and wall seconds of a block."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def __enter__(self) -> Timer:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cpu, self.wall = time.process_time() - self._cpu, time.perf_counter() - self._wall


class Subject(Protocol):
    """Something to be measured. Names of models are those of `bench.fake_server`.

    `work` is what the last `loop`, `fan` or `delegate` took from the first agent's start to its answer: less than the
    whole call where a run has to be opened and closed around it.
    """

    work: Timer

    async def loop(self, model: str) -> None:
        """One agent with the tool `add`, from its first step to its answer."""
        ...

    async def fan(self, model: str) -> None:
        """One agent with the tool `note`, which its model calls several times in one reply."""
        ...

    async def stream(self, model: str) -> int:
        """One agent and one long answer; how many pieces of text it came in."""
        ...

    async def delegate(self, children: int, child: str, latency: str = "") -> None:
        """One agent whose model delegates to so many children at once, who have the tool `add`.

        `child` is the children's model, `latency` the root's own: "@100" for 100 ms.
        """
        ...

    async def crowd(self, model: str, count: int) -> None:
        """So many agents at once, each alone with its task."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


def function(name: str, description: str, **parameters: str) -> dict[str, Any]:
    """A tool as Chat Completions wants it; `parameters` are names and JSON types."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in parameters.items()},
        "required": list(parameters),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
