"""The shared skill cases, through the command."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.skills.places import HOME_PLACES, Place, places, shelve

SHARED = json.loads((Path(__file__).parent.parent / "cases" / "skills" / "expected.json").read_text())["skills"]


@pytest.fixture(scope="module")
def answers(tree: Path) -> dict[str, list[dict[str, Any]]]:
    """What `elenco debug skill` says of each path of the cases."""
    line = json.dumps({"project": str(tree / "project"), "home": str(tree / "home")})
    words = [sys.executable, "-m", "runtime.cli", "debug", "skill"]
    ended = subprocess.run(words, input=line, capture_output=True, text=True, check=True, timeout=60, cwd=tree)
    rows = [json.loads(row) for row in ended.stdout.splitlines()]
    assert rows[-1]["done"] is True
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows[:-1]:
        found.setdefault(str(Path(row["path"]).relative_to(tree)), []).append(row)
    return found


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case["path"].removesuffix("/SKILL.md"))
def test_a_skill_is_taken_as_its_case_says(case: dict[str, Any], answers: dict[str, list[dict[str, Any]]]) -> None:
    """A skill is taken as its case says, listed once, and never refused or mended without a word."""
    assert 1 == len(answers.get(case["path"], []))
    answer = answers[case["path"]][0]
    assert answer["result"] in case.get("accept", [case["expected"]])
    assert answer["result"] == "load" or answer["problems"]
    if answer["result"] == "reject":
        assert (None, None) == (answer["name"], answer["description"])
        return
    assert case["name"] in (None, answer["name"])
    assert case["description"] in (None, answer["description"])
    if "description_sha256" in case:
        assert case["description_sha256"] == hashlib.sha256(answer["description"].encode()).hexdigest()
    for must in case.get("must", []):
        if isinstance(must, dict) and "allowed_tools" in must:
            assert must["allowed_tools"] == answer["allowed_tools"]


def test_nothing_in_the_cases_was_run(tree: Path, answers: dict[str, list[dict[str, Any]]]) -> None:
    """Reading skills runs nothing that they bring."""
    assert answers
    assert [] == [path for name in ("HOOK_RAN", "BODY_RAN", "PWNED") for path in tree.rglob(name)]


def test_every_skill_file_there_is_has_been_told(tree: Path, answers: dict[str, list[dict[str, Any]]]) -> None:
    """Every SKILL.md there is has been told, but for one inside another skill."""
    met = set(answers)
    there = {str(path.relative_to(tree)) for path in tree.rglob("SKILL.md")}
    assert {"project/skills/outer-skill/references/inner/SKILL.md"} == there - met


def test_a_circle_of_links_is_walked_once_and_told(tmp_path: Path, write_skill: Any) -> None:
    """A circle of links is walked once and told; the skills in it are listed once."""
    write_skill(tmp_path / "skills" / "group" / "one")
    (tmp_path / "skills" / "group" / "again").symlink_to("../group")
    (tmp_path / "skills" / "self").symlink_to("self")
    shelf = shelve([Place(tmp_path / "skills", "workspace", "skills")])
    assert ["one"] == list(shelf.skills)
    assert any("skills/group/again is a link to skills/group" in note for note in shelf.notes)
    assert any("skills/self is a link that leads round in a circle" in note for note in shelf.notes)


def test_a_folder_reached_by_a_link_is_the_same_skill(tmp_path: Path, write_skill: Any) -> None:
    """A skill's folder that is reached by a link as well is one skill, and that is told."""
    write_skill(tmp_path / ".agents" / "skills" / "one")
    (tmp_path / ".claude" / "skills").mkdir(parents=True)
    (tmp_path / ".claude" / "skills" / "one").symlink_to("../../.agents/skills/one")
    write_skill(tmp_path / "elsewhere" / "two")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "two").symlink_to("../elsewhere/two")
    shelf = shelve(places(tmp_path, None, None, with_shipped=False))
    assert {"two": "skills/two/SKILL.md", "one": ".agents/skills/one/SKILL.md"} == {
        name: entry.shown for name, entry in shelf.skills.items()
    }
    assert [".agents/skills/one"] == [entry.same_as for entry in shelf.met if entry.same_as]
    assert () == shelf.shadowed


def test_the_first_place_wins_and_the_rest_is_shadowed(tmp_path: Path, write_skill: Any) -> None:
    """Of skills with one name the first place wins, in the order workspace, user, shipped; the rest is shadowed."""
    home = tmp_path / "home"
    order = [tmp_path / place for place in ("skills", ".agents/skills", ".claude/skills", ".opencode/skills")]
    order += [home / place for place in HOME_PLACES]
    for folder in reversed(order):
        write_skill(folder / "code-review", description=f"In {folder.relative_to(tmp_path)}.")
    shelf = shelve(places(tmp_path, None, home))
    first = shelf.skills["code-review"]
    assert first.skill is not None
    assert ("In skills.", "workspace") == (first.skill.description, first.origin)
    assert [str(folder / "code-review") for folder in order[1:]] == [
        str(entry.folder) for entry, _ in shelf.shadowed if entry.origin != "shipped"
    ]
    assert "shipped" == shelf.shadowed[-1][0].origin


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """A folder whose name is no UTF-8 text is told and refused: no prompt could name its files."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/skills/bad\xff"))
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: fine\ndescription: Fine.\n---\nx\n")
    shelf = shelve(places(tmp_path, None, None, with_shipped=False))
    assert {} == shelf.skills
    assert ["the name of its folder is no UTF-8 text; rename the folder"] == [
        problem.text for entry in shelf.broken for problem in entry.reading.problems
    ]


def test_a_file_in_other_letters_and_a_folder_without_one_are_told(tmp_path: Path, write_skill: Any) -> None:
    """A skill.md in other letters loads with a warning; a folder without one, and a loose file, are told."""
    write_skill(tmp_path / "skills" / "one")
    (tmp_path / "skills" / "one" / "SKILL.md").rename(tmp_path / "skills" / "one" / "skill.md")
    (tmp_path / "skills" / "two").mkdir()
    (tmp_path / "skills" / "three.md").write_text("# Three\n")
    shelf = shelve(places(tmp_path, None, None, with_shipped=False))
    assert ["the file must be called SKILL.md"] == [each.text for each in shelf.skills["one"].reading.problems]
    assert {
        "skills/three.md is no skill: a skill is a folder with a SKILL.md",
        "skills/two is no skill: there is no SKILL.md in it",
    } == set(shelf.notes)
