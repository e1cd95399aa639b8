"""SKILL.md texts: any cut and any noise gives a reading, restrictions fail closed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.foreign.rules import TokenError, allow_rules, forbidding, split_tools
from runtime.skills.document import Reading, read_document

GOOD = """\ufeff<!-- made by hand -->
---
name: pdf-tables
description: Extracts tables: from PDF files.
license: MIT
compatibility: needs pdftotext
allowed-tools: Read Bash(pdftotext:*) "quoted"
metadata:
  version: 1.10
---
# Steps

Do it.
"""


def told(reading: Reading, level: str) -> list[str]:
    return [problem.text for problem in reading.problems if problem.level == level]


@pytest.mark.parametrize("end", range(0, len(GOOD), 3))
def test_every_cut_of_a_file_gives_a_reading_with_a_reason(end: int) -> None:
    """Every cut of a file is read or refused with a reason, never an exception."""
    reading = read_document(GOOD[:end], "pdf-tables")
    assert reading.skill is not None or told(reading, "fault")


@given(st.text(max_size=200), st.sampled_from(["name", "description", "allowed-tools", "metadata", "hooks"]))
@example("!!python/object/apply:os.system [x]", "name")
@example("&a [*a, *a]", "metadata")
def test_whatever_a_value_is_a_reading_comes_back(value: str, key: str) -> None:
    """Whatever stands behind a key, a reading comes back; a skill that loads has a usable name and description."""
    reading = read_document(f"---\nname: x\ndescription: y\n{key}: {value}\n---\nbody\n", "x")
    if reading.skill is None:
        assert told(reading, "fault")
    else:
        assert reading.skill.name
        assert reading.skill.name.isprintable()
        assert "/" not in reading.skill.name
        assert reading.skill.description.strip()
        assert len(reading.skill.headline) <= 1024


@pytest.mark.parametrize(
    "value", ["", "~", "3", "true", "{a: b}", "[[Read]]", "Bash(git", "Read) Write", "Bash (git:*)", "[Read, 3]"]
)
def test_a_list_of_tools_nobody_can_read_refuses_the_skill(value: str) -> None:
    """A list of tools that nobody can read refuses the skill: it fails closed."""
    reading = read_document(f"---\nname: x\ndescription: y\nallowed-tools: {value}\n---\nbody\n", "x")
    assert reading.skill is None
    assert any("allowed-tools" in text for text in told(reading, "fault"))


def test_a_list_of_no_tools_is_one() -> None:
    """An empty list of tools is none, and is not the same as no list."""
    text = "---\nname: x\ndescription: y\n{}---\nbody\n"
    readings = [read_document(text.format(line), "x").skill for line in ("allowed-tools: []\n", "")]
    assert [(), None] == [skill.allowed for skill in readings if skill is not None]


@pytest.mark.parametrize("name", ["a\u200bb", "a\u202eb", "a/b", "a\\\\b", "..", "a\\nb", "a\\eb"])
def test_a_name_that_deceives_is_refused(name: str) -> None:
    """A name that is a path, breaks a line or holds what nobody sees is refused."""
    assert read_document(f'---\nname: "{name}"\ndescription: y\n---\nbody\n', "x").skill is None


def test_what_is_off_the_specification_is_told_more_strictly_by_the_check() -> None:
    """What is off the specification but usable loads with a warning that the check counts as a fault."""
    reading = read_document("---\nname: Other\ndescription: y\nversion: 2\n---\nbody\n", "x")
    assert reading.skill is not None
    assert [False, False, True] == [problem.fault("f", strict=True).warning for problem in reading.problems]
    assert [True, True, True] == [problem.fault("f").warning for problem in reading.problems]
    assert 1 == len(told(reading, "remark"))


@given(st.lists(st.sampled_from(["Read", "Bash(git add:*)", "Bash(a, b)", "mcp__x__y", "Edit(src/**)"]), max_size=6))
def test_tools_are_parted_but_not_inside_parentheses(tokens: list[str]) -> None:
    """Blanks and commas part a list of tools, but not inside parentheses."""
    assert tuple(tokens) == split_tools(" ".join(tokens)) == split_tools(", ".join(tokens))


@given(st.text(alphabet="Bash(git,: *)[]", max_size=30))
def test_splitting_keeps_every_letter_or_refuses(text: str) -> None:
    """Splitting a list keeps every letter that is no separator, or refuses the list."""
    try:
        found = split_tools(text)
    except TokenError:
        return
    assert text.replace(" ", "").replace(",", "") == "".join(found).replace(" ", "").replace(",", "")


@pytest.mark.parametrize(
    ("token", "rules"),
    [
        ("Read", ("read_file",)),
        ("Bash", ("shell",)),
        ("Bash(git add:*)", ("shell(git add *)",)),
        ("Bash(git status)", ("shell(git status)",)),
        ("Bash(hg:*, svn:*)", ("shell(hg *)", "shell(svn *)")),
        ("Bash(npm run test*)", ("shell(npm run test *)",)),
        ("Bash(git * main)", ()),
        ("Bash(*:*)", ()),
        ("Edit(src/**)", ("edit_file(src/**)",)),
        ("Write(/etc/passwd)", ()),
        ("Write(~/x)", ()),
        ("WebFetch(domain:docs.python.org)", ("fetch_url(docs.python.org)",)),
        ("WebFetch(domain:*)", ()),
        ("mcp__github__get_issue", ("mcp(github/get_issue)",)),
        ("write_file(out/*)", ("write_file(out/*)",)),
        ("shell(make *)", ("shell(make *)",)),
        ("Task", ()),
        ("*", ()),
        ("mcp_*", ()),
        ("NoSuch(", None),
    ],
)
def test_an_entry_pre_approves_no_more_than_it_says(token: str, rules: tuple[str, ...] | None) -> None:
    """An entry of allowed-tools becomes rules that allow no more than it says, or none."""
    if rules is None:
        with pytest.raises(TokenError):
            split_tools(token)
    else:
        assert rules == allow_rules(token)


@pytest.mark.parametrize(
    ("pattern", "rules"),
    [
        ("git push", ("shell(git push)",)),
        ("git push *", ("shell(git push *)",)),
        ("git push*", ("shell(git push *)",)),
        ("git push * --force", ("shell(git push *)",)),
        ("rm*", ("shell(rm *)",)),
        ("* --force", ("shell(*)",)),
    ],
)
def test_a_ban_that_cannot_be_said_exactly_grows(pattern: str, rules: tuple[str, ...]) -> None:
    """A ban on a pattern with a wildcard inside forbids all that begins like it; a glued star means whole words."""
    assert rules == forbidding("shell", pattern)
