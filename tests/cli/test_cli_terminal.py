"""On a terminal: the tree that is redrawn, questions and their answers, and what must never reach the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]
Script: TypeAlias = Callable[[str], str]
Until: TypeAlias = Callable[..., str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]
Term: TypeAlias = Callable[..., tuple[int, str]]

WRITE = """
coordinator:
  - text: "I will write."
    calls: [{name: write_file, arguments: {path: notes.md, content: "one \\e[31m\\ntwo\\n"}}]
  - text: "done"
"""
TEAM = """
coordinator:
  - calls:
      - {name: delegate_to_researcher, arguments: {task: "find x"}}
      - {name: delegate_to_reviewer, arguments: {task: "check x"}}
    usage: {input: 100, output: 20}
  - {text: "x is there", usage: {input: 200, output: 10}}
researcher:
  - {calls: [{name: read_file, arguments: {path: README.md}}], usage: {input: 50, output: 5}}
  - {stall: 0.6, text: "found", usage: {input: 60, output: 5}}
reviewer:
  - {stall: 0.9, text: "right", usage: {input: 40, output: 5}}
"""
KEYS = "  y once   r in this run   a always `write_file(notes.md)` here   e edit   s stop run   or type why not"
QUESTION = "\r\n> "


def screen(text: str) -> list[str]:
    """What a terminal shows after all of it: enough of one for what is written here."""
    lines: dict[int, dict[int, str]] = {}
    row = column = at = 0
    while at < len(text):
        found = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])").match(text, at)
        if found is not None:
            at = found.end()
            if found[2] == "A":
                row -= int(found[1] or 1)
            elif found[2] == "K" and found[1] == "2":
                lines[row] = {}
            continue
        char = text[at]
        at += 1
        if char == "\r":
            column = 0
        elif char == "\n":
            row += 1
        else:
            lines.setdefault(row, {})[column] = char
            column += 1
    height = max(lines, default=-1) + 1
    shown = ["".join(lines.get(number, {}).get(cell, " ") for cell in range(200)).rstrip() for number in range(height)]
    while shown and not shown[-1]:
        shown.pop()
    return shown


@pytest.fixture
def terminal(start: Start) -> Iterator[Term]:
    """Run the command on a terminal of 100 columns; `keys` are typed in turn, each once its cue has been shown."""
    masters: list[int] = []

    def run(*words: str, keys: Sequence[tuple[str, str]] = (), env: Mapping[str, str] | None = None) -> tuple[int, str]:
        master, slave = pty.openpty()
        masters.append(master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        options = {"stdin": slave, "stdout": slave, "stderr": slave}
        process = start(*words, env={"TERM": "xterm-256color", **(env or {})}, **options)
        os.close(slave)
        text = drain(master, list(keys))
        return process.wait(timeout=30), text

    yield run
    for master in masters:
        os.close(master)


def drain(master: int, keys: list[tuple[str, str]]) -> str:
    """Everything written until the other end is closed."""
    seen, looked = b"", 0
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([master], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(master, 65_536)
        except OSError:
            break
        seen += data
        if keys and keys[0][0].encode() in seen[looked:]:
            looked = len(seen)
            os.write(master, keys.pop(0)[1].encode())
    assert not keys, f"never shown: {keys[0][0]!r} in {seen.decode(errors='replace')}"
    return seen.decode(errors="replace")


def test_tree_is_redrawn_in_place_and_gone_at_the_end(terminal: Term, script: Script) -> None:
    """While it works each actor has a row; afterwards only the head, the answer and the closing line are left."""
    code, text = terminal("run", "Find x", "--model", script(TEAM))
    assert 0 == code
    drawn = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    for words in ("● coordinator", "waits for ", "├ ● re", "└ ● re", "✓ researcher-1   1 file", "of 200k tokens"):
        assert words in drawn
    shown = screen(text)
    told = "\n".join(shown)
    assert shown[0].startswith("coordinator asks scripted/")
    assert re.search(r"^run \w+   limits: 90 steps, 200k tokens, 10 min +Ctrl-C stops cleanly$", told, re.MULTILINE)
    assert ["x is there", ""] == shown[-3:-1]
    assert shown[-1].startswith("completed   5 steps, 495 tokens")
    assert "●" not in told
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_list_of_what_is_to_be_done_is_told_while_it_is_worked_on(
    terminal: Term, elenco: Run, script: Script, place: Path
) -> None:
    """The row of an actor at work shows how far its list is and what it is at; without a terminal a line tells it."""
    (place / "ws" / "agents").mkdir()
    (place / "ws" / "agents" / "solo.md").write_text("---\nname: solo\ndescription: x\ntools: [todo_write]\n---\nDo.\n")
    items = "[{text: measure, status: done}, {text: cut wood, status: doing}]"
    model = script(
        f"solo:\n  - calls: [{{name: todo_write, arguments: {{items: {items}}}}}]\n  - {{text: done, stall: 1}}\n"
    )
    code, text = terminal("run", "solo", "Go", "--model", model)
    assert 0 == code
    assert "todo 1/2: cut wood" in text
    assert "solo  todo 1/2: cut wood" in elenco("run", "solo", "Go", "--model", model).stderr


def test_answer_is_seen_as_it_comes(terminal: Term, script: Script) -> None:
    """The root's words stand below the tree as they come, with bars of what is used; then the answer stands alone."""
    first = "I will look into it, and then I will say what there is."
    answer = "It is there: in the first file, in the second, and in none of the others."
    model = script(
        f"coordinator:\n  - {{pace: 0.3, text: '{first}', calls: [{{name: list_files}}]}}\n"
        f"  - {{pace: 0.3, text: '{answer}', usage: {{input: 90000, output: 10}}}}\n"
    )
    code, text = terminal("run", "Look", "--model", model, "--total-steps", "4")
    assert 0 == code
    drawn = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    for words in (f"\r\n{first[:40]}", f"\r\n{answer[:40]}", "▰▱▱▱ 1 of 4 steps", "▰▱▱▱ 0.", " s of 10 min"):
        assert words in drawn
    assert drawn.index(first[:40]) < drawn.index(answer[:40])
    assert [answer, ""] == screen(text)[-3:-1]
    assert first not in "\n".join(screen(text))


