"""An answer for a program, and a run that goes on by itself: through the command."""

from __future__ import annotations

import json
import os
import pty
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Record, Run

AGENT = "---\nname: lead\ndescription: x\ntools: []\n{output}---\nBe brief.\n"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def lead(place: Path) -> Callable[[str], None]:
    def write(output: str = "") -> None:
        (place / "ws" / "agents").mkdir(exist_ok=True)
        (place / "ws" / "agents" / "lead.md").write_text(AGENT.format(output=output and f"output: {output}\n"))

    write()
    (place / "ws" / "s.json").write_text(json.dumps(SCHEMA))
    return write


@pytest.mark.usefixtures("lead")
def test_with_a_schema_only_the_json_is_printed(elenco: Run, script: Callable[[str], str]) -> None:
    """Standard output holds the value that fits and nothing else, and what went back is told beside it."""
    model = script('lead: [words, "```json\\n{\\"n\\": 5}\\n```"]')
    done = elenco("run", "lead", "t", "--model", model, "--output-schema", "s.json")
    assert (0, '{"n": 5}\n') == (done.returncode, done.stdout)
    assert "! lead   its answer went back: the answer is not JSON alone" in done.stderr
    run = done.stderr.rpartition("elenco show ")[2].strip()
    assert '## Output\n{\n  "n": 5\n}' in elenco("show", run).stdout


@pytest.mark.usefixtures("lead")
def test_an_answer_that_never_fits_leaves_standard_output_empty(elenco: Run, script: Callable[[str], str]) -> None:
    """After its tries the run has failed: exit 1, the last text and what is wrong with it on standard error."""
    done = elenco("run", "lead", "t", "--model", script("lead: [one, two, three]"), "--output-schema", "s.json")
    assert (1, "") == (done.returncode, done.stdout)
    assert "Partial answer (failed):\nthree" in done.stderr
    assert "error: the answer does not hold after 3 tries" in done.stderr


@pytest.mark.usefixtures("lead")
def test_a_stopped_runs_last_answer_is_printed_where_it_fits(elenco: Run, script: Callable[[str], str]) -> None:
    """A limit that comes first leaves exit 3, with the value where the last answer holds."""
    model = script('lead: [words, "{\\"n\\": 6}"]')
    done = elenco("run", "lead", "t", "--model", model, "--output-schema", "s.json", "--max-steps", "2")
    assert (3, '{"n": 6}\n') == (done.returncode, done.stdout)


@pytest.mark.usefixtures("lead")
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{\n "type": "strin"}', "bad.json:2:10: not a valid JSON Schema"),
        ("{\n oops", "bad.json:2:2: not valid JSON"),
        ('{"$ref": "http://127.0.0.1:9/x"}', "bad.json:1:10: the reference 'http://127.0.0.1:9/x' is remote"),
        (None, "error: --output-schema bad.json: there is no such file"),
    ],
)
def test_a_schema_that_cannot_be_used_is_told_with_its_place(
    place: Path, elenco: Run, script: Callable[[str], str], content: str | None, line: str
) -> None:
    """Nothing is started: exit 2, file, line and column."""
    if content is not None:
        (place / "ws" / "bad.json").write_text(content)
    done = elenco("run", "lead", "t", "--model", script("lead: [x]"), "--output-schema", "bad.json")
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith(line)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("{check: nowhere}", "'nowhere' names no function: write module:function"),
        ('{check: "gone:f"}', "there is no module 'gone'"),
        ('{check: "mine:validat"}', "mine.py has no function 'validat'; did you mean 'validate'?"),
        (
            "{forbid: [emial]}",
            "'emial' is nothing that can be forbidden: there are email and key; did you mean 'email'?",
        ),
        ('{schema: {$ref: "http://x/y"}}', "is remote, and nothing is fetched"),
        ("{schema: {type: strin}}", "not a valid JSON Schema: type: 'strin'"),
        ("{retries: 99}", "retries: expected 0 to 20"),
    ],
)
def test_output_rules_that_mean_nothing_are_told_with_their_line(
    place: Path, elenco: Run, lead: Callable[[str], None], script: Callable[[str], str], output: str, text: str
) -> None:
    """`run` and `check` name the agent file and the line, and exit 2."""
    (place / "ws" / "mine.py").write_text("def validate(value):\n    return None\n")
    lead(output)
    for done in (elenco("run", "lead", "t", "--model", script("lead: [x]")), elenco("check")):
        assert 2 == done.returncode
        assert "agents/lead.md:5:" in done.stdout + done.stderr
        assert text in done.stdout + done.stderr


