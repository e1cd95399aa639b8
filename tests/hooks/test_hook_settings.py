"""Hooks as files write them: their forms, and every fault with its place."""

from __future__ import annotations

import textwrap

import pytest

from runtime import config, definitions
from runtime.errors import DefinitionError
from runtime.hooks.settings import Hook


def hooks_of(text: str) -> tuple[Hook, ...]:
    return config.read(textwrap.dedent(text), "elenco.yaml").hooks


def faults_of(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        hooks_of(text)
    return [f"{fault.line}:{fault.column} {fault.text}" for fault in caught.value.faults]


def test_a_hook_is_a_line_a_mapping_or_one_of_a_list() -> None:
    """A hook is a shell line, a mapping, or one of a list of either."""
    found = hooks_of("""\
        hooks:
          run_start: date
          before_tool:
            - matcher: write_file|edit_file
              command: [./check.sh, --strict]
              timeout: 5
              on_error: allow
            - command: ./other.sh
              name: the other check
    """)
    assert [
        ("elenco.yaml:2 date", "run_start", "date", 60.0, "allow"),
        ("elenco.yaml:4 ./check.sh --strict", "before_tool", ("./check.sh", "--strict"), 5.0, "allow"),
        ("elenco.yaml:8 the other check", "before_tool", "./other.sh", 60.0, "deny"),
    ] == [(each.name, each.moment.name, each.command, each.timeout, each.on_error) for each in found]
    assert [True, True, False] == [found[1].matcher.fits(name) for name in ("write_file", "edit_file", "shell")]


def test_hooks_in_the_form_of_claude_code_settings_are_read() -> None:
    """Hooks in the form of Claude Code's settings, with its names of events and tools, are read."""
    found = hooks_of("""\
        hooks:
          PreToolUse:
            - matcher: Write|Edit
              hooks:
                - type: command
                  command: '"$CLAUDE_PROJECT_DIR"/check.sh'
                  timeout: 30
                - type: command
                  command: ./log.sh
          Stop:
            - hooks: [{type: command, command: ./done.sh}]
    """)
    assert ["before_tool", "before_tool", "actor_finish"] == [each.moment.name for each in found]
    assert ["PreToolUse", "PreToolUse", "Stop"] == [each.written for each in found]
    assert [True, True, False] == [found[1].matcher.fits(name) for name in ("write_file", "edit_file", "shell")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hooks: {before_tol: x}", "1:9 unknown event 'before_tol'; did you mean 'before_tool'?"),
        ("hooks: {PreToolUs: x}", "1:9 unknown event 'PreToolUs'; did you mean 'PreToolUse'?"),
        ("hooks: {before_tool: {comand: x}}", "1:23 unknown key 'comand'; did you mean 'command'?"),
        ("hooks: {before_tool: {matcher: x}}", "1:22 before_tool: it needs a command"),
        ("hooks: {before_tool: {command: ''}}", "1:22 before_tool: the command is empty"),
        ("hooks: {before_tool: {command: []}}", "1:32 command: the command is empty"),
        ("hooks: {before_tool: 3}", "1:22 before_tool: expected a command or a mapping, found the number 3"),
        (
            "hooks: {before_tool: {command: x, timeout: 0}}",
            "1:44 timeout: expected seconds above 0",
        ),
        ("hooks: {before_tool: {command: x, timeout: 9999}}", "1:44 timeout: expected 0 to 600"),
        (
            "hooks: {before_tool: {command: x, on_error: ask}}",
            "1:45 on_error: expected allow or deny, found the text 'ask'",
        ),
        (
            "hooks: {after_model: {command: x, on_error: deny}}",
            "1:45 on_error: after_model hooks cannot deny",
        ),
        (
            "hooks: {PreToolUse: [{hooks: [{type: prompt, command: x}]}]}",
            "1:38 type: only hooks of type command are run, found the text 'prompt'",
        ),
        ("hooks: {PreToolUse: [{matcher: x, hoks: []}]}", "1:35 unknown key 'hoks'"),
        ("hooks: [x]", "1:8 hooks: expected a mapping, found a list"),
    ],
)
def test_a_fault_in_a_hook_is_told_with_its_place(text: str, fault: str) -> None:
    """Every fault of a hook is told with line, column and the nearest known name."""
    assert any(each.startswith(fault) for each in faults_of(text)), faults_of(text)


def test_all_faults_of_all_hooks_are_told_at_once() -> None:
    """All faults of a hooks block are told at once."""
    found = faults_of("""\
        hooks:
          befor_tool: x
          after_tool:
            - command: x
              matcher: (a|b)
            - comand: y
    """)
    assert ["2", "5", "6"] == [each.partition(":")[0] for each in found]


def test_an_agent_file_may_bring_hooks() -> None:
    """An agent file's hooks are read like those of the settings, at their places in the file."""
    text = "---\nname: a\ndescription: d\ntools: []\nhooks:\n  before_tool: ./check.sh\n---\nHello.\n"
    assert ["agents/a.md:6 ./check.sh"] == [each.name for each in definitions.read(text, "agents/a.md").hooks]
    with pytest.raises(DefinitionError, match="unknown event 'before_tols'"):
        definitions.read(text.replace("before_tool", "before_tols"), "agents/a.md")
