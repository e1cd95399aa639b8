"""Whether an answer holds: by its length, by what it must not say, by its schema, by a check of somebody's own.

Text and plain schemas are looked at here, long answers in a thread. A schema that could take for ever, and Python of
the workspace, get a process of their own, which ends with its time, whatever it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import trio

from runtime.definitions import OutputRules
from runtime.reaper import Process, Reaper

from .answer import NoJson, read_answer
from .forbidden import faults_in_text, faults_in_value, masked
from .schema import is_bounded, value_faults

SECONDS = 30.0
"""What a check has for one answer."""
_SHORT = 20_000
_MOST_SAID = 1 << 20
_PROGRAM = Path(__file__).with_name("check_program.py")


@attrs.frozen
class Holds:
    """The answer is what it must be; `output` is its value where a schema was asked for, else None."""

    output: Any = None


@attrs.frozen
class Faulty:
    """The answer is not; `faults` are words for the model that gave it."""

    faults: tuple[str, ...]


@attrs.frozen
class Unjudged:
    """Nobody can tell: what should judge is itself broken."""

    why: str


Verdict: TypeAlias = Holds | Faulty | Unjudged


@attrs.frozen
class Judge:
    """What one agent's answers are held against.

    `root` is the folder a check's module is looked for in first; None where Python does not count, because nobody
    trusts the workspace: then the check is left out. `hidden` are secrets no check finds in its environment.
    """

    rules: OutputRules
    reaper: Reaper
    root: Path | None = None
    hidden: Sequence[str] = ()
    seconds: float = attrs.Factory(lambda: SECONDS)

    @property
    def check(self) -> str | None:
        return self.rules.check if self.root is not None else None

    async def judge(self, text: str) -> Verdict:
        """The verdict on one answer. A cancelled call leaves no process."""
        if len(text) <= _SHORT:
            await trio.lowlevel.checkpoint()
            verdict = self._first_look(text)
        else:
            verdict = await trio.to_thread.run_sync(self._first_look, text, abandon_on_cancel=True)
        if isinstance(verdict, Holds) and (self._is_open(verdict) or self.check is not None):
            value = verdict.output if self.rules.schema is not None else text
            found = await self._in_process(value, self.rules.schema if self._is_open(verdict) else None)
            verdict = found or verdict
        if isinstance(verdict, Faulty):
            verdict = Faulty(tuple(masked(fault, self.rules.forbid) for fault in verdict.faults))
        return verdict

    def _is_open(self, verdict: Holds) -> bool:
        return self.rules.schema is not None and not is_bounded(self.rules.schema)

    def _first_look(self, text: str) -> Verdict:
        """All that surely takes little time."""
        rules = self.rules
        faults: list[str] = []
        if not text.strip():
            return Faulty(("the answer is empty",))
        if rules.max_chars is not None and len(text) > rules.max_chars:
            faults.append(f"the answer has {len(text):,} characters; at most {rules.max_chars:,} are allowed")
        if rules.schema is None:
            faults += faults_in_text(text, rules.forbid)
            return Faulty(tuple(faults)) if faults else Holds()
        try:
            value = read_answer(text)
        except NoJson as error:
            return Faulty((*faults, *faults_in_text(text, rules.forbid), str(error)))
        faults += faults_in_value(value, rules.forbid)
        if is_bounded(rules.schema):
            try:
                faults += value_faults(rules.schema, value)
            except ValueError as error:
                return Unjudged(str(error))
        return Faulty(tuple(faults)) if faults else Holds(value)

    async def _in_process(self, value: Any, schema: Mapping[str, Any] | None) -> Verdict | None:
        """What the checking program says; None where it finds nothing."""
        what = f"the check {self.check}" if self.check is not None else "the schema"
        request = {"path": sys.path, "root": str(self.root), "check": self.check, "schema": schema, "value": value}
        environment = {
            name: text for name, text in os.environ.items() if not any(secret in text for secret in self.hidden)
        }
        said = b""
        try:
            with trio.move_on_after(self.seconds) as patience:
                async with self.reaper.running(
                    [sys.executable, "-I", str(_PROGRAM)],
                    cwd=self.root or "/",
                    env=environment,
                    stdin=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    grace=0.0,
                ) as process:
                    said = await _asked(process, json.dumps(request).encode())
        except OSError as error:
            return Unjudged(f"{what} cannot be started: {error.strerror}")
        if patience.cancelled_caught:
            return Unjudged(f"{what} did not end within {self.seconds:g} s")
        try:
            verdict: Any = json.loads(said)
        except ValueError:
            return Unjudged(f"{what} ended its process without a verdict")
        if "broken" in verdict:
            return Unjudged(str(verdict["broken"]))
        faults = tuple(str(fault) for fault in verdict["faults"])
        return Faulty(faults) if faults else None


async def _asked(process: Process, request: bytes) -> bytes:
    """What the program writes once it has read the request; what is too long for a verdict is none."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdin.send_all(request)
        await process.stdin.aclose()
    except trio.BrokenResourceError:
        return b""  # it has ended before it read all
    said = b""
    while piece := await process.stdout.receive_some():
        said += piece
        if len(said) > _MOST_SAID:
            return b""
    return said
