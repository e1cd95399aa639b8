"""Replaying recorded and made-up runs against a guard, and scoring what it said in time."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define

from runtime.limits.loops import CallSeen, Flags, Guard, GuardSettings, StepSeen, rank

CASES = Path(__file__).parent.parent / "cases" / "loops"
REFUSED = "[refused] This call was repeated without progress and did not run."
NEVER = 10**9


@define
class Score:
    """What a guard did with one run."""

    name: str
    loop: bool
    in_time: bool = False
    stopped: bool = False
    wasted: int = 0
    worst: int = 0
    too_early: bool = False
    nudged_wrongly: bool = False

    @property
    def right(self) -> bool:
        if self.loop:
            return self.in_time and self.stopped and not self.too_early
        return self.worst < 2


def seen(step: dict[str, Any], tools: dict[str, Any]) -> StepSeen:
    """A recorded step as the guard takes it."""
    calls = tuple(
        CallSeen(
            call["name"],
            call["arguments"],
            call["result"],
            call["is_error"],
            call["seconds"],
            Flags(**{flag: tools[call["name"]][flag] for flag in ("read_only", "mutates", "poll")}),
        )
        for call in step["calls"]
    )
    return StepSeen(step.get("text") or "", calls, step["at"], step.get("event"))


def _same(call: dict[str, Any]) -> str:
    return json.dumps([call["name"], call["arguments"]], sort_keys=True)


def replay_run(trace: dict[str, Any], veto: bool = False, settings: GuardSettings | None = None) -> Score:
    """Feed a run to one guard an agent and compare its verdicts with the run's bounds.

    With `veto`, a call equal to a blocked one gets a refusal as its result, as it would in a real run.
    """
    loop = trace["label"] == "loop"
    score = Score(trace["name"], loop)
    starts, by, hard = (
        trace.get(key, NEVER) for key in ("loop_starts_at", "stop_no_later_than", "hard_stop_no_later_than")
    )
    guards: dict[str, Guard] = {}
    refused: set[str] = set()
    first: int | None = None
    count = 0
    for place, recorded in enumerate(trace["steps"]):
        step: dict[str, Any] = dict(recorded)
        if veto:
            refusal = {"result": REFUSED, "is_error": True, "seconds": 0.0}
            step["calls"] = [{**c, **refusal} if _same(c) in refused else c for c in step["calls"]]
        agent = step.get("agent", "root")
        if agent not in guards:
            guards[agent] = Guard(settings)
        level = rank(guards[agent].observe(seen(step, trace["tools"])))
        before, count = count, count + len(step["calls"])
        at = place if trace.get("unit") == "step" else count - 1
        score.worst = max(score.worst, level)
        if level and loop and at < starts:
            score.too_early |= level > 1
        elif level and first is None:
            first = at
        score.nudged_wrongly |= level == 1 and not loop and not trace["nudge_ok"]
        if loop and level != 2:
            score.wasted += int(at >= starts) if trace.get("unit") == "step" else max(0, count - max(before, starts))
        if level == 2 and veto:
            refused |= {_same(call) for call in recorded["calls"]}
        if level == 3:
            score.stopped = starts <= at <= hard
            break
    score.in_time = first is not None and first <= by
    return score


@pytest.fixture(scope="session")
def replay() -> Callable[..., Score]:
    return replay_run


@pytest.fixture(scope="session")
def traces() -> list[dict[str, Any]]:
    """The recorded runs: three of each of fifty kinds."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))]


WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "glade",
    "harbor",
    "inlet",
    "jetty",
    "kelp",
    "lagoon",
    "mesa",
    "notch",
    "orchard",
    "prairie",
    "quarry",
    "ridge",
    "summit",
    "tundra",
    "upland",
    "valley",
    "willow",
    "yarrow",
    "zephyr",
    "anchor",
    "beacon",
    "copper",
    "drift",
    "engine",
    "filter",
    "gasket",
    "hinge",
    "ingot",
    "joint",
    "kettle",
    "lever",
    "magnet",
    "needle",
    "oxide",
    "piston",
    "quartz",
    "rotor",
    "socket",
    "turbine",
    "valve",
    "washer",
)
READS: dict[str, bool] = {"read_only": True, "mutates": False, "poll": False}
CHANGES: dict[str, bool] = {"read_only": False, "mutates": True, "poll": False}
NOTES: dict[str, bool] = {"read_only": False, "mutates": False, "poll": False}
POLLS: dict[str, bool] = {"read_only": True, "mutates": False, "poll": True}


