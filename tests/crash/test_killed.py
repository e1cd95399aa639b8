"""A real `elenco run` is killed (SIGKILL) in every phase of its work, again and again, and resumed to its end."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import trio

import runtime
from runtime.errors import UsageError
from runtime.events import ToolFinished
from runtime.journal import RunFolder, RunReader, State, open_state
from runtime.journal.folder import run_ids
from runtime.journal.replay import replay
from runtime.journal.state import RunState
from runtime.watch.commands import Approve
from runtime.watch.unattended import append_command

FULL = bool(os.environ.get("ELENCO_FULL"))
KILLS = 200 if FULL else 30
IN_EACH_PHASE = 20 if FULL else 2

PROGRAM = """
import os, random, signal, sys, threading, time
import runtime.app
import runtime.cli.command_run
from runtime.cli import main
from runtime.journal.database import Database
from runtime.tools import tool

def act(ctx, what):
    time.sleep(0.015)
    with open(os.environ["EFFECTS"], "a") as log:
        log.write(f"{what} {ctx.call_id}\\n")
    time.sleep(0.015)
    return f"{what}: done"

@tool(effects="once")
def note(ctx, what: str) -> str:
    "Write down, once."
    return act(ctx, what)

@tool(effects="once")
def pay(ctx, what: str) -> str:
    "Pay, once, after a human has agreed."
    return act(ctx, what)

@tool(effects="idempotent")
def put(ctx, what: str) -> str:
    "Put in place; twice is as good as once."
    return act(ctx, what)

built_in = runtime.app.built_in
runtime.app.built_in = lambda *given: (*built_in(*given), note, pay, put)
runtime.cli.command_run.TOOL_NAMES += ("note", "pay", "put")

commits, dies_at = 0, int(os.environ.get("DIES_AT_COMMIT", "0"))
commit = Database.commit

