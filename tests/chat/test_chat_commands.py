"""Slash commands: how a line is read, completed, and turned into other commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.chat.commands import (
    OWN,
    Given,
    Prompt,
    Slash,
    Wrong,
    completed,
    completions,
    elenco_words,
    help_lines,
    read,
)

PLUGIN = Slash("greet", "[WORDS]", "says hello", origin="plugin")


@pytest.mark.parametrize("slash", OWN, ids=lambda slash: slash.name)
def test_every_command_is_read_completed_and_told_of(slash: Slash) -> None:
    """Every command is read with what follows it, completed from its beginning, and told of in the help."""
    assert Given(slash, "one two") == read(f"/{slash.name}  one two ")
    assert slash in completions(f"/{slash.name[:2]}")
    assert any(line.startswith(slash.shown) for line in help_lines())


def test_the_issue_names_these_commands() -> None:
    """All commands that were asked for are there."""
    wanted = (
        "help skills agents models status thinking debug mcps tools budget compact undo sessions new fork rename "
        "export copy cancel theme exit"
    )
    assert set(wanted.split()) <= {slash.name for slash in OWN}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("how are words split?", "how are words split?"),
        ("/etc/hosts says what?", "/etc/hosts says what?"),
        ("/usr/bin", "/usr/bin"),
        ("//help is a word", "/help is a word"),
        ("  two\n/help  ", "two\n/help"),
    ],
)
def test_what_is_no_command_is_a_prompt(line: str, text: str) -> None:
    """A path, a line with two slashes, and a slash further down are words for the agent."""
    assert Prompt(text) == read(line)


def test_a_mistyped_command_names_the_nearest_and_is_not_sent() -> None:
    """A mistyped command is told, with the nearest one, and is no prompt."""
    found = read("/modles gpt")
    assert isinstance(found, Wrong)
    assert "did you mean '/models'?" in found.why


def test_commands_of_plugins_and_prompts_of_servers_are_commands() -> None:
    """What plugins bring is known by its name; what a server offers is known by its colon."""
    assert Given(PLUGIN, "you") == read("/greet you", [PLUGIN])
    found = read("/notes:daily day=monday")
    assert isinstance(found, Given)
    assert ("server", "day=monday") == (found.slash.origin, found.rest)


def test_the_line_mode_says_which_commands_need_the_screen() -> None:
    """A command that needs the screen is refused in the line mode with the reason."""
    found = read("/theme nord", lines=True)
    assert isinstance(found, Wrong)
    assert "needs the screen" in found.why


def test_a_beginning_is_completed_as_far_as_it_is_sure() -> None:
    """Tab adds what all candidates share, and the whole command with a space where there is one."""
    assert "/mcps " == completed("/mc")
    assert "/th" == completed("/t" + "h")
    assert "/ex" == completed("/e")
    assert "/greet " == completed("/gr", [PLUGIN])
    assert "hello" == completed("hello")


@given(st.text(alphabet="/abcdehlmnopst \n:'", max_size=20))
def test_every_line_is_a_command_a_prompt_or_told_to_be_wrong(line: str) -> None:
    """No line fails, and only a slash at the beginning makes a command."""
    found = read(line)
    assert isinstance(found, Prompt | Given | Wrong)
    if not line.strip().startswith("/"):
        assert Prompt(line.strip()) == found


@given(st.sampled_from(OWN), st.integers(0, 12))
def test_completing_never_loses_what_was_typed(slash: Slash, length: int) -> None:
    """A completed line begins with what was typed, and completing it again changes nothing but a whole command."""
    line = f"/{slash.name}"[: max(1, length)]
    assert completed(line).startswith(line)
    assert completed(completed(line)) == completed(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/skills", ("skills", "--workspace", "/ws")),
        ("/agents", ("agents", "--workspace", "/ws")),
        ("/models", ("models", "--workspace", "/ws")),
        ("/models lab/x", None),
        ("/mcps", ("mcp", "--workspace", "/ws")),
        ("/tools", ("tools", "--workspace", "/ws", "--agent", "writer")),
        ("/undo", ("undo", "k7f2")),
        ("/undo 12", ("undo", "k7f2", "--to", "12")),
        ("/rename my notes", ("rename", "k7f2", "my notes")),
        ("/greet 'a b' c", ("greet", "a b", "c")),
        ("/new", None),
    ],
)
def test_many_commands_are_other_commands_of_the_command_line(line: str, words: object) -> None:
    """A command that the command line has is done by it, about the conversation's run."""
    found = read(line, [PLUGIN])
    assert isinstance(found, Given)
    assert words == elenco_words(found, workspace="/ws", agent="writer", run="k7f2")


def test_what_needs_a_run_says_that_there_is_none() -> None:
    """A command about the conversation says so when nothing has been said yet."""
    found = read("/undo")
    assert isinstance(found, Given)
    assert "nothing has been said yet" == elenco_words(found, workspace="/ws", agent="writer", run=None)
