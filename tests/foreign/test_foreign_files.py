"""Agent files of other runtimes in the cast: what their keys mean here, and what they cannot widen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.cast import find
from runtime.definitions import Definition, Style
from runtime.errors import DefinitionError
from runtime.foreign.models import settled
from runtime.foreign.names import EDITORS, WRITERS
from runtime.foreign.read import read_foreign
from runtime.known import MEMORY_TOOLS, TOOL_NAMES


def taken(front: str, style: Style = "claude", body: str = "You review {tools}.") -> Definition:
    return read_foreign(f"---\n{front}---\n{body}\n", f"{style}.md", style, "reviewer").definition


def warnings(definition: Definition) -> list[str]:
    return [fault.text for fault in definition.warnings]


CLAUDE = "name: reviewer\ndescription: Reviews.\n"
OPENCODE = "description: Reviews.\n"


def test_tools_are_ours_that_do_the_same() -> None:
    """A file's tools become ours that do the same; those that are not here are told."""
    definition = taken(CLAUDE + "tools: Read, Grep, LS, WebFetch, FancyNewTool, mcp__x__y\n")
    assert ("read_file", "search_text", "list_files", "fetch_url") == definition.tools
    one = "mcp__x__y: tools of a server come together; write mcp__SERVER for all of them"
    assert ["there is no tool here for FancyNewTool", one] == warnings(definition)


def test_the_servers_of_a_list_of_tools_are_its_servers() -> None:
    """A server whose tools a list names as a whole is one of the agent's servers, and so is one it names apart."""
    definition = taken(CLAUDE + "tools: Read, mcp__github, mcp__time__*\nmcpServers: [files, {x: {command: y}}]\n")
    assert ("github", "time", "files") == definition.mcps
    assert ["a server described here is not started; put it under mcpServers in elenco.yaml"] == warnings(definition)


def test_no_key_means_every_tool_and_a_ban_takes_all_that_do_such_a_thing() -> None:
    """Without `tools` a file gets every tool but memory; a ban on writing takes away every tool that writes."""
    assert tuple(name for name in TOOL_NAMES if name not in MEMORY_TOOLS) == taken(CLAUDE).tools
    left = set(taken(CLAUDE + "disallowedTools: Write, Edit\n").tools)
    assert left.isdisjoint({*EDITORS, *WRITERS})
    assert "read_file" in left


def test_memory_is_given_to_those_alone_that_name_it() -> None:
    """A file of another runtime gets the tools of memory where it names them, never with all others."""
    assert set(MEMORY_TOOLS).isdisjoint(taken(CLAUDE + 'tools: ["*"]\n').tools)
    assert ("recall",) == taken(CLAUDE + "tools: recall\n").tools
    assert set(MEMORY_TOOLS).isdisjoint(taken("description: x\ntools: {'*': true}\n", "opencode").tools)
    assert "recall" in taken("description: x\ntools: {recall: true}\n", "opencode").tools
    assert "recall" not in taken("description: x\ntools: {recall: true, 're*': false}\n", "opencode").tools


def test_agents_it_may_call_are_its_subagents_if_they_are_there(tmp_path: Path) -> None:
    """The agents a file may call are its subagents, those that are there; the others are told."""
    folder = tmp_path / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "lead.md").write_text(
        "---\nname: lead\ndescription: Leads.\ntools: Agent(worker, gone), Read\n---\nLead.\n"
    )
    (folder / "worker.md").write_text("---\nname: worker\ndescription: Works.\n---\nWork.\n")
    lead = find(tmp_path, tmp_path).get("lead")
    assert (("worker",), ("read_file",)) == (lead.subagents, lead.tools)
    assert ["there is no agent 'gone' to call"] == warnings(lead)


def test_the_text_is_the_prompt_word_for_word() -> None:
    """The text of another runtime's file is the prompt word for word, and instruction files are part of it."""
    definition = taken(CLAUDE)
    assert ("You review {tools}.", "claude", True) == (definition.prompt, definition.style, definition.instructions)


