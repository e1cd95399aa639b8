"""A draft of an agent's file: setting a key in its text, its rights within those of the saved file, and saving it."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cast import find
from runtime.dash.draft import AGENT_FILE, definition_of, save, saving, taking_part, within
from runtime.dash.headers import with_model, with_tools
from runtime.definitions import read
from runtime.errors import DefinitionError, UsageError
from runtime.known import TOOL_NAMES

AGENT = "---\nname: scout\ndescription: Looks around.\ntools: [read_file]\n---\nYou look around.\n"
TOOL_LINES = st.sampled_from(
    [
        "",
        "tools: [read_file]\n",
        "tools: [read_file,   # why\n  search_text]\n",
        "tools:\n- read_file\n- search_text\n",
        "tools:\n  # the first\n  - read_file\n\n  - shell\n",
        "tools: read_file  # only this\n",
        "tools: []\n",
    ]
)
OTHER_LINES = st.lists(
    st.sampled_from(
        [
            "max_steps: 9\n",
            "# a comment\n",
            "permissions:\n  deny: [shell]\n",
            "when_to_use: |\n  tools: never\n  ---like this\n",
            "model: openai/x # the big one\n",
            "subagents:\n- other\n",
        ]
    ),
    max_size=4,
    unique=True,
)


@given(TOOL_LINES, OTHER_LINES, OTHER_LINES, st.lists(st.sampled_from(TOOL_NAMES), unique=True, max_size=4))
def test_setting_tools_changes_the_tools_and_nothing_else(
    tools: str, before: list[str], after: list[str], names: list[str]
) -> None:
    """However a file writes its tools, setting them changes what it says of tools and leaves every other word."""
    lines = "".join([*before, tools, *(line for line in after if line not in before)])
    text = f"---\nname: a\ndescription: b\n{lines}---\nThe prompt\ntools: [shell]\n"
    changed = with_tools(text, names)
    old, new = read(text, "x"), read(changed, "x")
    assert attrs.evolve(old, tools=tuple(names), warnings=()) == attrs.evolve(new, warnings=())
    assert [line for line in changed.split("\n") if "comment" in line] == [
        line for line in text.split("\n") if "comment" in line
    ]
    assert with_tools(changed, names) == changed


@pytest.mark.parametrize("model", ["openai/gpt", "ollama/llama3:8b", "scripted/a b.yaml", "on", ""])
def test_a_model_is_set_and_taken_out_again(model: str) -> None:
    """A model is set in the text, whatever it is called, and an empty one takes the key out."""
    if " " in model:
        return
    changed = with_model(AGENT, model)
    assert (model or None) == read(changed, "x").model
    assert AGENT == with_model(changed, "")


def test_a_text_without_front_matter_is_not_changed_by_a_click() -> None:
    """Where there is no front matter, there is one clear line, and no guess."""
    with pytest.raises(UsageError, match="no front matter"):
        with_tools("You look around.\n", ["shell"])
    with pytest.raises(UsageError, match="change it in the text"):
        with_tools("---\nname: a\ndescription: b\n'tools': [shell]\n---\nx\n", ["read_file"])


def test_windows_line_ends_stay() -> None:
    """A file with CRLF keeps it."""
    assert "tools: [shell]\r\n" in with_tools(AGENT.replace("\n", "\r\n"), ["shell"])


WIDE = """\
---
name: scout
description: Looks around.
tools: [shell]
permissions: {allow: ["shell(git *)", "write_file"], deny: ["shell(rm *)"]}
hooks: {before_tool: [{command: "true"}]}
output: {check: "checks:all"}
---
Look.
"""


def test_a_draft_has_no_right_that_the_saved_file_has_not() -> None:
    """Allow rules, hooks and Python that the saved file does not have are left out and told; what forbids stays."""
    draft = definition_of(WIDE, AGENT_FILE)
    kept = within(draft, definition_of(AGENT, AGENT_FILE))
    assert ((), ("shell(rm *)",)) == (kept.definition.permissions.allow, kept.definition.permissions.deny)
    assert () == kept.definition.hooks
    assert kept.definition.output is not None
    assert kept.definition.output.check is None
    told = ("allow rule shell(git *)", "allow rule write_file", "hook before_tool", "Python check checks:all")
    assert told == kept.left_out
    assert draft == within(draft, draft).definition
    assert told == within(draft, None).left_out


def test_a_draft_takes_the_place_of_its_file_in_the_cast(tmp_path: Path) -> None:
    """A draft joins the cast under its name, within the rights of the file it replaces; the others stay."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "scout.md").write_text(AGENT)
    found = find(tmp_path)
    cast = taking_part(definition_of(WIDE, AGENT_FILE), tmp_path / AGENT_FILE)(found)
    assert ("shell",) == cast.get("scout").tools
    assert () == cast.get("scout").permissions.allow
    assert found.members.keys() == cast.members.keys()


def test_a_save_writes_what_was_shown_and_covers_nothing_else(tmp_path: Path) -> None:
    """The diff comes first; a save over a file that changed since is refused and leaves it as it is."""
    first = saving(tmp_path, AGENT)
    assert ("agents/scout.md", "none") == (first.path, first.seen)
    assert "+You look around." in first.diff
    assert not (tmp_path / "agents").exists()
    assert "agents/scout.md" == save(tmp_path, AGENT, first.seen)
    file = tmp_path / "agents" / "scout.md"
    with pytest.raises(UsageError, match="changed meanwhile"):
        save(tmp_path, AGENT, first.seen)
    second = saving(tmp_path, AGENT.replace("look", "see"))
    file.write_text("mine")
    with pytest.raises(UsageError, match="changed meanwhile"):
        save(tmp_path, AGENT.replace("look", "see"), second.seen)
    assert "mine" == file.read_text()
    third = saving(tmp_path, AGENT)
    save(tmp_path, AGENT, third.seen)
    assert AGENT == file.read_text()
    assert ["scout.md"] == [path.name for path in (tmp_path / "agents").iterdir()]


def test_a_faulty_draft_is_not_saved(tmp_path: Path) -> None:
    """A draft with faults is refused with their places, and no folder is made."""
    with pytest.raises(DefinitionError, match="unknown key 'modle'"):
        save(tmp_path, AGENT.replace("tools", "modle"), "none")
    assert [] == list(tmp_path.iterdir())


def test_no_link_leads_a_save_out_of_the_workspace(tmp_path: Path) -> None:
    """Neither a folder of agents nor an agent's file that is a link is written through."""
    inside, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    (inside / "agents").symlink_to(outside)
    with pytest.raises(UsageError, match="cannot be"):
        save(inside, AGENT, "none")
    (inside / "agents").unlink()
    (inside / "agents").mkdir()
    (inside / "agents" / "scout.md").symlink_to(outside / "scout.md")
    with pytest.raises(UsageError, match="cannot be read"):
        saving(inside, AGENT)
    assert [] == list(outside.iterdir())
