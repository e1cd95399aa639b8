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
    steering,
)
from runtime.errors import UsageError
from runtime.watch.commands import Cancel, ChangeLimits, Compact, Say, SetModel, SwitchServer

PLUGIN = Slash("greet", "[WORDS]", "says hello", origin="plugin")


@pytest.mark.parametrize("slash", OWN, ids=lambda slash: slash.name)
def test_every_command_is_read_completed_and_told_of(slash: Slash) -> None:
    """Every command is read with what follows it, completed from its beginning, and told of in the help."""
    assert Given(slash, "one two") == read(f"/{slash.name}  one two ")
    assert slash in completions(f"/{slash.name[:2]}")
    assert any(line.startswith(slash.shown) for line in help_lines())


ASKED_FOR = (
    "help", "skills", "agents", "models", "status", "thinking", "debug", "mcps", "tools", "budget", "compact", "undo",
    "sessions", "new", "fork", "rename", "export", "copy", "cancel", "theme", "exit",
)  # fmt: skip


@pytest.mark.parametrize("lines", [False, True], ids=["screen", "lines"])
def test_both_modes_know_every_command_that_was_asked_for(*, lines: bool) -> None:
    """Each command is one in both modes, but for /theme, of which lines say in one that they have no colours."""
    unknown = [name for name in ASKED_FOR if not isinstance(read(f"/{name}", lines=lines), Given)]
    assert (["theme"] if lines else []) == unknown
    wrong = read("/theme nord", lines=True)
    assert isinstance(wrong, Wrong)
    assert "/theme needs the screen: elenco chat without --plain" == wrong.why


@pytest.mark.parametrize("lines", [False, True], ids=["screen", "lines"])
def test_the_help_lists_what_the_mode_has_and_nothing_else(*, lines: bool) -> None:
    """Each line of the help begins with a command that can be typed, and none is left out."""
    listed = [line.split()[0] for line in help_lines([PLUGIN], lines=lines)]
    can = [
        f"/{each.name}" for each in (*OWN, PLUGIN) if isinstance(read(f"/{each.name}", [PLUGIN], lines=lines), Given)
    ]
    assert can == listed


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/cancel", Cancel(by="you")),
        ("/say don't stop", Say(text="don't stop", by="you")),
        ("/compact", Compact(by="you")),
        ("/models lab/x", SetModel(model="lab/x", by="you")),
        ("/models", None),
        ("/budget", None),
        ("/budget max-steps +20", ChangeLimits(limits={"max_steps": "+20"}, by="you")),
        ("/mcps off notes", SwitchServer(server="notes", on=False, by="you")),
        ("/greet you", None),
        ("/help", None),
    ],
)
def test_what_acts_on_a_turn_is_a_command_to_its_run(line: str, command: object) -> None:
    """A command that steers is what any client of the run would send; the others send nothing."""
    found = read(line, [PLUGIN])
    assert isinstance(found, Given)
    assert command == steering(found, "you")


@pytest.mark.parametrize("line", ["/say", "/budget max_steps", "/budget steps 3", "/mcps of notes"])
def test_what_would_steer_and_is_incomplete_says_how_it_is_written(line: str) -> None:
    """A steering command without what it needs tells what it needs."""
    found = read(line)
    assert isinstance(found, Given)
    with pytest.raises(UsageError, match="write /"):
        steering(found, "you")


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
