"""shell and background jobs through the command: rules, walls, output, what is left, with a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Played: TypeAlias = Callable[..., list[dict[str, Any]]]
_SCRIPT = Path(sys.executable).with_name("elenco")
COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "runtime.cli"]

AGENT = """---
name: dev
description: runs things
tools: [shell, start_job, job_output, stop_job]
---
You run things.
"""

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap here: apt install bubblewrap")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("ws/agents", "home", "rt"):
        (tmp_path / name).mkdir(mode=0o700, parents=True)
    (tmp_path / "ws" / "agents" / "dev.md").write_text(AGENT)
    return tmp_path


@pytest.fixture
def played(place: Path) -> Played:
    """Play calls, one a turn, each (tool, arguments): the results, in order, as their events."""

    def play(
        *calls: tuple[str, dict[str, Any]], flags: tuple[str, ...] = ("--yes",), code: int = 0
    ) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = [{"calls": [{"name": name, "arguments": words}]} for name, words in calls]
        (place / "s.json").write_text(json.dumps({"dev": [*turns, {"text": "done"}]}))
        done = subprocess.run(
            [*COMMAND, "run", "dev", "go", "--model", f"scripted/{place / 's.json'}", "--state", str(place / "state"),
             "--json", *flags],
            cwd=place / "ws",
            env={"PATH": os.environ["PATH"], "HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(place / "rt"),
                 "OPENAI_API_KEY": "sk-planted-1234567890"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return play


def results(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "tool.finished"]


def test_an_allowed_command_runs_and_says_in_which_walls(played: Played) -> None:
    """What a rule allows runs without a question; the result has output, exit code and walls, and it was streamed."""
    events = played(("shell", {"command": "ls agents"}), flags=("--allow", "shell(ls *)"))
    (result,) = results(events)
    assert result["result"] == "dev.md\n[exit code 0; bubblewrap]"
    assert result["data"] == {"exit_code": 0, "walls": "bubblewrap", "bytes": 7, "stopped": None}
    assert "".join(event["text"] for event in events if event["type"] == "tool.output") == "dev.md\n"


def test_a_command_no_rule_allows_waits_for_a_human(played: Played) -> None:
    """With nobody there a command that asks suspends the run; a denied one is refused, also under --yes."""
    events = played(("shell", {"command": "ls && rm -rf agents"}), flags=("--allow", "shell(ls *)"), code=4)
    assert [event["verdict"] for event in events if event["type"] == "permission.decided"] == ["ask"]
    (result,) = results(played(("shell", {"command": "ls; rm x"}), flags=("--yes", "--deny", "shell(rm *)")))
    assert result["kind"] == "refused"


def test_a_failing_command_is_an_error_with_all_it_said(played: Played) -> None:
    """Errors and output come in the order written, with the exit code; the walls hold under --yes as well."""
    (result,) = results(played(("shell", {"command": "echo one; echo two >&2; echo x > /usr/x; env; exit 3"})))
    assert result["is_error"]
    assert result["result"].startswith("one\ntwo\n")
    assert "Read-only file system" in result["result"]
    assert "sk-planted" not in result["result"]
    assert result["result"].endswith("[exit code 3; bubblewrap]")


def test_a_command_that_takes_too_long_is_stopped(played: Played) -> None:
    """At its time-out a command and all it started are ended; what it said until then is kept."""
    command = "trap 'echo bye; exit 5' TERM; echo begun; sleep 4323 & wait"
    (result,) = results(played(("shell", {"command": command, "timeout": 1})))
    assert result["is_error"]
    assert result["result"].startswith("begun\nbye\n")
    assert "it did not end within 1 s and was stopped" in result["result"]
    assert not alive("4323")


def test_long_output_is_shortened_and_can_be_read(played: Played, place: Path) -> None:
    """Of long output head and tail are in the result with a handle; all of it is on disk, broken bytes replaced."""
    (result,) = results(played(("shell", {"command": "printf '\\xff\\n'; seq 30000; echo 'ä€😀'"})))
    assert result["result"].startswith("\ufffd\n1\n2\n")
    assert result["result"].endswith("ä€😀\n[exit code 0; bubblewrap]")
    assert "read_result(handle=" in result["result"]
    assert result["full"]


def test_plan_mode_writes_nothing(played: Played, place: Path) -> None:
    """In plan mode a command that only reads runs in read-only walls; one that may write is denied."""
    events = played(("shell", {"command": "ls"}), ("shell", {"command": "touch f"}), flags=("--yes", "--mode", "plan"))
    first, second = results(events)
    assert first["result"].endswith("[exit code 0; bubblewrap, read-only]")
    assert second["kind"] == "refused"
    assert not (place / "ws" / "f").exists()


def test_what_a_command_makes_that_governs_agents_is_told(played: Played) -> None:
    """A new file that governs agents is named in the result and in a warning."""
    events = played(("shell", {"command": "echo obey > AGENTS.md"}))
    assert "AGENTS.md governs agents and was made by a command" in results(events)[0]["result"]
    assert any("AGENTS.md" in event["text"] for event in events if event["type"] == "warning")


def test_a_job_is_polled_and_stopped(played: Played) -> None:
    """A job's output is read from an offset on, and stopping it ends all it has started."""
    name = "job-a0t0c0"
    calls = (
        ("start_job", {"command": "echo one; sleep 0.3; echo two; sleep 4324"}),
        ("job_output", {"job": name, "wait": 5}),
        ("job_output", {"job": name, "offset": 4, "wait": 5}),
        ("stop_job", {"job": name}),
        ("job_output", {"job": name}),
        ("job_output", {"job": "job-9"}),
    )
    started, first, second, stopped, last, unknown = results(played(*calls))
    assert started["data"]["job"] == name
    assert first["result"] == f"one\n[{name}: running; go on with offset=4]"
    assert second["result"] == f"two\n[{name}: running; go on with offset=8]"
    assert stopped["result"] == last["result"] == f"one\ntwo\n[{name}: stopped; go on with offset=8]"
    assert "there is no job 'job-9'" in unknown["result"]
    assert not alive("4324")


