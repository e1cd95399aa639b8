"""The screen over its real runtime process, driven by Textual's pilot."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.chat.screen.prompt import Prompt
from runtime.journal import index
from runtime.watch import Cancel
from runtime.watch.control import MOST_CONNECTIONS

if TYPE_CHECKING:
    from .conftest import Drive, Place, Screen, Serve

ELENCO = str(Path(sys.executable).with_name("elenco"))
EDITS = """
coordinator:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - text: "I write twice."
    calls:
      - {name: write_file, arguments: {path: a.txt, content: "changed\\n"}}
      - {name: write_file, arguments: {path: b.txt, content: "b"}}
  - text: |
      All is **done**.

      | a | b |
      |---|---|
      | 1 | 2 |
"""
TEAM = """
coordinator:
  - text: "I ask."
    calls: [{name: delegate_to_researcher, arguments: {task: "find x"}}]
  - text: "It is in a.txt."
    usage: {input: 900, output: 100}
researcher:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - stall: 600
    text: "x is there"
"""
OTHER = """
coordinator:
  - repeat: 9
    text: "Said by another model."
    usage: {input: 50, output: 5}
"""


def test_a_call_is_edited_another_refused_with_a_reason_and_taken_back(place: Place, drive: Drive) -> None:
    """An approval shows the diff; `e` edits it, any text refuses and reaches the model; /undo takes back the file."""

    async def steps(screen: Screen) -> None:
        await screen.say("write it")
        await screen.until("coordinator asks (a1)", "-two", "+changed", "type why not")
        await screen.say("q")
        await screen.until("'q' is no choice here")
        await screen.say("e")
        await screen.until("type it as it should be")
        await screen.say('{"path": "a.txt", "content": "mine\\n"}')
        await screen.until("a1 allowed as edited by you", "coordinator asks (a2)")
        await screen.say("write nothing but a.txt")
        await screen.until('a2 refused by you; coordinator reads: "write nothing but a.txt"', "All is **done**.")
        await screen.ready(1)
        assert "mine\n" == (place.workspace / "a.txt").read_text()
        await screen.say("/undo")
        await screen.until("restored a.txt")
        assert "one\ntwo\nthree\n" == (place.workspace / "a.txt").read_text()
        await screen.say("/export notes.md")
        await screen.until("written to")
        assert "All is **done**." in (place.workspace / "notes.md").read_text()
        await screen.say("/copy")
        await screen.until("given to the terminal's clipboard")
        assert "All is **done**." in screen.app.clipboard
        await screen.say("/rename my notes")
        await screen.until("is now called my notes")

    app = drive(steps, "--model", place.script(EDITS))
    (folder,) = place.runs()
    refused = [event for event in place.events(folder.id) if event["type"] == "tool.finished"][-1]
    assert "write nothing but a.txt" in refused["result"]
    assert [f"go on: elenco chat --resume {folder.id}"] == app.last_words()
    assert (app.fault, app.return_code or 0) == (None, 0)


def test_another_model_takes_over_within_a_turn_and_what_was_typed_waits(place: Place, drive: Drive) -> None:
    """/models switches the turn under way at its next request, on record; a prompt sent meanwhile waits for its end."""
    other = place.script(OTHER)

    async def steps(screen: Screen) -> None:
        await screen.say("where is x?")
        await screen.until("researcher-1  find x", "● working (2 agents)")
        await screen.say("and then?")
        await screen.until("⋯ and then?", "1 queued")
        await screen.say(f"/models {other}")
        await screen.until("coordinator   has changed: another model, which has cached nothing of this: scripted/")
        await screen.say("/say be quick")
        await screen.until("> you to coordinator: be quick")
        await screen.say("/budget max_steps +5")
        await screen.until("max_steps is 95 now")
        await screen.pilot.press("ctrl+t")
        await screen.until("nothing thought yet")
        await screen.say("/status")
        await screen.until("turns 1", "researcher-1", "queued: and then?")
        screen.app.session.ask(Cancel(actor="coordinator/researcher-1", by="you"))
        await screen.until("Said by another model.")
        await screen.ready(2)

    app = drive(steps, "--model", place.script(TEAM))
    first, second = (place.events(run) for run in app.session.turns)
    changed = [event for event in first if event["type"] == "model.changed"]
    assert [("", other), ("coordinator", other)] == [(event["actor"], event["model"]) for event in changed[:2]]
    asked = [
        event["model"] for event in first if event["type"] == "model.requested" and event["actor"] == "coordinator"
    ]
    assert other == asked[-1]
    assert asked[0] != other
    assert other == second[0]["model"]
    assert app.session.turns[0] == second[0]["continues"]


def test_conversations_are_named_branched_left_and_taken_up(place: Place, drive: Drive) -> None:
    """A name goes with its conversation; /fork branches, /new begins, /sessions goes back, --resume shows it."""
    script = place.script('coordinator: [{repeat: 9, text: "An answer."}]')

    async def steps(screen: Screen) -> None:
        await screen.say("one?")
        await screen.ready(1)
        await screen.say("/rename words")
        await screen.until("is now called words")
        await screen.say("two?")
        await screen.ready(2)
        named = screen.app.session.turns[1]
        row = index.row(place.state, named)
        assert row is not None
        assert "words" == row.name
        await screen.say("/fork 1")
        await screen.until("what you say next begins a branch")
        await screen.say("other?")
        await screen.ready(2)
        await screen.say("/new")
        await screen.until("a new conversation")
        await screen.say("new?")
        await screen.ready(1)
        await screen.say("/sessions words")
        await screen.until("two?", "one?")
        assert [named] == screen.app.session.turns[1:]
        await screen.say("/nothing")
        await screen.until("unknown command '/nothing'")

    app = drive(steps, "--model", script)
    one, two, other, new = (folder.id for folder in place.runs())
    assert [one, two] == app.session.turns
    started = {run: place.events(run)[0] for run in (one, two, other, new)}
    assert [None, one, one, None] == [event["continues"] for event in started.values()]

    async def again(screen: Screen) -> None:
        await screen.until("one?", "two?", "An answer.")
        await screen.pilot.press("up")
        await screen.pilot.press("up")
        await screen.when(lambda: "/sessions words" == screen.app.query_one(Prompt).text, "what was typed before")

    assert [one, two] == drive(again, "--model", script, resume=two).session.turns


def test_a_turn_left_half_way_is_finished_first(place: Place, drive: Drive) -> None:
    """Leaving within a turn keeps it as it stands, and says so; taking the conversation up finishes it."""
    script = place.script('coordinator: [{stall: 2, text: "At last."}]')

    async def leaves(screen: Screen) -> None:
        await screen.say("now?")
        await screen.until("● working")

    app = drive(leaves, "--model", script)
    (folder,) = place.runs()
    assert "run.finished" not in place.types(folder.id)
    assert app.last_words() == [
        f"the turn was left half-way, and is finished first   go on: elenco chat --resume {folder.id}"
    ]

    async def stays(screen: Screen) -> None:
        await screen.until("At last.", "completed   1 step")

    drive(stays, resume=folder.id)
    assert "run.finished" == place.types(folder.id)[-1]


def test_the_pages_beside_and_the_lists_are_there(place: Place, drive: Drive) -> None:
    """Every page beside has its content; lists come from the command line; a long one is read on a page of its own."""

    async def steps(screen: Screen) -> None:
        from textual.widgets import TabbedContent

        await screen.say("hello")
        await screen.ready(1)
        tabs = screen.app.query_one(TabbedContent)
        for page, words in (
            ("skills", "code-review"),
            ("servers", "no MCP servers here"),
            ("subagents", "researcher"),
            ("budget", "max_steps"),
        ):
            tabs.active = page
            await screen.until(words)
        await screen.say("/theme nord")
        await screen.when(lambda: "nord" == screen.app.theme, "nord")
        await screen.say("/debug")
        await screen.until("no bodies are on record")
        await screen.say("/debug on")
        await screen.until("from the next turn on, keys taken out")
        await screen.say("/agents")
        await screen.until("coordinator", "researcher", "elenco tools --agent NAME")
        await screen.say("/help")
        await screen.until("/models [PROVIDER/MODEL]", "Ctrl-C cancels the turn")

    drive(steps, "--model", place.script('coordinator: [{text: "Hello."}]'))


def test_a_turn_is_answered_and_shown_where_others_hold_every_place(place: Place, drive: Drive) -> None:
    """With all places at its run's socket taken, a chat shows the turn from its record; it decides and cancels."""
    taken: list[socket.socket] = []

    def take_all() -> None:
        """The screen cannot connect meanwhile: it is on this very thread."""
        end = time.monotonic() + 20
        while not (runs := place.runs()) or not runs[0].control.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        control = json.loads(runs[0].control.read_text())
        asks = json.dumps({"re": 1, "token": control["token"], "op": "status"}).encode() + b"\n"
        for _ in range(MOST_CONNECTIONS):
            client = socket.socket(socket.AF_UNIX)
            client.connect(control["socket"])
            client.sendall(asks)
            assert client.recv(1)
            taken.append(client)

    async def steps(screen: Screen) -> None:
        screen.app.session.submit("write it")
        take_all()
        await screen.until("256 clients are connected already", "coordinator asks (a1)")
        await screen.say("y")
        await screen.until("coordinator asks (a2)")
        await screen.say("/say be quick")
        await screen.until("> you to coordinator: be quick")
        await screen.pilot.press("ctrl+c")
        await screen.until("cancelled   2 steps")
        await screen.ready(1)

    drive(steps, "--model", place.script(EDITS))
    for client in taken:
        client.close()
    assert "changed\n" == (place.workspace / "a.txt").read_text()


