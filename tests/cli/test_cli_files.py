"""Agent files and settings from outside: faults with their place, the starter, what an agent really gets."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

GOOD = "---\nname: poet\ndescription: Writes verse.\ntools: [read_file]\n---\nWrite.\n"


def agent(place: Path, text: str, name: str = "poet") -> Path:
    file = place / "ws" / "agents" / f"{name}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


FAULTS = {
    "unknown key": (
        "---\nname: poet\ndescription: x\nmodle: openai/x\n---\nx\n",
        "agents/poet.md:4:1: unknown key 'modle'; did you mean 'model'?\n   4 | modle: openai/x\n     | ^^^^^\n",
    ),
    "no front matter": ("Just write.\n", "agents/poet.md:1:1: an agent file begins with front matter"),
    "not closed": ("---\nname: poet\n", "agents/poet.md:1:1: the line '---' that ends the front matter is missing"),
    "bad yaml": (
        "---\nname: [poet\n---\nx\n",
        "agents/poet.md:2:7: not valid YAML: this [ is not closed\n   2 | name: [poet\n     |       ^\n",
    ),
    "missing": ("---\nname: poet\n---\nx\n", "description missing: one line that the parent's model reads"),
    "unknown tool": (
        GOOD.replace("read_file", "read_fil"),
        "agents/poet.md:4:9: unknown tool 'read_fil'; did you mean 'read_file'?\n"
        "   4 | tools: [read_fil]\n     |         ^^^^^^^^\n",
    ),
    "unknown subagent": (
        GOOD.replace("tools:", "subagents: [researchr]\ntools:"),
        "agents/poet.md:4:13: unknown agent 'researchr'; did you mean 'researcher'?\n",
    ),
    "unknown provider": (
        GOOD.replace("tools:", "model: antropic/x\ntools:"),
        "agents/poet.md:4:8: unknown provider 'antropic'; did you mean 'anthropic'?",
    ),
    "bad rule": (
        GOOD.replace("tools:", 'permissions: {deny: ["write_file(x"]}\ntools:'),
        "agents/poet.md:4:22: rule 'write_file(x': the closing ')' is missing\n",
    ),
    "bad guard": (GOOD.replace("tools:", "loops: {nudge: 9, block: 2}\ntools:"), "agents/poet.md:4:8: "),
    "wrong type": (GOOD.replace("tools:", "max_steps: many\ntools:"), "agents/poet.md:4:12: max_steps: expected a"),
    "control characters": (
        GOOD.replace("tools:", '"mod\\u001ble\x0b": 1\ntools:').replace("\x0b", ""),
        "agents/poet.md:4:1: unknown key 'mod\\x1ble'",
    ),
}  # fmt: skip


def name_of(fault: str) -> str:
    return f"poet-{list(FAULTS).index(fault)}"


@pytest.fixture(scope="module")
def checked(module_elenco: Run, module_place: Path) -> subprocess.CompletedProcess[str]:
    """One look at a folder in which every file has a fault of its own."""
    for fault, (content, _) in FAULTS.items():
        agent(module_place, content, name_of(fault))
    return module_elenco("check")


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_shown_with_its_place(checked: subprocess.CompletedProcess[str], fault: str) -> None:
    """check prints every fault on stdout, the line and a caret below it, and exits with 2."""
    assert 2 == checked.returncode
    assert FAULTS[fault][1].replace("poet.md", f"{name_of(fault)}.md") in checked.stdout
    assert f"{len(FAULTS)} files checked: {len(FAULTS)} faults" in checked.stderr
    assert "\x1b" not in checked.stdout


@pytest.mark.parametrize("fault", ["unknown key", "unknown tool", "unknown provider", "bad rule"])
def test_run_refuses_a_faulty_agent_in_the_same_words(elenco: Run, place: Path, fault: str) -> None:
    """run tells the fault as check does, on stderr in at most four lines, and starts nothing."""
    content, expected = FAULTS[fault]
    agent(place, content)
    refused = elenco("run", "poet", "Write")
    assert (2, "", True) == (refused.returncode, refused.stdout, expected in refused.stderr), refused.stderr
    assert "\n1 fault; nothing was started (elenco check)\n" in refused.stderr
    assert len(refused.stderr.split("\n")) <= 5


MANY = """---
name: poet
description: x
max_steps: 0
tools: [read_fil]
model: antropic/x
permissions: {allow: ["write_file(x"], den: [shell]}
output: {retries: 99, schema: {type: nope}}
loops: {nudge: 9, block: 2}
---
x {workspce}
"""


def test_one_fault_of_an_agent_hides_no_other(elenco: Run, place: Path) -> None:
    """A value that is out of bounds and names nobody knows are told together, each once, by check and by run."""
    agent(place, MANY)
    places = ["4:12", "5:9", "6:8", "7:23", "7:40", "8:19", "8:38", "9:8"]
    done = elenco("check")
    assert [*places, "11:3"] == re.findall(r"^agents/poet\.md:(\d+:\d+): ", done.stdout, re.MULTILINE)
    assert "1 file checked: 8 faults, 1 warning\n" == done.stderr
    refused = elenco("run", "poet", "Write")
    assert places[:5] == re.findall(r"^agents/poet\.md:(\d+:\d+): ", refused.stderr, re.MULTILINE)
    assert "8 faults (3 more not shown); nothing was started" in refused.stderr


def test_faults_of_a_subagent_are_told_together(elenco: Run, place: Path) -> None:
    """A subagent that cannot be used is told with all its faults when its parent is asked for."""
    agent(place, MANY)
    agent(place, GOOD.replace("poet", "boss").replace("tools:", "subagents: [poet]\ntools:"), "boss")
    refused = elenco("run", "boss", "Write")
    assert "agents/poet.md:5:9: unknown tool 'read_fil'" in refused.stderr
    assert "8 faults (3 more not shown); nothing was started" in refused.stderr


def test_a_near_miss_of_a_placeholder_is_a_warning(elenco: Run, place: Path) -> None:
    """Braces that are nearly a name to fill in are told at their place, once; all other braces are text."""
    agent(
        place,
        f"{GOOD}{{workspce}} {{ date }} {{Tools}} {{workspce}}\n{{date}} {{other}} {{path}} {{'a': 1}} {{}} {{x\n",
    )
    done = elenco("check")
    told = re.findall(r"warning: (.*)", done.stdout)
    assert [
        "'{workspce}' stays as it is; did you mean '{workspace}'?",
        "'{ date }' stays as it is; did you mean '{date}'?",
        "'{Tools}' stays as it is; did you mean '{tools}'?",
    ] == told
    assert (0, "1 file checked: 3 warnings\n") == (done.returncode, done.stderr)


def test_an_agent_is_not_called_as_its_file(elenco: Run, place: Path) -> None:
    """Who asks for an agent by its file's name is told what it is called, with a task and without one."""
    agent(place, GOOD, "verse")
    for words in (("run", "verse"), ("run", "verse", "Write"), ("tools", "--agent", "verse"), ("serve-mcp", "verse")):
        done = elenco(*words)
        assert (2, "") == (done.returncode, done.stdout)
        assert "error: unknown agent 'verse'; the agent in agents/verse.md is called 'poet'" in done.stderr