@pytest.mark.usefixtures("lead")
def test_a_detached_run_outlives_its_terminal(
    place: Path, elenco: Run, script: Callable[[str], str], record: Record
) -> None:
    """The id is printed, the terminal is closed, and the run goes on to its end; cancel reaches another like it."""
    model = script("lead: [{stall: 1.5, text: done}]")
    words = ["elenco", "run", "--detach", "lead", "t", "--model", model, "--state", str(place / "state")]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(place / "ws")
        os.execvpe(
            "sh",
            ["sh", "-c", f"{' '.join(words)}; sleep 60"],
            {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(place / "home")},
        )
    shown = b""
    while b"goes on by itself" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    os.waitpid(child, 0)
    (run,) = (path.name for path in (place / "state" / "runs").iterdir())
    end = time.monotonic() + 30
    while record(run)[-1]["type"] != "run.finished" and time.monotonic() < end:
        time.sleep(0.05)
    assert ("run.finished", "completed") == (record(run)[-1]["type"], record(run)[-1]["report"]["status"])


@pytest.mark.usefixtures("lead")
def test_a_detached_run_prints_its_id_and_can_be_cancelled(
    elenco: Run, script: Callable[[str], str], record: Record
) -> None:
    """Standard output is the id alone, so that a shell can keep it; the run is there to be steered at once."""
    begun = elenco("run", "--detach", "lead", "t", "--model", script("lead: [{stall: 60, text: late}]"))
    run = begun.stdout.strip()
    assert (0, f"{run}\n") == (begun.returncode, begun.stdout)
    assert 0 == elenco("cancel", run).returncode
    assert 0 == elenco("tail", run, "--follow").returncode
    assert "cancelled" == record(run)[-1]["report"]["status"]


@pytest.mark.usefixtures("lead")
def test_a_resumed_run_goes_on_by_itself(elenco: Run, script: Callable[[str], str], record: Record) -> None:
    """`resume --detach` prints the id once the run works again, which can then be followed and cancelled."""
    model = script("lead: [{stall: 60, text: late}]")
    run = elenco("run", "--detach", "lead", "t", "--model", model).stdout.strip()
    assert 1 == elenco("resume", run, "--detach").returncode, "it is live"
    assert 0 == elenco("cancel", run).returncode
    assert 0 == elenco("tail", run, "--follow").returncode
    went_on = elenco("resume", run, "--detach", "--max-steps", "+5")
    assert (0, f"{run}\n", True) == (went_on.returncode, went_on.stdout, "goes on by itself" in went_on.stderr)
    assert "running" in elenco("runs").stdout
    assert 0 == elenco("cancel", run).returncode
    assert 0 == elenco("tail", run, "--follow").returncode
    types = [event["type"] for event in record(run)]
    assert (2, 1) == (types.count("run.finished"), types.count("run.resumed"))
    script("lead: [done]")
    assert 0 == elenco("resume", run, "--detach", "--quiet").returncode
    assert 0 == elenco("tail", run, "--follow").returncode
    assert "done" in elenco("show", run).stdout
    for words, code, said in (((run,), 2, "is completed"), ((run, "--json"), 2, "--json has nobody to read it")):
        refused = elenco("resume", *words, "--detach")
        assert (code, "") == (refused.returncode, refused.stdout)
        assert said in refused.stderr


@pytest.mark.usefixtures("lead")
def test_what_keeps_a_detached_run_from_beginning_is_told(elenco: Run) -> None:
    """A slip is told at once, with its exit code and no id."""
    done = elenco("run", "--detach", "lead", "t", "--model", "scripted/none.yaml")
    assert (2, "") == (done.returncode, done.stdout)
    done = elenco("run", "--detach", "--json", "lead", "t", "--model", "scripted/none.yaml")
    assert (2, "") == (done.returncode, done.stdout)
    assert "--json has nobody to read it with --detach" in done.stderr