def test_no_color_is_kept(terminal: Term, script: Script) -> None:
    """NO_COLOR: the tree is drawn without any colour."""
    code, text = terminal("run", "Find x", "--model", script(TEAM), env={"NO_COLOR": "1"})
    assert 0 == code
    assert re.search(r"\x1b\[3\dm", text) is None
    assert "\x1b[1A" in text


def test_terminal_that_cannot_redraw_gets_lines(terminal: Term, script: Script) -> None:
    """TERM=dumb: no escape sequence at all, one line a change."""
    code, text = terminal("run", "Find x", "--model", script(TEAM), env={"TERM": "dumb"})
    assert 0 == code
    assert "\x1b" not in text
    assert "\r\n● researcher-1  find x\r\n" in text


def test_quiet_is_quiet_on_a_terminal_too(terminal: Term, script: Script) -> None:
    """--quiet: the answer and nothing else."""
    assert (0, "x is there\r\n") == terminal("run", "Find x", "--quiet", "--model", script(TEAM))


def test_control_characters_never_reach_the_screen(terminal: Term, script: Script) -> None:
    """Names, arguments, texts and results of models are shown with their control characters written out."""
    model = script(
        'coordinator:\n  - {text: "\\e[2J", calls: [{name: "x\\e[5m", arguments: {"a\\e[6m": "\\e]0;t\\a"}}]}\n'
        '  - {stall: 0.4, text: "\\e[7mend"}\n'
    )
    code, text = terminal("run", "Look \x1b[8m", "--model", model)
    assert 0 == code
    assert "\\x1b[7mend" in text
    for number in ("2J", "5m", "6m", "]0;", "8m"):
        assert f"\x1b[{number}" not in text
    assert "\x07" not in text
    assert "\x1b[7m" not in text


# --- questions ---------------------------------------------------------------------------------------------------


def test_yes_lets_the_call_run_once(terminal: Term, script: Script, place: Path) -> None:
    """The card shows who asks, what, and why; `y` alone on its line allows it."""
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=[(QUESTION, "y\n")])
    assert 0 == code
    shown = screen(text)
    at = next(number for number, line in enumerate(shown) if line.startswith("? "))
    assert shown[at : at + 10] == [
        '? coordinator asks (a1)    write_file  path="notes.md"',
        "    everything else asks (built-in)      the clock stands still",
        "      | --- /dev/null",
        "      | +++ b/notes.md",
        "      | @@ -0,0 +1,2 @@",
        "      | +one \\x1b[31m",
        "      | +two",
        KEYS,
        "> y",
        "✓ a1 allowed by you",
    ]
    assert "done" in shown
    assert "one \x1b[31m\ntwo\n" == (place / "ws" / "notes.md").read_text()


def test_any_text_is_a_refusal_with_that_reason(terminal: Term, script: Script, place: Path) -> None:
    """What is typed reaches the model as the reason; nothing runs."""
    keys = [(QUESTION, "yes, but in docs/\n")]
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=keys)
    assert 0 == code
    assert '✗ a1 refused by you; coordinator reads: "yes, but in docs/"' in screen(text)
    assert not (place / "ws" / "notes.md").exists()