def test_all_faults_of_all_files_are_listed_in_order(elenco: Run, place: Path) -> None:
    """Two agent files and the settings, each with faults: check lists them all, by file and line, warnings as such."""
    agent(place, "---\nname: a\ndescription: x\nbad: 1\nworse: 2\n---\nx\n", "a")
    agent(place, "---\nname: b\ndescription: x\n---\nx\n", "b")
    (place / "ws" / "elenco.yaml").write_text(
        "model: opnai/x\npermissions: {allow: ['shell(']}\nmodels: {x: {input: 1}}\nlimit: {}\n"
    )
    done = elenco("check")
    heads = [line.split(" ")[0] for line in done.stdout.split("\n") if ":" in line and not line.startswith(" ")]
    assert ["agents/a.md:4:1:", "agents/a.md:5:1:", "agents/b.md:2:1:", "elenco.yaml:4:1:"] == heads
    assert "agents/b.md:2:1: warning: no key 'tools': this agent gets no tools" in done.stdout
    (place / "ws" / "elenco.yaml").write_text(
        "model: opnai/x\npermissions: {allow: ['shell(']}\nmodels: {x: {input: 1}}\n"
    )
    done = elenco("check", "elenco.yaml")
    heads = [line.split(" ")[0] for line in done.stdout.split("\n") if line.startswith("elenco.yaml")]
    assert ["elenco.yaml:1:8:", "elenco.yaml:2:23:", "elenco.yaml:3:10:"] == heads
    assert 2 == done.returncode


def test_warnings_alone_are_no_reason_to_fail(elenco: Run, place: Path) -> None:
    """A file without tools is a warning; check exits with 0."""
    agent(place, "---\nname: b\ndescription: x\n---\nx\n", "b")
    done = elenco("check", "agents")
    assert (0, "1 file checked: 1 warning\n") == (done.returncode, done.stderr)


