"""Agents that talk to each other, through the command: what a file allows, what is seen, what a record holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeAlias

Run: TypeAlias = Callable[..., CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]

FILES = {
    "lead": "tools: [list_files]\nsubagents: [scribe, scout]",
    "scout": "tools: [list_files]\ntalks_to: [scribe]",
    "scribe": "tools: [list_files]",
}
SCRIPT = """\
lead:
  - calls: [{name: start_scribe, arguments: {task: write}}, {name: start_scout, arguments: {task: look}}]
  - {text: they work, stall: 0.1}
  - {text: one has ended, repeat: 1}
  - {text: all done}
scout:
  - {calls: [{name: message_scribe, arguments: {text: the gate is shut}}], stall: 0.5}
  - {text: told}
scribe:
  - {calls: [{name: list_files, arguments: {}}], stall: 2}
  - {text: written}
"""


def test_a_message_goes_from_one_agent_to_another_at_work(
    elenco: Run, place: Path, script: Script, record: Record
) -> None:
    """The tool is listed for who may use it, the words are on record as sent and received, and the run completes."""
    (place / "ws" / "agents").mkdir(exist_ok=True)
    for name, keys in FILES.items():
        text = f"---\nname: {name}\ndescription: Works.\n{keys}\n---\nYou work.\n"
        (place / "ws" / "agents" / f"{name}.md").write_text(text)
    listed = elenco("tools", "--agent", "scout").stdout
    assert "message_scribe  idempotent  runs" in " ".join(listed.split("\n")).replace("   ", "  ")
    assert "message_" not in elenco("tools", "--agent", "scribe").stdout
    assert 0 == elenco("check").returncode
    done = elenco("run", "lead", "go", "--model", script(SCRIPT), "--no-input")
    assert 0 == done.returncode, done.stderr
    assert "> scout-1 to scribe-1: the gate is shut" in done.stderr
    run = done.stderr.rsplit("elenco show ", 1)[1].strip()
    events = record(run)
    (sent,) = [event for event in events if event["type"] == "message.sent" and event["kind"] == "message"]
    (got,) = [event for event in events if event["type"] == "message.received" and event["id"] == sent["id"]]
    assert ("lead/scout-1", "lead/scribe-1", "the gate is shut") == (sent["actor"], got["actor"], got["text"])
    assert "the gate is shut" in elenco("show", run).stdout
