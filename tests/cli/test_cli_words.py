"""Help, the first screen and slips of the keyboard: quick, short, and on the right stream."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from runtime.cli.version import VERSION

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

FIRST_SCREEN = """\
Elenco 0.1: a cast of agents whose runs always end.
  model    offline/extract   no key found: quotes your files, invents nothing
  cast     coordinator > researcher, reviewer, writer      (shipped; elenco agents)
Try now    elenco run "What does this project do?"         no key needed
"""


def test_bare_command_shows_what_would_answer_and_what_to_type(elenco: Run) -> None:
    """Without words, the command tells model, cast and first commands on stdout, and makes nothing."""
    done = elenco(state=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith(FIRST_SCREEN)
    assert "Connect    export ANTHROPIC_API_KEY=…" in done.stdout
    assert done.stdout.rstrip().split("\n")[-1] == "More       elenco --help      elenco doctor      last run: none"


def test_bare_command_leaves_no_file(elenco: Run, place: Path) -> None:
    """Looking at the first screen writes nothing anywhere in the home folder."""
    elenco(state=False)
    assert [] == list((place / "home").iterdir())


def test_first_screen_names_a_key_by_its_variable_only(elenco: Run) -> None:
    """With a key set, the model is named and no part of the key is."""
    done = elenco(state=False, env={"OPENAI_API_KEY": "sk-Aa1-very-secret"})
    assert re.search(r"^  model    openai/\S+   key in OPENAI_API_KEY$", done.stdout, re.MULTILINE)
    assert "secret" not in done.stdout + done.stderr
    assert "Connect" not in done.stdout


def test_first_screen_counts_the_workspace_agents(elenco: Run, place: Path) -> None:
    """Agents of the folder stand in front of the shipped ones."""
    (place / "ws" / "agents").mkdir()
    (place / "ws" / "agents" / "poet.md").write_text("---\nname: poet\ndescription: x\ntools: []\n---\nWrite.\n")
    assert "  cast     poet (here), coordinator > researcher" in elenco(state=False).stdout


def test_help_fits_a_screen(elenco: Run) -> None:
    """The help has at most 25 lines on stdout, commands to type before any list."""
    done = elenco("--help")
    lines = done.stdout.split("\n")[:-1]
    assert (0, "") == (done.returncode, done.stderr)
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 120
    assert "elenco run" in "".join(lines[:4])


@pytest.mark.parametrize("command", ["run", "resume", "tail", "say"])
def test_every_command_has_help_with_an_example(elenco: Run, command: str) -> None:
    """`elenco COMMAND --help` explains its flags and ends with a line to type."""
    done = elenco(command, "--help", state=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert f"usage: elenco {command}" in done.stdout
    assert f"  elenco {command}" in done.stdout.split("examples:")[1]


def test_version_is_the_packages_own(elenco: Run) -> None:
    """`--version` names the version that pyproject gives to the package."""
    root = Path(__file__).parents[2]
    assert f'version = "{VERSION}"' in (root / "pyproject.toml").read_text()
    assert elenco("--version").stdout.startswith(f"elenco {VERSION} ")


def test_module_runs_like_the_command(elenco: Run, place: Path) -> None:
    """`python -m runtime.cli` is the same program."""
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "runtime.cli", "--version"], capture_output=True, text=True, cwd=place, check=False
    )
    assert f"elenco {VERSION} " in done.stdout


SLIPS = {
    "rum": ("unknown command 'rum'; did you mean 'run' or 'runs'?", "rum", "x"),
    "letter": ("unknown command 'rn'; did you mean 'run' or 'runs'?", "rn"),
    "no such flag": ("error: unknown flag '--model'  (elenco runs --help)", "runs", "--model", "x"),
    "flag": ("unknown flag '--max-stps'; did you mean '--max-steps'?", "run", "x", "--max-stps", "3"),
    "provider": (
        "unknown provider 'antropic' in --model; did you mean 'anthropic'?",
        *("run", "x", "--model", "antropic/claude"),
    ),
    "no slash": ("write PROVIDER/MODEL; did you mean 'anthropic/NAME'?", "run", "x", "--model", "anthropic"),
    "offline": ("unknown model 'offline/other'", "run", "x", "--model", "offline/other"),
    "script": ("cannot read the script nope.yaml", "run", "x", "--model", "scripted/nope.yaml"),
    "key": ("export ANTHROPIC_API_KEY=…   or try without one", "run", "x", "--model", "anthropic/x"),
    "agent": ("unknown agent 'writr'; did you mean 'writer'?", "run", "writr", "x"),
    "no task": ("give a task", "run"),
    "agent alone": ("give writer a task", "run", "writer"),
    "empty task": ("the task is empty", "run", " "),
    "quotes": ('put the task in quotes: elenco run "What does it do"', "run", "What", "does", "it", "do"),
    "task alone": ('a task needs its command: elenco run "What does', "What does this do?"),
    "limit": ("--max-steps must be a number, not 'many'", "run", "x", "--max-steps", "many"),
    "plus": ("+N is for elenco resume", "run", "x", "--max-steps", "+3"),
    "zero": ("--max-steps must be a whole number of at least 1", "run", "x", "--max-steps", "0"),
    "rule": ("the closing ')' is missing", "run", "x", "--allow", "write_file(docs"),
    "wire": ("'openai'; did you mean 'openai-chat' or 'openai-responses'?", "run", "x", "--wire", "openai"),
    "base url": ("--base-url needs the model's name", "run", "x", "--base-url", "http://127.0.0.1:1/v1"),
    "workspace": ("the workspace /nowhere/at/all does not exist", "run", "x", "--workspace", "/nowhere/at/all"),
    "run id": ("no run 'zzzz' in ", "show", "zzzz"),
    "missing run": ("give RUN", "approve"),
    "family": ("unknown family 'gard'; did you mean 'guard'?", "debug", "gard"),
    "chat": ("unknown agent 'writr'; did you mean 'writer'?", "chat", "writr"),
    "chat model": ("unknown provider 'antropic' in --model", "chat", "--model", "antropic/claude", "--plain"),
    "chat limit": ("--max-steps must be a number, not 'many'", "chat", "--resume", "zzzz", "--max-steps", "many"),
    "chat run": ("no run 'zzzz' in ", "chat", "--resume", "zzzz"),
    "price": (
        "cost_budget cannot be kept: no price is known for server/foo; give one under 'models:'",
        *("run", "x", "--cost-budget", "1", "--base-url", "http://127.0.0.1:1/v1", "--model", "foo"),
    ),
    "server": ("--mcp way: no MCP server has that name  (elenco mcp list)", "run", "x", "--mcp", "way"),
    "record": ("--record /dev/null/x: /dev/null is no folder", "run", "x", "--record", "/dev/null/x"),
    "chat server": ("--no-mcp way: no MCP server has that name", "chat", "--plain", "--no-mcp", "way"),
    "chat output": ("--output /nowhere/x: there is no folder /nowhere", "chat", "--output", "/nowhere/x"),
    "tools": ("unknown agent 'writr'", "tools", "--agent", "writr"),
    "file": ("there is no file agents/none.md", "check", "agents/none.md"),
    "too much": ("one word too many: 'b'", "show", "a", "b"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_slip_costs_one_clear_line(elenco: Run, slip: str) -> None:
    """A typing mistake gets exit 2 and one to four lines on stderr that name the cure; nothing is started."""
    expected, *words = SLIPS[slip]
    done = elenco(*words)
    assert 2 == done.returncode
    assert "" == done.stdout
    assert expected in done.stderr
    assert 1 <= len(done.stderr.rstrip("\n").split("\n")) <= 4
    assert "Traceback" not in done.stderr


def test_slip_makes_no_run(elenco: Run, place: Path) -> None:
    """After a slip there is no run in the list."""
    elenco("run", "x", "--model", "antropic/claude")
    assert "" == elenco("runs").stdout


READING = [
    "runs",
    "runs --check",
    "runs --json",
    "show zzzz",
    "tail zzzz",
    "limits zzzz",
    "memory",
    "skills",
    "models",
    "agents",
    "tools",
    "tools --agent writer",
    "check",
    "mcp",
    "doctor",
    "trust --show",
]


@pytest.mark.parametrize("words", READING)
def test_who_only_looks_makes_no_state_folder(elenco: Run, place: Path, words: str) -> None:
    """A command that only reads makes nothing: where there is no state folder, there are no runs yet."""
    done = elenco(*words.split(), "--state", str(place / "none"), state=False)
    assert "Traceback" not in done.stderr
    assert (2 if "zzzz" in words else 0) == done.returncode
    assert not (place / "none").exists()
    assert [] == list((place / "home").iterdir())


HEAVY = ("trio", "httpx", "mcp", "rich", "textual", "runtime.agent", "runtime.journal.durable", "runtime.wire.encoder")


IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}
QUICK = [
    "rum",
    "flag",
    "provider",
    "agent",
    "limit",
    "rule",
    "run id",
    "file",
    "tools",
    "chat",
    "chat model",
    "chat limit",
    "chat run",
    "price",
    "server",
    "record",
]


@pytest.mark.parametrize("slip", QUICK)
def test_slip_loads_nothing_slow(elenco: Run, slip: str) -> None:
    """A slip is told before anything slow is imported: that is what makes it quick on any machine."""
    loaded = loaded_by(elenco(*SLIPS[slip][1:], env=IMPORTS))
    assert "runtime.errors" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_summary_model_nobody_knows_is_a_quick_slip_and_a_fault_with_its_place(elenco: Run, place: Path) -> None:
    """A mistyped `context.summary_model` is refused before anything loads; check points at it."""
    (place / "ws" / "elenco.yaml").write_text("context:\n  summary_model: antropic/x\n")
    refused = elenco("run", "x", env=IMPORTS)
    told = "unknown provider 'antropic'; did you mean 'anthropic'?"
    assert f"error: elenco.yaml: context.summary_model: {told}" in refused.stderr
    assert (2, True) == (refused.returncode, loaded_by(refused).isdisjoint(HEAVY))
    assert f"elenco.yaml:2:18: {told}" in elenco("check").stdout


def test_a_run_that_is_completed_is_told_before_its_going_on_loads(elenco: Run) -> None:
    """Who resumes a completed run is told so from its record alone."""
    elenco("run", "Hello")
    (run,) = (json.loads(line)["id"] for line in elenco("runs", "--json").stdout.splitlines())
    refused = elenco("resume", run, env=IMPORTS)
    assert f"run {run} is completed" in refused.stderr
    assert loaded_by(refused).isdisjoint(("httpx", "mcp", "rich", "textual", "runtime.app", "runtime.agent"))


def loaded_by(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The modules that a command has loaded, all told."""
    return {line.rpartition("|")[2].strip() for line in done.stderr.split("\n") if line.startswith("import time:")}


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",)])
def test_first_screen_and_help_load_nothing_slow(elenco: Run, words: tuple[str, ...]) -> None:
    """Help and the first screen do with the standard library, attrs and a few small modules."""
    assert loaded_by(elenco(*words, state=False, env=IMPORTS)).isdisjoint((*HEAVY, "yaml", "runtime.definitions"))


def test_flags_may_stand_between_the_words(elenco: Run) -> None:
    """`elenco run AGENT --flag N TASK` is read like any other order."""
    done = elenco("run", "writr", "--max-steps", "3", "x")
    assert "unknown agent 'writr'" in done.stderr