def counted(self, rows):
    global commits
    commits += 1
    if commits == dies_at:
        delay = random.Random(dies_at).random() * 0.0006
        threading.Thread(target=lambda: (time.sleep(delay), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
    commit(self, rows)

Database.commit = counted
sys.exit(main(sys.argv[1:]))
"""

AGENTS = {
    "lead": "tools: [note, pay, put, write_file]\nsubagents: [helper]",
    "helper": "tools: [note]\nmax_steps: 2",
}

SCRIPT = f"""\
lead:
  - text: {" ".join(f"word{number * number}" for number in range(2000))}
    usage: {{input: 100, output: 100}}
    calls: [{{name: note, arguments: {{what: one}}}}, {{name: note, arguments: {{what: two}}}}]
  - calls: [{{name: delegate_to_helper, arguments: {{task: help}}}}]
  - calls: [{{name: pay, arguments: {{what: bill}}}}]
  - calls: [{{name: put, arguments: {{what: sign}}}}, {{name: write_file, arguments: {{path: a.txt, content: hi}}}}]
  - all is done
helper:
  - calls: [{{name: note, arguments: {{what: form}}}}]
  - stall: 0.06
    text: what I have so far
"""

WHAT = {"a0t0c0": "one", "a0t0c1": "two", "a1t0c0": "form", "a0t2c0": "bill", "a0t3c0": "sign"}
"""The calls with effects, and what each of them does."""

Event: TypeAlias = dict[str, Any]
PHASES: dict[str, Callable[[Event], bool]] = {
    "streaming": lambda event: event["type"] == "model.delta",
    "tool": lambda event: event["type"] == "tool.started" and event["name"] in ("note", "pay", "put"),
    "wrap-up": lambda event: event["type"] == "model.requested" and event["purpose"] == "wrap_up",
    "waiting": lambda event: event["type"] == "run.waiting",
    "committing": lambda event: False,
}
"""The event after which a process is in a phase; one that commits kills itself."""
DELAYS = {"streaming": 0.01, "tool": 0.035, "wrap-up": 0.06, "waiting": 0.02, "committing": 0.0}


@attrs.define
class Scenario:
    """One run, its effects on the world, and the processes that work on it."""

    base: Path
    state: State
    chance: random.Random
    hits: Counter[str] = attrs.Factory(Counter[str])
    kills: int = 0

    @classmethod
    def make(cls, base: Path, seed: int) -> Scenario:
        (base / "ws" / "agents").mkdir(parents=True)
        (base / "rt").mkdir(mode=0o700)
        for name, keys in AGENTS.items():
            text = f"---\nname: {name}\ndescription: The {name}.\n{keys}\n---\nYou are the {name}.\n"
            (base / "ws" / "agents" / f"{name}.md").write_text(text)
        (base / "script.yaml").write_text(SCRIPT)
        (base / "program.py").write_text(PROGRAM)
        (base / "effects").write_text("")
        return cls(base, open_state(str(base / "state")), random.Random(seed))

    @property
    def folder(self) -> RunFolder:
        (run,) = run_ids(self.state)
        return self.state.run(run)

    def record(self) -> RunState:
        """What stands on record, checked: no gap, no damage, no outcome twice."""
        with sqlite3.connect(self.folder.journal) as connection:
            assert ("ok",) == connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        with RunReader(self.folder) as reader:
            records = list(reader.records())
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        return replay(records)

    def words(self) -> list[str]:
        rules = ["--allow", "note", "--allow", "put", "--allow", "write_file"]
        if run_ids(self.state):
            return ["resume", self.folder.id, "--json"]
        return ["run", "lead", "do it", "--model", f"scripted/{self.base / 'script.yaml'}", "--json", *rules]

    async def process(self, phase: str = "") -> bool:
        """Work on the run until it has ended, or the process has been killed in a phase; whether it has ended."""
        before = self.record().seq if run_ids(self.state) else 0
        extra = {"DIES_AT_COMMIT": str(self.chance.randint(2, 9))} if phase == "committing" else {}
        async with self.started(extra) as process:
            assert process.stdout is not None
            async with aclosing(_events(process.stdout)) as events:
                async for event in events:
                    if int(event.get("seq") or event.get("after") or 0) <= before:
                        continue
                    if phase and PHASES[phase](event):
                        await trio.sleep(self.chance.random() * DELAYS[phase])
                        process.kill()
                    elif event["type"] == "run.waiting" and phase != "waiting":
                        process.kill()
            code = await process.wait()
        if code == -signal.SIGKILL:
            self.kills += 1
            self.note_hit(phase)
            self.decide()
            # The last moment of a process may be after all that it had to do.
            return bool(run_ids(self.state)) and self.record().finished is not None
        assert 0 == code, (phase, code, (self.base / "errors").read_text())
        return True

    def note_hit(self, phase: str) -> None:
        """Whether the record says that the process died in the phase it was to die in."""
        if not run_ids(self.state):
            return
        state = self.record()
        open_calls = any(actor.unclear_calls for actor in state.actors.values())
        requested = [actor.request for actor in state.actors.values() if actor.request is not None]
        in_phase = {
            "streaming": bool(requested),
            "tool": open_calls,
            "wrap-up": any(request.purpose == "wrap_up" for request in requested),
            "waiting": state.waiting,
            "committing": True,
        }
        self.hits[phase] += in_phase.get(phase, False)

    def decide(self) -> None:
        """The human decides while no process runs."""
        if run_ids(self.state):
            for request in self.record().pending_approvals:
                with contextlib.suppress(UsageError):
                    append_command(self.folder, Approve(id=request.id, by="ada"), str)

    @asynccontextmanager
    async def started(self, extra: dict[str, str]) -> AsyncGenerator[trio.Process]:
        """A process with a terminal to read from, so that it stays while it waits for a human."""
        ours, theirs = pty.openpty()
        errors = (self.base / "errors").open("wb")
        try:
            process = await trio.lowlevel.open_process(
                [sys.executable, str(self.base / "program.py"), *self.words(), "--state", str(self.state.path)],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=errors.fileno(),
                cwd=self.base / "ws",
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.base),
                    "XDG_RUNTIME_DIR": str(self.base / "rt"),
                    "PYTHONPATH": str(Path(runtime.__path__[0]).parent),
                    "EFFECTS": str(self.base / "effects"),
                    **extra,
                },
            )
        finally:
            errors.close()
            os.close(theirs)
        try:
            yield process
        finally:
            os.close(ours)
            with trio.CancelScope(shield=True):
                assert process.stdout is not None
                await process.stdout.aclose()
                process.kill()
                await process.wait()

    def check(self) -> None:
        """The run has ended as one that nobody disturbed, but for calls of which nobody knows."""
        state = self.record()
        assert state.finished is not None
        report = state.finished.report
        assert ("completed", "all is done") == (report["status"], report["text"])
        effects = Counter((self.base / "effects").read_text().split("\n"))
        with RunReader(self.folder) as reader:
            ended = [record.event for record in reader.records() if isinstance(record.event, ToolFinished)]
        assert len({event.call_id for event in ended}) == len(ended)
        lines = {f"{WHAT[event.call_id]} {event.call_id}": event for event in ended if event.call_id in WHAT}
        assert {line for line in effects if line} <= set(lines)
        assert len(WHAT) == len(lines)
        for line, event in lines.items():
            if event.name == "put":
                assert ("ok", True) == (event.kind, effects[line] >= 1)
            elif event.kind == "ok":
                assert 1 == effects[line], line
            else:
                assert ("unknown", True) == (event.kind, effects[line] <= 1), line
        helper = state.actors["lead/helper-1"]
        assert helper.report is not None
        assert ("stopped", "max_steps") == (helper.report["status"], helper.report["reason"])
        assert "hi" == (self.base / "ws" / "a.txt").read_text()


async def _events(stream: trio.abc.ReceiveStream) -> AsyncGenerator[Event]:
    buffer = b""
    while data := await stream.receive_some():
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            yield json.loads(line)


async def test_a_run_killed_in_every_phase_is_resumed_to_its_end(tmp_path: Path) -> None:
    """Killed while streaming, in tools, committing, waiting and wrapping up: no gap, no effect twice, the same end."""
    hits: Counter[str] = Counter()
    seeds = itertools.count()
    kills = 0

    async def play() -> None:
        nonlocal kills
        while kills < KILLS or any(hits[phase] < IN_EACH_PHASE for phase in PHASES):
            seed = next(seeds)
            scenario = Scenario.make(tmp_path / str(seed), seed)
            phases = ["streaming", "tool", "wrap-up", "waiting"]
            phases.insert(scenario.chance.randint(0, len(phases)), "committing")
            ended = False
            for phase in phases:
                ended = ended or await scenario.process(phase)
            while not ended:
                ended = await scenario.process()
            scenario.check()
            hits.update(scenario.hits)
            kills += scenario.kills

    with trio.fail_after(3600 if FULL else 600):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(play)
    print(f"{kills} kills, so many in the phase they were meant for: {dict(hits)}")
