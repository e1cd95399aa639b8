"""Flags that could be dropped or mistaken without a word: each counts, or is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]

BOSS = "---\nname: boss\ndescription: Writes.\ntools: [write_file]\nsubagents: [writer]\n---\nYou write.\n"
WRITES = """\
boss:
  - calls: [{name: write_file, arguments: {path: out.txt, content: hello}}]
  - {text: done, repeat: 9}
"""


@pytest.fixture
def boss(place: Path, script: Script) -> str:
    """An agent that may write and does; the model it does it with."""
    (place / "ws" / "agents").mkdir(exist_ok=True)
    (place / "ws" / "agents" / "boss.md").write_text(BOSS)
    return script(WRITES)


def newest(elenco: Run) -> str:
    id: str = json.loads(elenco("runs", "--json").stdout.splitlines()[0])["id"]
    return id


def test_a_chat_that_takes_up_a_turn_heeds_its_flags(elenco: Run, place: Path, boss: str, record: Record) -> None:
    """A turn that waits to write, taken up with --yes and a deny rule, writes nothing; without the rule it does."""
    for rule, written in (("write_file(out.txt)", False), ("write_file(other.txt)", True)):
        assert 4 == elenco("run", "boss", "write", "--model", boss, "--no-input").returncode
        run = newest(elenco)
        words = ("chat", "--plain", "--resume", run, "--yes", "--deny", rule, "--max-steps", "7")
        done = elenco(*words, "--state", str(place / "state"), input="")
        assert 0 == done.returncode, done.stderr
        assert written == (place / "ws" / "out.txt").exists()
        (changed,) = [event for event in record(run) if event["type"] == "limits.changed"]
        assert 7 == changed["limits"]["max_steps"]


def test_a_follow_up_can_take_back_what_the_run_before_was_given(
    elenco: Run, place: Path, boss: str, record: Record
) -> None:
    """`--mode default` ends a plan, and the newer of --mcp and --no-mcp counts."""
    (place / "ws" / "elenco.yaml").write_text("mcpServers:\n  way: {command: no-such-program}\n")
    agent = place / "ws" / "agents" / "boss.md"
    agent.write_text(BOSS.replace("subagents", "mcps: [way]\nsubagents"))
    elenco("run", "boss", "plan", "--model", boss, "--mode", "plan", "--no-mcp", "way", "--no-input")
    first = newest(elenco)
    for flags, mode, mcp, no_mcp in (
        (("--mode", "default"), "default", [], ["way"]),
        (("--mcp", "way"), "plan", ["way"], []),
    ):
        elenco("run", "--continue", first, "go", "--no-input", *flags)
        options = record(newest(elenco))[0]["options"]
        assert (mode, mcp, no_mcp) == (options["mode"], options["mcp"], options["no_mcp"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "boss", "x", "--continue", ""), "--continue needs a value: '' is none, as of a variable"),
        (("run", "boss", "x", "--deny", ""), "--deny needs a value: '' is none"),
        (("run", "boss", "x", "--deny", "agent(writr)"), "unknown agent 'writr'; did you mean 'writer'?"),
        (("run", "boss", "x", "--deny", "mcp(way/echo)"), "way: no MCP server has that name"),
        (("run", "boss", "x", "--mcp", "a", "--no-mcp", "a"), "--mcp a and --no-mcp a: give one of them"),
        (("chat", "boss", "--plain", "--deny", "write_fil"), "unknown tool 'write_fil'; did you mean 'write_file'?"),
        (("chat", "boss", "--plain", "--detach"), "--detach is for the chat on a whole screen"),
        (("tools", "--deny", "shell"), "--deny needs an agent whose calls it is about"),
        (("tools", "--agent", "boss", "--deny", "write_fil"), "unknown tool 'write_fil'; did you mean 'write_file'?"),
        (("runs", "--prune", "--older-than", "nan"), "--older-than: a number of days, 0 or more"),
        (("trust", "--list", "--revoke"), "--list and --revoke do not go together"),
        (("trust", ".", "--workspace", "."), "two folders: . and --workspace"),
        (
            ("serve-mcp", "boss", "--base-url", "http://127.0.0.1:1/v1", "--model", "lab/m", "--cost-budget", "1"),
            "cost_budget cannot be kept: no price is known for lab/m",
        ),
    ],
)  # fmt: skip
def test_what_would_have_no_effect_is_refused(elenco: Run, boss: str, words: tuple[str, ...], why: str) -> None:
    """A value that is none, a name that nothing has, and flags that do not go together: exit 2 and one line."""
    refused = elenco(*words, input="")
    assert (2, "", True) == (refused.returncode, refused.stdout, why in refused.stderr), refused.stderr
    assert 1 == len(refused.stderr.splitlines())


def test_a_server_nobody_has_cannot_be_switched_on(elenco: Run, place: Path, boss: str) -> None:
    """--mcp of a server that stands in a file, but in no `mcps` of the run's agents, is a slip."""
    (place / "ws" / "elenco.yaml").write_text("mcpServers:\n  way: {command: no-such-program}\n")
    refused = elenco("run", "boss", "x", "--model", boss, "--mcp", "way")
    assert (2, True) == (
        refused.returncode,
        "--mcp way: it is in no `mcps:` of boss and all below it" in refused.stderr,
    )