@pytest.mark.parametrize(
    ("written", "environment", "model", "told"),
    [
        ("inherit", {}, None, ""),
        ("sonnet", {"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-5-5", ""),
        ("sonnet", {}, None, "anthropic/claude-sonnet-5-5 needs a key in ANTHROPIC_API_KEY; the run's model answers"),
        ("claude-opus-4-1", {"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-opus-4-1", ""),
        ("gpt-9", {}, None, "the model 'gpt-9' is not known here; the run's model answers"),
        ("ollama/qwen3", {}, "ollama/qwen3", ""),
    ],
)
def test_a_model_that_cannot_be_asked_is_told(
    written: str, environment: dict[str, str], model: str | None, told: str
) -> None:
    """A model's name becomes ours where it can be asked; else the run's model answers, and that is told."""
    definition = settled(taken(CLAUDE + f"model: {written}\n"), environment)
    assert model == definition.model
    assert ([told] if told else []) == warnings(definition)


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits", "dontAsk", "auto"])
def test_no_file_switches_questions_off(mode: str) -> None:
    """No file switches questions off: its mode is told and not used."""
    definition = taken(CLAUDE + f"permissionMode: {mode}\n")
    assert ((), (), ()) == (definition.permissions.allow, definition.permissions.ask, definition.permissions.deny)
    assert any(mode in text and "not used" in text for text in warnings(definition))


def test_planning_denies_writes_and_commands() -> None:
    """The mode that only plans denies writes and commands."""
    assert ("write_file", "shell", "start_job") == taken(CLAUDE + "permissionMode: plan\n").permissions.deny


@pytest.mark.parametrize("key", ["disallowed_tools: Write", "Tools: Read", "max_turns: 3", "permissionmode: plan"])
def test_a_slip_in_a_right_or_limit_refuses_the_file(key: str) -> None:
    """A key that is a slip of one that gives or takes rights refuses the file."""
    with pytest.raises(DefinitionError, match="did you mean"):
        taken(CLAUDE + key + "\n")


MAP = "permission:\n  edit: deny\n  bash:\n    '*': ask\n    git diff*: allow\n    git push: deny\n  webfetch: deny\n"
LIST = """permissions:
  - {action: edit, resource: '*', effect: deny}
  - {action: shell, resource: '*', effect: ask}
  - {action: shell, resource: git diff*, effect: allow}
  - {action: shell, resource: git push, effect: deny}
  - {action: webfetch, effect: deny}
"""


@pytest.mark.parametrize("written", [MAP, LIST])
def test_both_generations_of_permissions_mean_the_same(written: str) -> None:
    """The map of the first generation and the list of the second mean the same."""
    definition = taken(OPENCODE + written, "opencode")
    rules = definition.permissions
    assert (("shell(git diff *)",), (), ("shell(git push)",)) == (rules.allow, rules.ask, rules.deny)
    assert {*EDITORS, *WRITERS, "fetch_url"}.isdisjoint(definition.tools)
    assert "opencode" == definition.style


@pytest.mark.parametrize(
    "written",
    [
        "permission: {bash: denied}\n",
        "permission: {bash: {'*': true}}\n",
        "permission: [bash]\n",
        "permissions: {edit: deny}\n",
        "permissions: [{action: edit, resource: '*'}]\n",
        "permissions: [{action: edit, effekt: deny}]\n",
        "permissions: [edit]\n",
        "tools: {bash: 'false'}\n",
        "disable: 'yes'\n",
        "permission: {bassh: deny}\n",
        "tools: [bash]\n",
        "steps: 0\n",
        "temperature: hot\n",
    ],
)
def test_what_cannot_be_read_as_written_refuses_the_file(written: str) -> None:
    """A right or a number that cannot be read as it is written refuses the file."""
    with pytest.raises(DefinitionError):
        taken(OPENCODE + written, "opencode")


def test_a_ban_that_says_more_than_our_rules_lets_nothing_slip_through() -> None:
    """What a glued star bans beside whole words asks, where everything else is allowed."""
    rules = taken(OPENCODE + "permission: {bash: {'*': allow, 'git push*': deny}}\n", "opencode").permissions
    assert (("shell",), ("shell(git *)",), ("shell(git push *)",)) == (rules.allow, rules.ask, rules.deny)


def test_a_deny_for_all_swallows_its_exceptions() -> None:
    """Exceptions of a deny for all cannot be said in our rules: they fall away, and that is told."""
    definition = taken(OPENCODE + "permission: {bash: {'*': deny, 'git status': allow}}\n", "opencode")
    assert () == definition.permissions.allow
    assert ["bash is denied, so 'git status' is denied as well"] == warnings(definition)


def test_the_agents_it_may_call_are_those_it_allows_by_name() -> None:
    """Of agents that may be called, those that are named are its subagents; a deny for the others needs no rule."""
    definition = taken(OPENCODE + "permission: {task: {'*': deny, a: allow, b: ask, c: deny}}\n", "opencode")
    assert (("a", "b"), (), ("agent(b)",), ("agent(c)",)) == (
        definition.subagents,
        definition.permissions.allow,
        definition.permissions.ask,
        definition.permissions.deny,
    )


def test_everything_denied_but_reading() -> None:
    """A later entry for one action goes before an earlier one for all."""
    definition = taken(OPENCODE + "permission: {'*': deny, read: allow, grep: allow}\n", "opencode")
    assert {"read_file", "search_text"} <= set(definition.tools)
    assert {"write_file", "edit_file", "find_files", "fetch_url"}.isdisjoint(definition.tools)


def test_a_switched_off_agent_is_in_no_cast(tmp_path: Path) -> None:
    """A file that switches its agent off is told, and nobody is offered the agent."""
    folder = tmp_path / ".opencode" / "agent"
    (folder / "team").mkdir(parents=True)
    (folder / "off.md").write_text("---\ndescription: Off.\ndisable: true\n---\nx\n")
    (folder / "team" / "tester.md").write_text("---\ndescription: Tests.\n---\nx\n")
    cast = find(tmp_path, tmp_path)
    assert ["off"] == [member.name for member in cast.disabled]
    assert "off" not in cast.members
    assert "Tests." == cast.get("team-tester").description


@given(
    st.sampled_from(["claude", "opencode"]),
    st.dictionaries(
        st.sampled_from(
            ["name", "description", "tools", "model", "permission", "permissions", "hooks", "skills", "mode"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers(-3, 99) | st.sampled_from(["deny", "Read", "a: b", "*", "x(y"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["*", "bash", "edit"]), inner),
            max_leaves=6,
        ),
    ),
)
@settings(max_examples=60)
@example("opencode", {"permission": {"bash": {"*": "allow"}}})
def test_whatever_a_file_says_it_is_read_or_refused(style: Style, front: dict[str, Any]) -> None:
    """Whatever a file says, it is read or refused with its faults; what is read has only tools that are there."""

    try:
        definition = taken(json.dumps(front) + "\n", style)
    except DefinitionError as error:
        assert error.faults
    else:
        assert set(TOOL_NAMES) >= set(definition.tools)
