"""Agent files: what is understood, and every fault with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cast import find
from runtime.definitions import Definition, load, read
from runtime.errors import DefinitionError, UsageError
from runtime.frontmatter import split

GOOD = """---
name: writer
description: Writes a digest.
tools: [read_file]
subagents: reviewer
max_steps: 6
cost_budget: 0.5
permissions: {allow: ["shell(git status)"]}
loops: {nudge: 2, block: 3, stop: 4}
output: {max_chars: 400, retries: 1}
thinking: low
---
You write. {date} and {other}
"""


def faults(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(DefinitionError) as caught:
        read(text, "agents/writer.md")
    return [(fault.line, fault.column, fault.text) for fault in caught.value.faults]


def test_a_good_file_is_read_whole() -> None:
    """A good file is read whole."""
    definition = read(GOOD, "agents/writer.md")
    assert ("writer", "Writes a digest.") == (definition.name, definition.description)
    assert (("read_file",), ("reviewer",)) == (definition.tools, definition.subagents)
    assert (6, 0.5) == (definition.caps.max_steps, definition.caps.cost_budget)
    assert ("shell(git status)",) == definition.permissions.allow
    assert "You write. {date} and {other}" == definition.prompt
    assert () == definition.warnings


def test_a_misspelt_key_names_its_place_and_the_nearest_known_one() -> None:
    """A misspelt key names its place and the nearest known one."""
    assert [(4, 1, "unknown key 'toolz'; did you mean 'tools'?")] == faults(GOOD.replace("tools:", "toolz:"))


def test_all_faults_are_told_at_once() -> None:
    """All faults are told at once, nested ones with their own place."""
    text = "---\nname: Writer One\ndescription: x\nmax_steps: none\noutput:\n  retries: 99\n  skema: {}\n---\nhi\n"
    found = faults(text)
    assert [2, 4, 6, 7] == [line for line, _, _ in found]
    assert "1 to 64 of a-z, 0-9 and -" in found[0][2]
    assert "expected a whole number" in found[1][2]
    assert "did you mean 'schema'?" in found[3][2]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "begins with front matter"),
        ("# no front matter\n", 1, "begins with front matter"),
        ("---\nname: a\n", 1, "that ends the front matter is missing"),
        ("---\n---\nbody\n", 2, "the front matter is empty"),
        ("---\nname: a\n---\nbody\n", 2, "description missing"),
        ("---\n- a\n---\nbody\n", 2, "expected a mapping"),
        ("---\nname: a\ndescription: b: c\n---\nbody\n", 3, "not valid YAML"),
        ("---\nname: a\nname: b\ndescription: c\n---\nbody\n", 3, "'name' stands twice"),
        ("---\nname: a\ndescription: ''\n---\nbody\n", 3, "an empty one"),
    ],
)
def test_a_malformed_file_says_where(text: str, line: int, what: str) -> None:
    """A malformed file says where, and what is wrong."""
    found = faults(text)
    assert line == found[0][0]
    assert what in found[0][2]


@pytest.mark.parametrize(
    ("header", "line", "column", "what"),
    [
        ("tools: [a, b\nmodel: offline/extract\nmax_steps: 3\n", 4, 8, "this [ is not closed"),
        ("tools: [a, b\n", 4, 8, "this [ is not closed"),
        ("permissions:\n  allow: [a, b\n  deny: [c]\n", 5, 10, "this [ is not closed"),
        ("permissions: {allow: [a, b]\nmodel: a/b\n", 4, 14, "this { is not closed"),
        ('when_to_use: "now\nmodel: a/b\n', 4, 14, 'this " is not closed'),
        ("tools [a, b]\nmodel: a/b\n", 4, 1, "could not find expected ':'"),
        ("tools: [a,\n  b: c: d,\n  e]\n", 5, 7, "expected ',' or ']', but got ':'"),
    ],
)
def test_yaml_that_is_not_closed_is_told_where_it_begins(header: str, line: int, column: int, what: str) -> None:
    """A bracket or quote that is never closed is told where it was opened, with that line; other slips in place."""
    text = f"---\nname: a\ndescription: b\n{header}---\nbody\n"
    with pytest.raises(DefinitionError) as caught:
        read(text, "a.md")
    (fault,) = caught.value.faults
    assert (line, column, text.split("\n")[line - 1]) == (fault.line, fault.column, fault.source)
    assert what in fault.text


def test_windows_line_ends_a_bom_and_blanks_are_all_right() -> None:
    """Windows line ends, a BOM, and blanks after the dashes are all right."""
    text = "\ufeff" + GOOD.replace("---\n", "--- \n", 1).replace("\n", "\r\n")
    assert read(GOOD, "f") == read(text, "f")


def test_bytes_that_are_no_utf8_are_told_with_their_line(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are told with their line."""
    (tmp_path / "a.md").write_bytes(b"---\nname: a\ndescription: \xff\n---\n")
    with pytest.raises(DefinitionError, match=r":3:1: not UTF-8"):
        load(tmp_path / "a.md")