def test_key_that_is_missing_is_no_fault_of_the_file(elenco: Run, place: Path) -> None:
    """check tells that a key is missing and calls the file good: the key may be set where it runs."""
    agent(place, GOOD.replace("tools:", "model: anthropic/claude-x\ntools:"))
    done = elenco("check")
    assert (0, "") == (done.returncode, done.stdout)
    assert "agents/poet.md: no key for anthropic: export ANTHROPIC_API_KEY=…" in done.stderr


def test_file_that_cannot_be_read_is_a_fault_not_a_gap(elenco: Run, place: Path) -> None:
    """Bytes that are no UTF-8 text are told with their line, by check and by run."""
    agent(place, GOOD).write_bytes(GOOD.encode() + b"\xff\n")
    assert "agents/poet.md:7:1: not UTF-8 text; save the file as UTF-8" in elenco("check").stdout
    assert "agents/poet.md:7:1: not UTF-8 text" in elenco("run", "poet", "x").stderr


def test_faulty_agent_nobody_asked_for_stops_nothing(elenco: Run, place: Path) -> None:
    """Another file's fault does not keep a run from its own agents; the list tells of it."""
    agent(place, "nothing")
    assert 0 == elenco("run", "How are words split?", "--quiet").returncode
    assert "✗ 1 fault: elenco check" in elenco("agents").stdout


def test_faulty_settings_stop_every_run(elenco: Run, place: Path) -> None:
    """Settings with a fault are never ignored: permissions could fall away unseen."""
    (place / "ws" / "elenco.yaml").write_text("permissons: {deny: [write_file]}\n")
    done = elenco("run", "x")
    assert 2 == done.returncode
    assert "elenco.yaml:1:1: unknown key 'permissons'; did you mean 'permissions'?\n" in done.stderr
    assert "  model    unknown   the settings have a fault: elenco check" in elenco(state=False).stdout


@pytest.mark.parametrize("command", ["run", "check"])
def test_settings_faults_beyond_their_syntax_are_told_with_their_place(elenco: Run, place: Path, command: str) -> None:
    """A rule for a tool nobody knows, a price that is none, a ladder that falls: a run stops as the check does."""
    (place / "ws" / "elenco.yaml").write_text(
        "permissions: {deny: [writ_file, delegate_to_writer]}\nmodels: {lab/a: {input: cheap}}\nloops: {stop: 2}\n"
    )
    done = elenco(*((command, "x") if command == "run" else (command,)))
    said = done.stderr if command == "run" else done.stdout
    assert 2 == done.returncode
    assert "elenco.yaml:1:22: rule 'writ_file': unknown tool 'writ_file'; did you mean 'write_file'?\n" in said
    assert "elenco.yaml:2:10: models.lab/a.input: must be USD per million tokens, not 'cheap'\n" in said
    assert "elenco.yaml:3:8: loops: nudge, block and stop must rise" in said
    assert "3 faults" in done.stderr
    assert "offline/extract" not in done.stderr


def test_check_knows_the_tools_no_file_names(elenco: Run, place: Path) -> None:
    """Rules may begin with the ways to subagents, kept results and the tools of an MCP server that is named."""
    (place / "ws" / "elenco.yaml").write_text("mcpServers: {time: {command: clock}}\npermissions: {deny: [time_now]}\n")
    rules = "permissions: {deny: [delegate_to_writer, start_writer, read_result, time_now]}\n"
    agent(place, GOOD.replace("tools:", f"subagents: [writer]\n{rules}tools:"))
    done = elenco("check")
    assert (0, "") == (done.returncode, done.stdout)


def test_the_loop_guard_of_the_settings_counts_under_an_agents_own(elenco: Run, place: Path) -> None:
    """`loops` in the settings stops an agent whose file says nothing of it; what a file says comes first."""
    ws = place / "ws"
    (ws / "elenco.yaml").write_text("loops: {nudge: 2, block: 2, stop: 3}\n")
    again = "- {calls: [{name: read_file, arguments: {path: README.md}}], repeat: 5}\n"
    (ws / "again.yaml").write_text(f"poet:\n{again}- text: done\n")
    agent(place, GOOD)
    run = ("run", "poet", "x", "--model", "scripted/again.yaml")
    done = elenco(*run)
    assert 3 == done.returncode, done.stderr
    assert "same call, same result, 2 times: refused from now on" in done.stderr
    agent(place, GOOD.replace("tools:", "loops: off\ntools:"))
    assert 0 == elenco(*run).returncode
    agent(place, GOOD.replace("tools:", "loops: {nudge: 5}\ntools:"))
    done = elenco(*run)
    assert 2 == done.returncode
    assert "agents/poet.md:1:1: with the loops of elenco.yaml: loops: nudge, block and stop must rise" in done.stderr
    assert "loops.stop elenco.yaml 3" in " ".join(elenco("check", "--effective").stdout.split())


