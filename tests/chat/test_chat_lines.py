"""The line mode of a chat: what is typed between turns and within them, by a person and from a pipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Lines, Open, Place, Serve

THINKS = """
coordinator:
  - text: "First I look."
    reasoning: "I must look\\nat a.txt"
    calls: [{name: read_file, arguments: {path: a.txt}}]
  - {text: "All done.", reasoning: "That is all of it.", stall: 1.5}
  - {text: "Again.", repeat: 9}
"""
STALLS = """
coordinator:
  - {text: "never said", stall: 600}
"""
SAYS = 'coordinator: [{text: "Said.", repeat: 9}]'


def test_lines_from_a_pipe_steer_the_turn_they_follow_and_count_in_their_order(place: Place, lines: Lines) -> None:
    """/say and /budget LIMIT N act on the turn under way; any other line waits for its end, and in its place."""
    typed = "look\n/say be quick\n/budget max-steps +5\n/thinking\n/say hm\n/copy\n/debug\n/theme\n"
    done = lines(
        f"{typed}/budget max_steps 1\nmore\n",
        "--model", place.script(THINKS),
    )  # fmt: skip
    said = done.stderr.splitlines()
    assert (0, "All done.", "Again.") == (done.returncode, *[done.stdout.splitlines()[n] for n in (0, -1)])
    assert "· I must look" not in done.stdout + done.stderr
    assert "· That is all of it." in done.stdout  # the last thought, when /thinking was typed
    within = ["> you to coordinator: be quick", "max_steps is 95 now"]
    between = [
        "what the model thinks is shown from now on",
        "error: no turn is under way: /say is for one that is",
        "error: there is no terminal here whose clipboard could take it",
        "error: no bodies are on record: /debug on keeps them from the next turn on",
        "/theme needs the screen: elenco chat without --plain",
        "error: no turn is under way: a limit is changed within one",
    ]
    assert between == [line for line in said if line in between]
    assert max(map(said.index, within)) < said.index(between[0])
    first, second = (place.events(folder.id) for folder in place.runs())
    assert ["be quick"] == [event["text"] for event in first if event["type"] == "steer.received"][:1]
    assert first[0]["run"] == second[0]["continues"]


def test_a_turn_is_cancelled_by_a_line(place: Place, lines: Lines) -> None:
    """/cancel ends the turn under way as Ctrl-C does; the chat goes on, and the last turn's exit code counts."""
    done = lines("/cancel\nwait\n/cancel\n/new\nwait\n/cancel", "--model", place.script(STALLS))
    assert (130, "") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count("error: no turn is under way: /cancel is for one that is")
    assert 2 == done.stderr.count("\ncancelled   0 steps")
    first, second = place.runs()
    assert place.events(second.id)[0]["continues"] is None
    assert "cancel.requested" in place.types(first.id)


def test_the_bodies_of_a_turn_are_shown_without_keys(place: Place, lines: Lines, serve: Serve) -> None:
    """/debug on keeps them from the next turn on; no key that is known or looks like one is shown or kept by value."""
    known, pasted = "kN0wn-and-secret-1234", "sk-ant-api03-" + "Ab1" * 12
    url = serve(f"your key is {known}")
    done = lines(
        f"first\n/debug\n/debug on\nmy key is {pasted} or {known}\n/debug\n/debug off\nthird\n/debug maybe\n",
        "--model", "lab/fake-1", "--base-url", url, LAB_API_KEY=known,
    )  # fmt: skip
    assert 0 == done.returncode
    bodies = done.stdout[done.stdout.index("--- request") :]
    assert '"content": "my key is [an Anthropic key] or [redacted]"' in bodies
    assert "--- response 200\ndata: " in bodies
    assert "your key is [redacted]" in bodies
    assert known not in done.stdout + done.stderr
    assert pasted not in done.stdout
    assert "error: write /debug, /debug on or /debug off" in done.stderr
    assert [False, True, False] == [(folder.path / "bodies").is_dir() for folder in place.runs()]
    for file in (place.runs()[1].path / "bodies").iterdir():
        assert known not in file.read_text()


def test_a_person_steers_a_turn_by_lines_and_what_is_said_meanwhile_waits(
    place: Place, open_pane: Open, nothing_left: Callable[[], Sequence[int]]
) -> None:
    """At a terminal a prompt waits for the turn's end and commands act at once; Up and Tab work between turns."""
    pane = open_pane("--plain", "--model", place.script(STALLS))
    pane.until("you>")
    other = place.script(SAYS)
    pane.type("wait for me", "Enter")
    pane.until("● coordinator  wait for me")
    pane.type("and then?", "Enter", "/status", "Enter", "/say hurry", "Enter", "/tools", "Enter")
    pane.until("⋯ and then?   waits for the end of the turn", "● coordinator  thinking", "> you to coordinator: hurry")
    pane.type(f"/models {other}", "Enter")
    pane.until("has changed: another model")
    pane.type("/cancel", "Enter")
    pane.until("cancelled   0 steps", "you> and then?", "Said.", "a child stays under")
    pane.type("/cop", "Tab", "Enter")
    pane.until("the last answer was given to the terminal's clipboard, 5 characters")
    pane.type("Up", "Up", "Up", "Enter")
    pane.until("you> and then?\nrun ", "Said.\n\ncompleted   1 step")
    pane.type("C-d")
    assert "rc=0" in pane.until("over", f"go on: elenco chat --plain --resume {place.runs()[-1].id}")
    assert pane.settings("before") == pane.settings("after")
    assert [] == nothing_left()


def test_where_the_locale_has_no_frames_the_chat_is_in_lines(
    place: Place, open_pane: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that is not UTF-8 gets lines and is told why; what is typed in UTF-8 all the same is understood."""
    for name, value in (("LC_ALL", "POSIX"), ("PYTHONCOERCECLOCALE", "0"), ("PYTHONUTF8", "0")):
        monkeypatch.setenv(name, value)
    pane = open_pane("--model", place.script(SAYS))
    pane.until("in lines: the screen needs UTF-8, not ascii (LC_ALL=C.UTF-8)", "you>")
    pane.type("gr\u00fc\u00dfe", "Enter")
    pane.until("Said.\n")
    pane.type("C-d")
    pane.until("over")
    assert "gr\u00fc\u00dfe" == place.events(place.runs()[0].id)[0]["task"]


def test_a_chat_in_lines_gives_events_as_json(place: Place, lines: Lines) -> None:
    """With --json every event of each turn is a line on standard output, and nothing else is there."""
    done = lines("one\ntwo\n", "--json", "--model", place.script(SAYS))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["one", "two"] == [event["task"] for event in events if event["type"] == "run.started"]
    assert 2 == sum(event["type"] == "run.finished" for event in events)


def test_a_chat_records_exchanges_and_writes_its_answer_where_flags_say(
    place: Place, lines: Lines, serve: Serve, tmp_path: Path
) -> None:
    """--record keeps every turn's exchange, --output the last answer, as they do for a run."""
    words = ("--record", str(tmp_path / "raw"), "--output", str(tmp_path / "answer"))
    assert 0 == lines("one\ntwo\n", "--model", "lab/fake-1", "--base-url", serve("Hello."), *words).returncode
    assert ["001-fake-1.json", "002-fake-1.json"] == sorted(file.name for file in (tmp_path / "raw").iterdir())
    assert "Hello." == (tmp_path / "answer").read_text().strip()