def test_a_hook_that_is_for_no_tool_is_a_fault_with_its_place(elenco: Run, place: Path, boss: str) -> None:
    """A mistyped matcher would let pass what it is to stop: check and run refuse it, a pattern is taken."""
    settings = place / "ws" / "elenco.yaml"
    hook = 'hooks:\n  before_tool: {{matcher: "read_file|{}", command: "exit 2"}}\n'
    settings.write_text(hook.format("wirte_file"))
    told = "elenco.yaml:2:26: hook at before_tool: unknown tool 'wirte_file'; did you mean 'write_file'?"
    assert told in elenco("check").stdout
    refused = elenco("run", "boss", "x", "--model", boss)
    assert (2, True) == (refused.returncode, told in refused.stderr)
    settings.write_text(hook.format("write_*"))
    assert 0 == elenco("check").returncode


def test_arguments_of_an_approval_must_fit_the_tool(elenco: Run, boss: str, record: Record) -> None:
    """What a human puts in the place of a call's arguments is held against its tool before it is on record."""
    elenco("run", "boss", "write", "--model", boss, "--no-input")
    run = newest(elenco)
    refused = elenco("approve", run, "a1", "--arguments", '{"nonsense": 1}')
    assert 2 == refused.returncode
    assert "error: --arguments do not fit write_file:" in refused.stderr
    assert "path: is required" in refused.stderr
    edited = json.dumps({"path": "other.txt", "content": "hello"})
    assert 0 == elenco("approve", run, "a1", "--arguments", edited).returncode
    assert 1 == sum(event["type"] == "approval.decided" for event in record(run))


@pytest.mark.parametrize("scope", ["once", "run", "workspace"])
def test_an_edited_call_runs_as_edited_however_far_the_approval_reaches(
    elenco: Run, place: Path, boss: str, scope: str
) -> None:
    """What a human wrote in the place of the arguments is what runs after a resume, also where it allows more."""
    elenco("run", "boss", "write", "--model", boss, "--no-input")
    run = newest(elenco)
    edited = json.dumps({"path": "other.txt", "content": "edited"})
    assert 0 == elenco("approve", run, "a1", "--scope", scope, "--arguments", edited).returncode
    assert 0 == elenco("resume", run, "--no-input").returncode
    assert "edited" == (place / "ws" / "other.txt").read_text()
    assert not (place / "ws" / "out.txt").exists()


def test_what_a_human_refused_is_refused_however_the_run_goes_on(elenco: Run, place: Path, boss: str) -> None:
    """`resume --yes` allows what would ask; what somebody has said no to stays refused."""
    elenco("run", "boss", "write", "--model", boss, "--no-input")
    run = newest(elenco)
    assert 0 == elenco("deny", run, "a1", "--why", "not now").returncode
    assert 0 == elenco("resume", run, "--yes").returncode
    assert not (place / "ws" / "out.txt").exists()
    assert "refused by you: not now" in elenco("show", run).stdout


def test_json_of_what_is_changed(elenco: Run, boss: str) -> None:
    """--json gives a line for limits that are changed and for each run that would go; with it trust only shows."""
    elenco("run", "boss", "write", "--model", boss, "--no-input")
    run = newest(elenco)
    changed = json.loads(elenco("limits", run, "--max-steps", "+5", "--json").stdout)
    assert ("boss", 95, True) == (changed["actor"], changed["limits"]["max_steps"], changed["recorded"])
    elenco("cancel", run)
    elenco("resume", run)
    (gone,) = map(json.loads, elenco("runs", "--prune", "--keep", "0", "--json").stdout.splitlines())
    assert (run, True) == (gone["id"], gone["bytes"] > 0)
    shown = json.loads(elenco("trust", "--json").stdout.splitlines()[0])
    assert shown["workspace"]
    assert "no workspace is trusted" in elenco("trust", "--list").stderr