def test_a_job_ends_with_its_actor(played: Played) -> None:
    """What is still running when the agent ends is ended with it, daemons too."""
    played(
        ("start_job", {"command": "setsid sleep 4325 & sleep 4325"}), ("job_output", {"job": "job-a0t0c0", "wait": 1})
    )
    assert not alive("4325")


def test_a_workspace_lowers_no_walls(played: Played, place: Path) -> None:
    """A workspace that asks for no walls gets them all the same, and the run says so."""
    (place / "ws" / "elenco.yaml").write_text("sandbox: {level: unsandboxed, network: on}\n")
    events = played(("shell", {"command": "true"}))
    assert results(events)[0]["result"] == "[exit code 0; bubblewrap]"
    assert any("level unsandboxed, network all" in event["text"] for event in events if event["type"] == "warning")


def test_without_walls_only_where_a_person_says_so(played: Played, place: Path) -> None:
    """The flag runs commands without walls, and the result says so; there, too, no key is in the environment."""
    (result,) = results(played(("shell", {"command": f"cat {place}/s.json | head -c 6; env"}), flags=(
        "--yes", "--sandbox", "unsandboxed")))  # fmt: skip
    assert result["result"].startswith('{"dev"')
    assert "sk-planted" not in result["result"]
    assert result["result"].endswith("[exit code 0; unsandboxed]")


def test_without_walls_only_what_is_new_is_said_to_be_new(played: Played, place: Path) -> None:
    """A command without walls is not blamed for files that governed agents before it, only for those it made."""
    (place / "ws" / "AGENTS.md").write_text("Be kind.\n")
    events = played(
        ("shell", {"command": "true"}), ("shell", {"command": "touch CLAUDE.md"}),
        flags=("--yes", "--sandbox", "unsandboxed"),
    )  # fmt: skip
    quiet, loud = results(events)
    assert quiet["result"] == "[exit code 0; unsandboxed]"
    assert "CLAUDE.md" in loud["result"]
    assert "AGENTS.md" not in loud["result"]


def test_doctor_tells_the_walls(place: Path) -> None:
    """The doctor names the walls there are, and where there are none how to get them."""
    for path, said in ((os.environ["PATH"], "bubblewrap"), ("/nowhere", "apt install bubblewrap")):
        done = subprocess.run(
            [*COMMAND, "doctor"], cwd=place / "ws", env={"PATH": path, "HOME": str(place / "home")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert said in done.stdout.partition("Commands")[2]


def alive(seconds: str) -> bool:
    """Whether a `sleep` of just so many seconds still runs."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if line == f"sleep\0{seconds}\0".encode():
                return True
    return False
