"""How well the offline cast answers questions over a small corpus, and that it never says what no file says."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import yaml

from runtime.messages import ToolCall, ToolResult
from runtime.providers.offline_digest import ONLY_QUOTES, UNCHECKED, WEAK
from runtime.providers.offline_quotes import fold, is_verbatim

Calls: TypeAlias = list[tuple[str, ToolCall, ToolResult]]
Play: TypeAlias = Callable[[Path, str], Awaitable[tuple[str, Calls]]]

CASES = Path(__file__).parent.parent / "cases"
CORPUS = CASES / "corpus"
QUOTED = re.compile(r'^  "(?P<text>.*)" +\[(?P<path>.+):(?P<line>\d+)\]$')
PHRASES = re.compile(
    r"(Read|Searched) \d+ files?\.( Not searched, too large: \d+\.)?( Nothing found on: .+\.)?"
    r"( Dropped on re-reading: \d+ quotes?\.)?"
    r"|Nothing found( on: .+)?\.( Searched \d+ files?\.)?( Not searched, too large: \d+\.)?"
)


@attrs.frozen
class Case:
    ask: str
    path: str | None
    says: str


def cases(name: str) -> list[Case]:
    rows: list[dict[str, Any]] = yaml.safe_load((CASES / "questions" / name).read_text(encoding="utf-8"))
    return [Case(row["ask"], row.get("path"), row.get("says", "")) for row in rows]


def check_lines(question: str, answer: str, calls: Calls, root: Path) -> list[tuple[str, int]]:
    """Where the quotes of a digest stand; every line has to be a phrase, or to stand in a file read in this run."""
    read = {call.arguments["path"] for _, call, _ in calls if call.name == "read_file" and call.arguments}
    places: list[tuple[str, int]] = []
    first, *lines = answer.split("\n")
    assert fold(question) == first
    for line in lines:
        found = QUOTED.match(line)
        if found is None:
            assert line in (ONLY_QUOTES, WEAK, UNCHECKED) or PHRASES.fullmatch(line), line
            continue
        assert found["path"] in read
        rest = (root / found["path"]).read_text(encoding="utf-8").split("\n")[int(found["line"]) - 1 :]
        assert is_verbatim(found["text"], "\n".join(rest[:20])), line
        places.append((found["path"], int(found["line"])))
    return places


async def hits(play: Play, name: str) -> tuple[int, int]:
    """How many answerable questions have the right passage in the digest's first three, how many others have none."""
    right = nothing = 0
    for case in cases(name):
        answer, calls = await play(CORPUS, case.ask)
        places = check_lines(case.ask, answer, calls, CORPUS)
        if case.path is None:
            nothing += answer.split("\n")[1].startswith("Nothing found")
            continue
        lines = (CORPUS / case.path).read_text(encoding="utf-8").split("\n")
        near = ("\n".join(lines[line - 1 : line + 3]) for path, line in places[:3] if path == case.path)
        right += any(case.says in fold(text) for text in near)
    return right, nothing


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("question", "phrase"),
    [("How are zebras striped?", "Read 1 file."), ("Who feeds the lions?", "Searched 1 file.")],
)
async def test_a_digest_says_what_the_search_left_out(
    play: Play, tmp_path: Path, count: int, question: str, phrase: str
) -> None:
    """Files too large to be searched are told in the last words, whether anything was found elsewhere or not."""
    (tmp_path / "a.md").write_text("Zebras are striped in black and white.\n")
    for number in range(count):
        (tmp_path / f"large{number}.md").write_text("The keeper feeds the lions.\n" * 100_000)
    answer, calls = await play(tmp_path, question)
    places = check_lines(question, answer, calls, tmp_path)
    assert bool(places) == phrase.startswith("Read")
    assert f"{phrase} Not searched, too large: {count}." in answer


async def test_golden_questions_are_answered(play: Play) -> None:
    """Of 16 golden questions at least 15 have the right passage among the first three; the 4 others find nothing."""
    right, nothing = await hits(play, "golden.yaml")
    assert right >= 15
    assert 4 == nothing


async def test_questions_never_tuned_on_are_mostly_answered(play: Play) -> None:
    """Of 16 questions nothing was tuned on, 13 are answered this way; the 4 others find nothing."""
    right, nothing = await hits(play, "heldout.yaml")
    assert right >= 13
    assert 4 == nothing


async def test_the_cast_works_in_turn(play: Play) -> None:
    """Researcher, reviewer and writer work one after another, and the reviewer reads every quote again."""
    answer, calls = await play(CORPUS, "How are failed jobs retried?")
    delegations = [call.name for agent, call, _ in calls if agent == "coordinator"]
    assert ["delegate_to_researcher", "delegate_to_reviewer", "delegate_to_writer"] == delegations
    reread = [call for agent, call, _ in calls if agent == "reviewer"]
    assert len(check_lines("How are failed jobs retried?", answer, calls, CORPUS)) == len(reread)


async def test_the_same_tree_gives_the_same_answer(play: Play) -> None:
    """The same question over the same tree gives the same answer and the same calls."""
    one, other = [await play(CORPUS, "How is a lease renewed?") for _ in range(2)]
    assert one == other


async def test_the_first_look_at_a_project(play: Play) -> None:
    """`What does this project do?` is answered from the top of the README."""
    answer, calls = await play(CORPUS, "What does this project do?")
    places = check_lines("What does this project do?", answer, calls, CORPUS)
    assert ("README.md", 3) == places[0]


PROMISES = """\
# Elenco

A runtime whose runs always end.

## Promises

Each is a test that anybody can run.

| promise | how it is kept | test |
|---|---|---|
| **Ends** | Every run ends inside its limits. | `tests/area0/test_area0.py` |
| **Never overspends** | Spent is never more than the limit. | `tests/area1/test_area1.py` |
| **Leaves nothing** | No task, process or file is left. | `tests/area2/test_area2.py` |
| **Forgets nothing** | After a crash the run goes on. | `tests/area3/test_area3.py` |
| **Speaks every dialect** | Any cut of the same bytes gives the same message. | `tests/area4/test_area4.py` |
| **Lets no one in** | A tool touches only what its rules allow. | `tests/area5/test_area5.py` |
| **Stops madness** | The guard compares calls and results. | `tests/area6/test_area6.py` |
| **Gets out of the way** | A step costs little. | `bench/steps.py` |
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A tree like our own: a README with its table, documents, and much that speaks of the same things."""
    files = {"README.md": PROMISES, "CHANGELOG.md": "# Changes\n\n- Each promise is tested now.\n"}
    files["docs/proofs.md"] = (
        "# Proofs\n\nThe tests of a promise are run by `.ci/run`; what they promise is in README.md.\n"
    )
    for area in range(12):
        files[f"tests/area{area}/test_area{area}.py"] = (
            f'"""Tests of area {area}: the promise is kept."""\n\n\n'
            f'def test_promise_{area}():\n    """Promise {area} is tested: the test tests it."""\n    assert True\n'
        )
        files[f"runtime/part{area}.py"] = (
            f'"""Part {area} keeps its promise; see the tests."""\n\n\ndef make_promise():\n    pass\n'
        )
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


async def test_the_promises_come_before_the_noise(play: Play, checkout: Path) -> None:
    """The demo of our README: a checkout shows all rows of its table, in order, before anything else."""
    question = "What promises does this project make, and where are they tested?"
    answer, calls = await play(checkout, question)
    places = check_lines(question, answer, calls, checkout)
    assert [("README.md", line) for line in range(11, 19)] == places[:8]
    assert '"**Ends** | Every run ends inside its limits. | `tests/area0/test_area0.py`"' in answer
