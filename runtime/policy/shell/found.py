"""What a parse collects: every simple command, wherever it stands, and what else the line does."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .words import Word

Flag: TypeAlias = Literal[
    "redirect_write",
    "redirect_read",
    "substitution",
    "process_substitution",
    "background",
    "subshell",
    "pipe",
    "chain",
    "heredoc",
    "interpreter_inline",
    "env_wrapper",
    "variable_assignment",
    "glob",
    "control_flow",
    "function_def",
    "eval_like",
    "unparsable",
]


class NotUnderstood(ValueError):
    """The line is no shell this parser knows for certain; the message says why."""


@attrs.define
class Found:
    """Filled by one parse, read-only afterwards.

    `commands`: the words of each simple command, before brace expansion, without its redirections.
    `notes`: further reasons to ask. `texts`: what here-documents and here-strings feed to somebody's standard input.
    `values`: the texts a variable may have. `numbers`: names that arithmetic reads, `worded`: names a loop or an
    expansion gave a text to; both together let a text run as arithmetic, which may hold a command (`guesses`).
    `gives`: an expansion sets a variable.
    """

    commands: list[tuple[Word, ...]] = attrs.Factory(list[tuple[Word, ...]])
    flags: dict[Flag, None] = attrs.Factory(dict[Flag, None])
    writes: list[str] = attrs.Factory(list[str])
    notes: list[str] = attrs.Factory(list[str])
    texts: list[str] = attrs.Factory(list[str])
    guesses: list[str] = attrs.Factory(list[str])
    values: dict[str, list[str]] = attrs.Factory(dict[str, list[str]])
    numbers: set[str] = attrs.Factory(set[str])
    worded: set[str] = attrs.Factory(set[str])
    gives: bool = False

    def flag(self, flag: Flag) -> None:
        self.flags[flag] = None

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def value(self, name: str, word: Word | None) -> None:
        """Remember that a variable may hold this text; too many or unknown ones are let go."""
        known = self.values.setdefault(name, [])
        if word is not None and word.static and len(known) < 8 and word.text not in known:
            known.append(word.text)
