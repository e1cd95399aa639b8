"""Plugins as installed packages: what they add counts everywhere, and a broken one is one clear line."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TypeAlias

import pytest

Run: TypeAlias = Callable[..., CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]

PLUGIN = """
    from runtime.messages import Text
    from runtime.model import Reply
    from runtime.tools import tool


    @tool(effects="none")
    def fortune(topic: str) -> str:
        '''Tell a fortune.'''
        return f"{topic}: all will be well"


    class Parrot:
        name = "parrot"

        async def complete(self, request, emit):
            return Reply((Text(f"parrot says {request.model}"),), "stop")

        def count(self, request):
            return None

        def forget(self, actor):
            pass


    def greet(words):
        print("hello", *words)
        return 7 if words == ["seven"] else None


    def no_sevens(event):
        if event["tool_input"].get("topic") == "seven":
            return {"decision": "deny", "reason": "sevens are unlucky"}


    def register(plugin):
        plugin.tool(fortune)
        plugin.provider("parrot", Parrot())
        plugin.command("greet", greet, "Say hello.")
        plugin.hook("before_tool", no_sevens, matcher="fortune")
"""
AGENT = "---\nname: seer\ndescription: Sees.\ntools: [fortune]\n---\nSee.\n"


def install(folder: Path, name: str, source: str) -> dict[str, str]:
    """Put a package where Python finds it; the environment in which it does."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_module.py").write_text(textwrap.dedent(source))
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[elenco.plugins]\n{name} = {name}_module:register\n")
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def env(place: Path) -> dict[str, str]:
    (place / "ws" / "agents").mkdir()
    (place / "ws" / "agents" / "seer.md").write_text(AGENT)
    return install(place / "site", "omens", PLUGIN)


def test_a_plugins_tool_is_one_like_the_others(elenco: Run, place: Path, script: Script, env: dict[str, str]) -> None:
    """A plugin's tool is known to agent files, the list and the check, and runs; without the plugin it is unknown."""
    model = script("""
        seer:
          - calls: [{name: fortune, arguments: {topic: rain}}, {name: fortune, arguments: {topic: seven}}]
          - text: seen
    """)
    done = elenco("run", "seer", "look", "--model", model, "--json", env=env)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    results = [event["result"] for event in events if event["type"] == "tool.finished"]
    assert 0 == done.returncode, done.stderr
    refused = "refused by the hook: plugin omens: no_sevens: sevens are unlucky"
    assert sorted(["rain: all will be well", refused]) == sorted(results)
    assert 0 == elenco("check", env=env).returncode
    assert "fortune" in elenco("tools", env=env).stdout
    assert re.search(r"^fortune +none +runs ", elenco("tools", "--agent", "seer", env=env).stdout, re.MULTILINE)
    without = elenco("run", "seer", "look", "--model", model)
    assert 2 == without.returncode
    assert "unknown tool 'fortune'" in without.stderr


def test_a_plugins_provider_answers(elenco: Run, env: dict[str, str]) -> None:
    """A plugin's provider is named like every other."""
    done = elenco("run", "seer", "look", "--model", "parrot/grey", env=env)
    assert (0, "parrot says grey\n") == (done.returncode, done.stdout), done.stderr


def test_a_plugins_command_is_run(elenco: Run, env: dict[str, str]) -> None:
    """A plugin's command gets the words after its name and gives the exit code."""
    done = elenco("greet", "you", "there", env=env)
    assert (0, "hello you there\n") == (done.returncode, done.stdout)
    assert 7 == elenco("greet", "seven", env=env).returncode
    assert 2 == elenco("gret", env=env).returncode


def test_doctor_lists_plugins(elenco: Run, env: dict[str, str]) -> None:
    """The doctor lists each plugin with its package and what it adds."""
    shown = elenco("doctor", env=env).stdout
    assert "omens (omens 1.2): tools fortune; providers parrot; commands greet; hooks at before_tool" in shown


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import no_such_module\n", "bad_module:register raised ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit('no licence')\n", "bad_module:register raised SystemExit: no licence"),
        ("def register(plugin):\n    plugin.hook('before_tol', print)\n", "there is no event before_tol"),
        (
            "from runtime.tools import tool\n@tool\ndef read_file(path: str) -> str:\n    'Read.'\n    return ''\n"
            "def register(plugin):\n    plugin.tool(read_file)\n",
            "there is a tool read_file already",
        ),
    ],
)
def test_a_broken_plugin_is_one_clear_line(
    elenco: Run, place: Path, script: Script, env: dict[str, str], source: str, why: str
) -> None:
    """A plugin that cannot be loaded is one clear line, in runs and by the doctor; the others work."""
    install(place / "site", "bad", source)
    done = elenco("run", "seer", "look", "--model", "parrot/grey", env=env)
    assert (0, "parrot says grey\n") == (done.returncode, done.stdout)
    told = [line for line in done.stderr.splitlines() if "plugin bad is left out" in line]
    assert 1 == len(told)
    assert why in told[0]
    assert "Traceback" not in done.stderr
    assert why in elenco("doctor", env=env).stdout