def test_the_bodies_of_a_turn_are_read_without_keys(
    place: Place, drive: Drive, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/debug on keeps them from the next turn on; no key that is known or looks like one is shown or kept by value."""
    known, pasted = "kN0wn-and-secret-1234", "sk-ant-api03-" + "Ab1" * 12
    monkeypatch.setenv("LAB_API_KEY", known)

    async def steps(screen: Screen) -> None:
        await screen.say("/debug on")
        await screen.until("from the next turn on, keys taken out")
        await screen.say(f"my key is {pasted} or {known}")
        await screen.ready(1)
        await screen.say("/debug")
        shown = await screen.until(
            '"content": "my key is [an Anthropic key] or [redacted]"', "--- response 200\ndata: "
        )
        assert "your key is [redacted]" in shown
        assert (False, False) == (known in shown, pasted in shown)
        await screen.pilot.press("escape")
        await screen.say("/debug off")
        await screen.until("no more bodies are kept")

    drive(steps, "--model", "lab/fake-1", "--base-url", serve(f"your key is {known}"))
    (file,) = (place.runs()[0].path / "bodies").iterdir()
    assert known not in file.read_text()
    (typed,) = (place.state.path / "chat").iterdir()
    assert "my key is [an Anthropic key] or [redacted]" in typed.read_text()


SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.tool()
def note() -> str:
    """One note."""
    return "the note"


@server.prompt()
def daily(day: str) -> str:
    """The notes of a day."""
    return f"What was on {day}?"


server.run("stdio")
'''


def test_prompts_and_servers_of_mcp_are_commands(place: Place, drive: Drive) -> None:
    """A server's prompts complete and are filled in by it; /mcps off and on reaches a turn under way, on record."""
    (place.workspace / "server.py").write_text(SERVER)
    (place.workspace / "agents").mkdir()
    (place.workspace / "agents" / "noter.md").write_text(
        "---\nname: noter\ndescription: Notes.\nmcps: [notes]\n---\nNote it.\n"
    )
    entry = {"command": sys.executable, "args": ["server.py"]}
    (place.workspace / "elenco.yaml").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    subprocess.run([ELENCO, "trust", "--yes"], check=True, capture_output=True)

    async def steps(screen: Screen) -> None:
        await screen.when(lambda: bool(screen.app.session.prompts), "the server's prompts")
        screen.app.query_one(Prompt).put("/notes")
        await screen.until("/notes:daily day=…", "The notes of a day.")
        await screen.pilot.press("tab")
        assert "/notes:daily " == screen.app.query_one(Prompt).text
        await screen.say("/notes:daily day=monday")
        await screen.until("> What was on monday?")
        await screen.when(lambda: screen.app.session.view.root is not None, "the agent")
        await screen.say("/mcps off notes")
        await screen.when(lambda: "mcp.switched" in place.types(screen.app.session.turns[0]), "off")
        await screen.say("/mcps on nothing")
        await screen.until("/mcps: no agent here has an MCP server 'nothing'")
        await screen.pilot.press("ctrl+c")
        await screen.until("cancelled  ")

    drive(steps, "noter", "--model", place.script('noter: [{stall: 600, text: "Hm."}]'))