def test_other_letters_decide_nothing(terminal: Term, script: Script, place: Path) -> None:
    """An empty line or an unknown letter shows the keys again; `n` refuses."""
    keys = [(QUESTION, "\n"), (QUESTION, "x\n"), (QUESTION, "n\n")]
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=keys)
    assert 0 == code
    assert "  'x' is no choice here" in screen(text)
    assert '✗ a1 refused by you; coordinator reads: "no reason given"' in screen(text)
    assert not (place / "ws" / "notes.md").exists()


def test_arguments_are_edited_before_they_are_allowed(terminal: Term, script: Script, place: Path) -> None:
    """`e` shows the arguments as a line to type again; what is typed runs, what is no JSON goes back."""
    keys = [
        (QUESTION, "e\n"),
        ("edit> ", "{oops\n"),
        (QUESTION, "e\n"),
        ("edit> ", '{"path": "other.md", "content": "mine"}\n'),
    ]
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=keys)
    assert 0 == code
    assert any(line.startswith("  cannot be used: ") for line in screen(text))
    assert "✓ a1 allowed as edited by you" in screen(text)
    assert "mine" == (place / "ws" / "other.md").read_text()
    assert not (place / "ws" / "notes.md").exists()


def test_always_is_remembered_for_the_workspace(terminal: Term, script: Script, place: Path) -> None:
    """`a` allows the same call in every later run over this workspace; what it allows is kept in the state folder."""
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=[(QUESTION, "a\n")])
    assert 0 == code
    assert "✓ a1 allowed always here by you" in screen(text)
    assert [] == [path for path in (place / "ws").rglob("*") if "allow" in path.name]
    code, text = terminal("run", "Write", "--model", script(WRITE.replace("one", "three")))
    assert 0 == code
    assert "asks (a1)" not in text


def test_s_stops_the_run(terminal: Term, script: Script) -> None:
    """`s` cancels the whole run: exit 130."""
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=[(QUESTION, "s\n")])
    assert 130 == code
    assert any(line.startswith("cancelled   1 step") for line in screen(text))


def test_end_of_input_leaves_the_run_waiting(terminal: Term, script: Script) -> None:
    """Ctrl-D at the question: nobody is there any more, exit 4 with the commands that decide."""
    code, text = terminal("run", "Write", "--model", script(WRITE), keys=[(QUESTION, "\x04")])
    assert 4 == code
    assert screen(text)[-1].startswith("waiting: a1 (coordinator, write_file)   elenco approve ")


def test_no_input_never_asks(terminal: Term, script: Script) -> None:
    """--no-input on a terminal: the question is one line, and the run waits for later."""
    code, text = terminal("run", "Write", "--no-input", "--model", script(WRITE))
    assert 4 == code
    assert KEYS not in text
    assert any(line.startswith("? coordinator asks (a1)  write_file") for line in screen(text))


def test_quiet_still_asks(terminal: Term, script: Script) -> None:
    """--quiet hides progress, not questions."""
    code, text = terminal("run", "Write", "--quiet", "--model", script(WRITE), keys=[(QUESTION, "y\n")])
    assert 0 == code
    assert "✓ a1 allowed by you" in text


def test_ctrl_c_gives_the_cursor_back(start: Start, script: Script) -> None:
    """An interrupt while the tree is drawn: exit 130, a visible cursor and the closing line."""
    model = script("coordinator:\n  - {stall: 60, text: late}\n")
    master, slave = pty.openpty()
    process = start("run", "Wait", "--model", model, stdin=slave, stdout=slave, stderr=slave, env={"TERM": "xterm"})
    os.close(slave)
    try:
        text = os.read(master, 65_536).decode()
        while "● coordinator" not in re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text):
            text += os.read(master, 65_536).decode()
        process.send_signal(signal.SIGINT)
        text += drain(master, [])
        assert 130 == process.wait(timeout=30)
        assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
        assert screen(text)[-1].startswith("cancelled   0 steps")
    finally:
        os.close(master)


# --- a terminal that takes nothing -----------------------------------------------------------------------------


def test_stalled_terminal_does_not_stall_the_run(start: Start, script: Script, until: Until, record: Record) -> None:
    """Nobody reads what is written to the terminal: the run ends on record all the same."""
    calls = "".join(
        f"  - {{text: {'w' * 60}, calls: [{{name: write_file, arguments: {{path: f{number}.md, content: x}}}}]}}\n"
        for number in range(80)
    )
    model = script(f"coordinator:\n{calls}  - text: done\n")
    master, slave = pty.openpty()
    words = ("run", "Write", "--allow", "write_file", "--token-budget", "100000000", "--model", model)
    process = start(*words, stdin=slave, stdout=slave, stderr=slave, env={"TERM": "dumb"})
    os.close(slave)
    try:
        run = until("run.finished")
        assert "completed" == record(run)[-1]["report"]["status"]
        drain(master, [])
        assert 0 == process.wait(timeout=30)
    finally:
        os.close(master)