def test_agents_lists_everybody_with_their_origin(elenco: Run, place: Path) -> None:
    """The list has own and shipped agents; one that is covered by another of its name is told."""
    agent(place, GOOD.replace("poet", "writer"), "mine")
    done = elenco("agents")
    assert 0 == done.returncode
    rows = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[1:]}
    assert ("agents/mine.md", "shipped:agents/researcher.md") == (rows["writer"], rows["researcher"])
    assert "not used: shipped:agents/writer.md, for agents/mine.md comes first" in done.stderr
    data = [json.loads(line) for line in elenco("agents", "--json").stdout.splitlines()]
    assert ("workspace", ["read_file"]) == (data[0]["from"], data[0]["tools"])


def test_tools_tells_what_an_agent_really_gets(elenco: Run, place: Path) -> None:
    """Per tool: what becomes of a call, by which rule, patterns on it, and what changes below a stricter parent."""
    agent(place, GOOD.replace("[read_file]", "[read_file, write_file]\npermissions: {allow: [write_file(docs/**)]}"))
    agent(
        place,
        "---\nname: boss\ndescription: x\ntools: []\nsubagents: [poet]\npermissions: {deny: [read_file]}\n---\nx\n",
        "boss",
    )
    assert 0 == elenco("trust").returncode
    done = elenco("tools", "--agent", "poet", "--deny", "write_file(secret/**)")
    assert 0 == done.returncode
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "read_file none runs reads inside the workspace (built-in)" in lines
    assert "is refused under boss: deny: read_file (ceiling: agents/boss.md)" in lines
    assert "write_file idempotent asks everything else asks (built-in)" in lines
    assert "but deny: write_file(secret/**) flag" in lines
    assert "but allow: write_file(docs/**) agents/poet.md" in lines
    verdicts = {
        each["name"]: each["verdict"]
        for each in map(json.loads, elenco("tools", "--agent", "poet", "--yes", "--json").stdout.splitlines())
    }
    assert {"read_file": "allow", "write_file": "allow", "read_result": "allow"} == verdicts
    assert "plan" not in elenco("tools", "--agent", "poet").stdout
    assert "is refused nothing is changed while planning" in " ".join(
        elenco("tools", "--agent", "poet", "--mode", "plan").stdout.split()
    )


def test_tools_shows_children_under_what_binds_them(elenco: Run, place: Path) -> None:
    """Everyone an agent may set to work is shown with its tools under the ceiling of all above it, before any run."""
    parent = "---\nname: {}\ndescription: x\ntools: [read_file]\nsubagents: [{}]\npermissions: {{{}}}\n---\nx\n"
    agent(place, parent.format("boss", "chief", 'deny: ["write_file(secret/**)"]'), "boss")
    agent(place, parent.format("chief", "poet", "ask: [read_file]"), "chief")
    agent(place, GOOD.replace("[read_file]", "[read_file, write_file]\npermissions: {allow: [write_file]}"))
    assert 0 == elenco("trust").returncode
    shown = elenco("tools", "--agent", "boss").stdout.split("\n\n")
    assert ["boss ", "boss > chief ", "boss > chief > poet "] == [part.split("  ")[0] + " " for part in shown[::2]]
    poet = [" ".join(line.split()) for line in shown[-1].splitlines()]
    assert "read_file none asks ask: read_file (ceiling: agents/chief.md)" in poet
    assert "write_file idempotent runs allow: write_file (own: agents/poet.md)" in poet
    assert "but deny: write_file(secret/**) agents/boss.md" in poet
    lines = [json.loads(line) for line in elenco("tools", "--agent", "boss", "--json").stdout.splitlines()]
    verdicts = {each["name"]: each["verdict"] for each in lines if each.get("actor") == "boss/chief/poet"}
    assert {"read_file": "ask", "write_file": "allow", "read_result": "allow"} == verdicts


