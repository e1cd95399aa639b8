"""The reference of the project's performance study, `raw-httpx2`, where that study lies beside this repository.

Its loop runs in a virtual environment of its own under the temporary folder: it needs httpx2, which Elenco does not.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, cast

import trio

from .subject import MARKS, Timer, add, note

STUDY = Path(__file__).resolve().parents[2] / "shared" / "perf"
NAME = "raw-httpx2"
FRAMEWORKS = (
    "openai-sdk",
    "pydantic-ai",
    "openai-agents",
    "autogen",
    "langgraph",
    "smolagents",
    "strands",
    "agno",
    "google-adk",
)


def environment() -> Path:
    """The folder of its virtual environment, there or not."""
    return Path(os.environ.get("PERF_VENVS", Path(tempfile.gettempdir()) / "perf-venvs")) / "base"


def python() -> Path | None:
    """Its interpreter, None where study or environment is missing."""
    found = environment() / "bin" / "python"
    return found if found.exists() and (STUDY / "peers" / "raw.py").exists() else None


def build() -> None:
    """Make its virtual environment from the study's pinned requirements; does nothing where it is there already."""
    pins = STUDY / "requirements" / "base.txt"
    if python() is not None or not pins.exists():
        return
    venv.create(environment(), with_pip=True)
    command = [str(environment() / "bin" / "python"), "-m", "pip", "install", "-q", "--no-input", "-r", str(pins)]
    subprocess.run(command, check=True)


def recorded() -> dict[str, dict[str, dict[str, Any]]]:
    """What the study measured on its own machine: workload -> peer -> figures; empty without the study."""
    results = STUDY / "results.json"
    return json.loads(results.read_text())["summary"] if results.exists() else {}


class PeerSubject:
    """The study's loop as a Subject; only in the interpreter that `python()` names."""

    def __init__(self, base: str) -> None:
        os.environ["RAW_TRANSPORT"] = "httpx2-sse"
        sys.path.insert(0, str(STUDY / "peers"))
        self._raw = cast("Any", importlib.import_module("raw"))
        self._raw.tool_mark = MARKS.note
        self._wire = self._raw.Httpx2(base)
        self.work = Timer()

    async def loop(self, model: str) -> None:
        with Timer() as self.work:
            await self._raw.agent(self._wire, model, [self._raw.ADD], {"add": add})

    async def fan(self, model: str) -> None:
        with Timer() as self.work:
            await self._raw.agent(self._wire, model, [self._raw.child_schema(0)], {"note": note})

    async def stream(self, model: str) -> int:
        pieces: list[str] = []
        history = self._raw.History(model, [self._raw.ADD])
        history.add({"role": "system", "content": self._raw.SYSTEM})
        history.add({"role": "user", "content": self._raw.PROMPT})
        await self._raw.complete(self._wire, history.body(), pieces.append)
        return len(pieces)

    async def delegate(self, children: int, child: str, latency: str = "") -> None:
        async def call(task: str) -> str:
            answer: str = await self._raw.agent(self._wire, child, [self._raw.ADD], {"add": add}, task)
            return answer

        model = f"fan-{children}:child_0(task){latency}"
        with Timer() as self.work:
            await self._raw.agent(self._wire, model, [self._raw.child_schema(0)], {"child_0": call})

    async def crowd(self, model: str, count: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(self.loop, model)

    async def aclose(self) -> None:
        await self._wire.c.aclose()
