"""Simple commands: assignments, words, redirections."""

from __future__ import annotations

import re
from abc import abstractmethod

import attrs

from .found import NotUnderstood
from .redirections import Redirections
from .words import Word

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\+?=", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARES = frozenset({"declare", "typeset", "local", "export", "readonly"})
_EVALUATED = frozenset({"PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "BASH_ENV", "ENV"})


class SimpleCommands(Redirections):
    """Reads simple commands."""

    @abstractmethod
    def function(self, name: Word, *, bare: bool) -> None:
        """Read the rest of a definition, after its name; `bare` if the word `function` came before it."""

    def simple(self, first: Word | None = None) -> None:
        """Read a simple command, whose `first` word may have been read; or the function it turns out to define."""
        words: list[Word] = []
        seen = False
        while True:
            self.blanks()
            char = self.peek()
            if first is None and (char in ("", "\n", ";", "|", ")") or (char == "&" and self.ahead(2) != "&>")):
                break
            if first is None and char == "(":
                if len(words) != 1 or not words[0].static:
                    raise NotUnderstood("a parenthesis after a word")
                self.function(words[0], bare=False)
                return
            if first is None and self.redirection():
                seen = True
                continue
            word, first = first or self.word(), None
            if self.is_descriptor(word):
                seen = self.redirection(word.text)
            elif not words and self._assignment(word):
                seen = True
            else:
                words.append(self.argument(word))
                self._compound_value(words)
        if not words and not seen:
            raise NotUnderstood(f"{self.peek() or 'the end'!r} where a command is expected")
        if words:
            self.found.commands.append(tuple(words))

    def argument(self, word: Word) -> Word:
        """A word whose file name patterns and braces are expanded."""
        if word.glob:
            self.found.flag("glob")
        return word

    def _assignment(self, word: Word) -> bool:
        found = _ASSIGNMENT.match(word.raw)
        if found is None:
            return False
        self.found.flag("variable_assignment")
        if self.peek() == "(" and found.end() == len(word.raw):
            self._array()
            return True
        if found[2]:
            self.found.numbers.update(_NAME.findall(found[2]))
        value = word.text.partition("=")[2]
        self.found.value(found[1], attrs.evolve(word, text=value) if word.static else None)
        if not value.isdigit():
            self.found.worded.add(found[1])
        if found[1] in _EVALUATED:
            self.found.flag("eval_like")
            self.found.guesses.append(value)
        return True

    def _compound_value(self, words: list[Word]) -> None:
        """`declare a=(…)`: only a declaration takes an array."""
        if self.peek() != "(" or words[0].text not in _DECLARES:
            return
        found = _ASSIGNMENT.match(words[-1].raw)
        if found is not None and found.end() == len(words[-1].raw):
            self.found.flag("variable_assignment")
            self._array()

    def _array(self) -> None:
        self.at += 1
        while True:
            self.newlines()
            if self.peek() == ")":
                self.at += 1
                return
            self.argument(self.word())
