"""What stands behind a command: the ones it runs in turn, and text that somebody will read as commands."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .found import Flag
from .words import Word

Words = tuple[Word, ...]


@attrs.frozen
class Inner:
    """A command another one runs. `open`: more arguments come at run time (xargs). `renamed`: runs as another file."""

    words: Words
    open: bool = False


@attrs.define
class Behind:
    """Filled by looking at one command.

    `commands` run for certain and are decided like any other. `maybe` are guesses, where the command's own options
    were not understood: only deny and ask rules look at them. `texts` are read as shell commands, `guesses` perhaps.
    `notes` are reasons to ask. `feeds`: commands are read from standard input.
    """

    commands: list[Inner] = attrs.Factory(list[Inner])
    maybe: list[Words] = attrs.Factory(list[Words])
    texts: list[Word] = attrs.Factory(list[Word])
    guesses: list[str] = attrs.Factory(list[str])
    flags: set[Flag] = attrs.Factory(set[Flag])
    notes: list[str] = attrs.Factory(list[str])
    feeds: bool = False
    named: bool = False
    """Whether a rule that names the inner command in full may allow it together with its wrapper."""

    def puzzled(self, words: Sequence[Word], why: str) -> None:
        """Nothing certain can be said: every rest of the words may be a command."""
        self.notes.append(why)
        self.maybe.extend(tuple(words[at:]) for at in range(1, min(len(words), MOST_GUESSES)))
        self.guesses.extend(word.text for word in words[1:MOST_GUESSES] if word.static and " " in word.text)

    def runs(self, words: Sequence[Word], *, open: bool = False) -> None:
        self.flags.add("env_wrapper")
        self.commands.append(Inner(tuple(words), open))

    def reads(self, text: Word) -> None:
        """An argument is shell text."""
        self.flags.add("interpreter_inline")
        self.texts.append(text)


MOST_GUESSES = 40


def name_of(words: Sequence[Word]) -> str:
    """A command's name without its path; "" if it is known only at run time."""
    head = words[0]
    return head.text.rpartition("/")[2] if head.static and not head.glob else ""