def test_no_tools_key_and_no_prompt_are_warnings() -> None:
    """No tools key and no prompt are warnings, not faults."""
    definition = read("---\nname: a\ndescription: b\n---\n", "a.md")
    assert 2 == len(definition.warnings)
    assert () == definition.tools


@given(st.text(), st.integers(0, 400))
def test_no_text_whatever_crashes_the_reader(junk: str, at: int) -> None:
    """No text whatever crashes the reader: a Definition or faults, nothing else."""
    try:
        assert isinstance(read(GOOD[:at] + junk + GOOD[at:], "x.md"), Definition)
    except DefinitionError as error:
        assert error.faults


@given(st.text())
def test_splitting_loses_no_line(text: str) -> None:
    """Splitting a file loses no line of it."""
    cut = split(text)
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if cut.header is None:
        assert whole == cut.body
    else:
        assert whole.split("\n")[1:].count("---") >= 0
        assert whole.endswith(cut.body)
        assert cut.header[:-1] == "\n".join(whole.split("\n")[1 : cut.body_line - 2])


def test_the_first_place_wins_and_the_shadowed_file_is_told(tmp_path: Path) -> None:
    """The first place wins, and the shadowed file is told."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "researcher.md").write_text(GOOD.replace("name: writer", "name: researcher"))
    cast = find(tmp_path, tmp_path / "nobody")
    assert "workspace" == cast.members["researcher"].origin
    assert "shipped" == cast.members["coordinator"].origin
    assert ["researcher"] == [member.name for member in cast.shadowed]


def test_a_faulty_file_is_a_member_with_its_faults(tmp_path: Path) -> None:
    """A faulty file is a member with its faults, so that nobody wonders where it went."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "broken.md").write_text("---\nnme: x\n---\n")
    cast = find(tmp_path, tmp_path / "nobody")
    with pytest.raises(DefinitionError, match=r"agents/broken.md:2:1: .*did you mean 'name'"):
        cast.get("broken")
    with pytest.raises(UsageError, match="did you mean 'broken'"):
        cast.get("brokn")


def test_a_faulty_file_keeps_the_name_it_gives_itself(tmp_path: Path) -> None:
    """A faulty file is known by the name it gives itself, where that can be read, and shadows others of that name."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.md").write_text("---\nname: researcher\ndescription: x\nmax_steps: 0\n---\nhi\n")
    cast = find(tmp_path, tmp_path / "nobody")
    with pytest.raises(DefinitionError, match=r"agents/mine.md:4:12: max_steps: expected 1 or more"):
        cast.get("researcher")


def test_an_agent_asked_for_by_its_files_name_is_told_its_own(tmp_path: Path) -> None:
    """Who asks for an agent by its file's name is told how the agent is called, also where another agent names it."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "foo.md").write_text(GOOD.replace("name: writer", "name: bar"))
    (tmp_path / "agents" / "boss.md").write_text("---\nname: boss\ndescription: x\nsubagents: [foo]\n---\nhi\n")
    cast = find(tmp_path, tmp_path / "nobody")
    with pytest.raises(UsageError, match=r"unknown agent 'foo'; the agent in agents/foo.md is called 'bar'"):
        cast.get("foo")
    with pytest.raises(DefinitionError, match=r"unknown agent 'foo'; the agent in agents/foo.md is called 'bar'"):
        cast.closure("boss")


def test_the_shipped_cast_is_whole(tmp_path: Path) -> None:
    """The shipped cast is whole: the coordinator reaches researcher, reviewer and writer."""
    names = {definition.name for definition in find(tmp_path, tmp_path / "nobody").closure("coordinator")}
    assert {"coordinator", "researcher", "reviewer", "writer"} == names