def test_check_tells_what_counts_in_the_end(elenco: Run, place: Path) -> None:
    """--effective names each value with who said it: the tightest limit, every rule, and what each agent may do."""
    agent(place, GOOD.replace("[read_file]", "[read_file, write_file]\nmax_steps: 7\ntoken_budget: 9000"))
    (place / "ws" / "elenco.yaml").write_text(
        "model: offline/extract\nlimits: {token_budget: 5000}\n"
        "permissions: {allow: [write_file], deny: [delete_file]}\n"
    )
    done = elenco("check", "--effective")
    assert 0 == done.returncode
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "model elenco.yaml offline/extract" in lines
    assert "deny elenco.yaml delete_file" in lines
    assert "limit agents/poet.md max_steps 7" in lines
    assert "limit elenco.yaml token_budget 5000" in lines
    assert "as a child agents/poet.md token_budget 9000" in lines
    assert "limit default timeout 600" in lines
    assert "asks elenco tools --agent poet write_file" in lines
    assert "1 allow rule of its files left out" in done.stdout
    assert 0 == elenco("trust").returncode
    assert "allow elenco.yaml write_file" in " ".join(elenco("check", "--effective").stdout.split())
    (place / "ws" / "elenco.yaml").write_text("model: 3\n")
    assert "cannot be told" in elenco("check", "--effective").stdout


def test_tools_alone_lists_all_of_them(elenco: Run) -> None:
    """Without an agent: every tool, what it may change, what it is for."""
    done = elenco("tools")
    assert {"read_file", "write_file", "search_passages", "delegate_to_AGENT"} <= {
        line.split()[0] for line in done.stdout.splitlines()
    }


def test_init_makes_a_starter_that_works_and_never_overwrites(elenco: Run, place: Path) -> None:
    """init writes an agent and settings without a fault; a second init keeps what is there."""
    first = elenco("init", "cast")
    assert 0 == first.returncode
    assert "next: cd cast && elenco run hello" in first.stderr
    checked = elenco("check", cwd=place / "ws" / "cast")
    assert (0, "2 files checked: no fault\n") == (checked.returncode, checked.stderr)
    asked = elenco("run", "hello", "How are words split?", "--quiet", "--workspace", str(place / "ws" / "cast"))
    assert 0 == asked.returncode, asked.stderr
    (place / "ws" / "cast" / "elenco.yaml").write_text("limits: {max_steps: 5}\n")
    second = elenco("init", "cast")
    assert (0, 2) == (second.returncode, second.stderr.count("(it was there)"))
    assert "limits: {max_steps: 5}\n" == (place / "ws" / "cast" / "elenco.yaml").read_text()


def test_doctor_groups_its_findings_and_says_what_it_did_not_look_at(elenco: Run, place: Path) -> None:
    """doctor names Python, state, model, terminal and confinement, how to connect a model, and its own limits."""
    done = elenco("doctor")
    assert (0, "") == (done.returncode, done.stderr)
    for words in (
        "Python      ✓ ",
        "State       ✓ ",
        "Model       ⚠ none configured",
        "Terminal    ⚠ ",
        "Confinement ",
    ):
        assert f"\n{words}" in f"\n{done.stdout}"
    assert "connect one: export ANTHROPIC_API_KEY=…" in done.stdout
    assert "\nNot looked at: " in done.stdout
    assert [] == list((place / "state").iterdir())
    bad = elenco("doctor", "--state", "parse.py/state", state=False)
    assert 1 == bad.returncode
    assert f"✗ {place}/ws/parse.py/state cannot be written" in bad.stdout


def test_debug_answers_line_by_line(elenco: Run) -> None:
    """debug reads JSON lines and answers each, in order; an unusable line is exit 2."""
    cases = '{"id": "a", "schema": {"type": "object"}}\n{"id": "b", "schema_text": "{"}\n'
    done = elenco("debug", "schema", input=cases)
    assert 0 == done.returncode
    assert ["a", "b"] == [json.loads(line)["id"] for line in done.stdout.splitlines()]
    step = '{"i": 0, "agent": "a", "at": 0, "calls": []}\n'
    assert "ok\nok\n" == elenco("debug", "guard", input=step * 2).stdout
    assert 2 == elenco("debug", "guard", input="nonsense\n").returncode
    assert os.linesep == "\n"


@pytest.mark.parametrize("flag", ["--allow", "--ask", "--deny"])
def test_a_flags_rule_for_a_tool_nobody_knows_is_refused(elenco: Run, place: Path, flag: str) -> None:
    """A mistyped rule would bind nothing, so the run does not start."""
    agent(place, GOOD)
    done = elenco("run", "poet", "sing", flag, "writ_file(docs/**)")
    assert 2 == done.returncode
    assert "unknown tool 'writ_file'; did you mean 'write_file'?" in done.stderr
    assert not list(place.rglob("journal.db"))