class Scene:
    """A made-up run: other tools, files and outputs for every seed, written down like a recorded one."""

    def __init__(self, seed: str) -> None:
        self.chance = Random(seed)
        pick = self.chance.choice
        self.read = pick(["open_file", "fs_read", "view", "get_document", "fetch_page"])
        self.search = pick(["search_code", "find_text", "query_index", "lookup"])
        self.shell = pick(["bash", "terminal", "exec_command", "run_shell"])
        self.edit = pick(["replace_in_file", "apply_edit", "update_record", "edit_file"])
        self.write = pick(["save_file", "create_file", "write_file"])
        self.notes = pick(["update_plan", "todo_write", "write_notes", "set_goals"])
        self.poll = pick(["job_status", "watch_build", "get_run", "await_agent"])
        self.ask = pick(["delegate_to_analyst", "ask_agent", "spawn_agent", "start_writer", "handoff_to_legal"])
        self.tools: dict[str, dict[str, bool]] = {
            self.read: READS,
            self.search: READS,
            self.shell: CHANGES,
            self.edit: CHANGES,
            self.write: CHANGES,
            self.notes: NOTES,
            self.poll: POLLS,
            self.ask: CHANGES,
        }
        self.key = pick(["path", "file", "uri"])
        self.command = pick(["command", "cmd"])
        names = [self.chance.sample(WORDS, 14) for _ in range(3)]
        self.paths = [f"{a}/{b}_{c}.{pick(['py', 'go', 'rs', 'ts', 'md'])}" for a, b, c in zip(*names, strict=True)]
        self.files = {path: self.content() for path in self.paths}
        self.steps: list[dict[str, Any]] = []
        self.at = self.chance.uniform(1, 8)
        self.count = 0

    def line(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(2, 6)))

    def content(self, lines: int = 0) -> list[str]:
        form = self.chance.choice(["{i:5d}  {l}", "{i}: {l}", "{i}\t{l}", "{l} #{i}"])
        return [form.format(i=i + 1, l=self.line()) for i in range(lines or self.chance.randint(6, 30))]

    def call(
        self, name: str, arguments: dict[str, Any], result: str, error: bool = False, seconds: float | None = None
    ) -> dict[str, Any]:
        slow = self.tools.setdefault(name, CHANGES)["mutates"]
        if seconds is None:
            seconds = self.chance.uniform(0.3, 6) if slow else self.chance.uniform(0.02, 0.5)
        return {"name": name, "arguments": arguments, "result": result, "is_error": error, "seconds": seconds}

    def step(self, *calls: dict[str, Any], text: str = "", event: str | None = None, agent: str = "root") -> None:
        self.steps.append({"text": text, "at": self.at, "calls": list(calls), "event": event, "agent": agent})
        self.count += len(calls)
        self.at += sum(call["seconds"] for call in calls) + self.chance.uniform(1.5, 7)

    def reading(self, path: str) -> dict[str, Any]:
        return self.call(self.read, {self.key: path}, "\n".join(self.files[path]))

    def finding(self) -> dict[str, Any]:
        word = self.chance.choice(WORDS)
        hits = [f"{self.chance.choice(self.paths)}:{self.chance.randint(1, 400)}: {word} {self.line()}" for _ in "abc"]
        return self.call(self.search, {"pattern": word, "path": "."}, "\n".join(hits))

    def editing(self, path: str | None = None) -> dict[str, Any]:
        path = path or self.chance.choice(self.paths)
        self.files[path] = self.content()
        answer = self.chance.choice([f"Edited {path}: 1 replacement", "ok", "updated"])
        return self.call(self.edit, {self.key: path, "old": self.line(), "new": self.line()}, answer)

    def misediting(self, path: str) -> dict[str, Any]:
        answer = self.chance.choice(["no match for old text", "Error: text not found", "old string does not occur"])
        return self.call(self.edit, {self.key: path, "old": self.line(), "new": self.line()}, answer, True)

    def opening(self) -> None:
        """A look around before the matter begins."""
        for path in self.chance.sample(self.paths, self.chance.randint(0, 4)):
            self.step(self.reading(path))
        if self.chance.random() < 0.5:
            self.step(self.finding())

    def work(self, pieces: int) -> None:
        for _ in range(pieces):
            match self.chance.randint(0, 2):
                case 0:
                    self.step(self.editing())
                case 1:
                    target = f"out/{self.chance.choice(WORDS)}{self.count}.txt"
                    self.step(self.call(self.write, {self.key: target, "content": self.line()}, "written"))
                case _:
                    path = self.chance.choice(self.paths)
                    self.step(self.editing(path))
                    self.step(self.reading(path))

    def fixed(self) -> Callable[[], dict[str, Any]]:
        """Some call whose answer never changes."""
        word, path = self.chance.choice(WORDS), self.chance.choice(self.paths)
        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: self.reading(path),
            self.finding,
            lambda: self.misediting(path),
            lambda: self.call(self.shell, {self.command: f"make {word}"}, f"error: cannot build {word}\nexit 2", True),
            lambda: self.call(self.shell, {self.command: f"ls -la {path}"}, "\n".join(self.line() for _ in "abc")),
            lambda: self.call(self.notes, {"items": [{"text": self.line(), "done": False}]}, "saved"),
            lambda: self.call(self.search, {"query": self.line(), "limit": 10}, "[]"),
        ]
        call = self.chance.choice(kinds)()
        return lambda: dict(call)

    def several(self, count: int) -> list[Callable[[], dict[str, Any]]]:
        found: dict[str, Callable[[], dict[str, Any]]] = {}
        while len(found) < count:
            call = self.fixed()
            found.setdefault(_same(call()), call)
        return list(found.values())

    def loop(self, starts: int, by: int, hard: int, unit: str = "call") -> dict[str, Any]:
        bounds = {"loop_starts_at": starts, "stop_no_later_than": by, "hard_stop_no_later_than": hard, "unit": unit}
        return {"name": "made up", "label": "loop", "tools": self.tools, "steps": self.steps, **bounds}

    def legit(self, nudge_ok: bool = False) -> dict[str, Any]:
        self.work(2)
        self.step(text="Done. That is all.")
        return {"name": "made up", "label": "legit", "tools": self.tools, "steps": self.steps, "nudge_ok": nudge_ok}


@pytest.fixture(scope="session")
def scene() -> Callable[[str], Scene]:
    return Scene
