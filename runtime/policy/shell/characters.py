"""A place in a command line: characters one by one, lines joined, blanks and comments skipped."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from .found import Found, NotUnderstood
from .words import names

DEEPEST = 20
LONGEST = 65_536

_RESERVED = names("if then else elif fi do done case esac while until for select function coproc time in { } ! [[ ]]")
_NO_RESERVED = re.compile(r"(?![a-z!{}\[\]\\])|[a-z!{}\[\]]*[^a-z!{}\[\]\\ \t\n|&;()<>]")


class Characters(ABC):
    """A place in a text. What is found on the way goes to `found`."""

    def __init__(self, text: str, found: Found, depth: int = 0) -> None:
        if len(text) > LONGEST:
            raise NotUnderstood(f"longer than {LONGEST} characters")
        if "\0" in text:
            raise NotUnderstood("a zero byte")
        if depth > DEEPEST:
            raise NotUnderstood("nested too deeply")
        self.text: str = text
        self.at: int = 0
        self.depth: int = depth
        self.found: Found = found

    @property
    @abstractmethod
    def waiting(self) -> bool:
        """Whether a here-document waits for the end of this line; a line's end inside a word would be ambiguous."""

    def peek(self) -> str:
        """The next character, "" at the end; a backslash before a line's end joins the lines."""
        char = self.text[self.at : self.at + 1]
        while char == "\\" and self.text.startswith("\n", self.at + 1):
            self.at += 2
            char = self.text[self.at : self.at + 1]
        return char

    def ahead(self, count: int) -> str:
        """The next few characters, without moving."""
        seen = self.text[self.at : self.at + count]
        if "\\" not in seen:
            return seen
        start, seen = self.at, ""
        while len(seen) < count and (char := self.peek()):
            seen += char
            self.at += 1
        self.at = start
        return seen

    def take(self, count: int = 1) -> None:
        for _ in range(count):
            self.peek()
            self.at += 1

    def blanks(self) -> None:
        """Skip blanks, and a comment if one begins here."""
        while (char := self.peek()) and char in " \t":
            self.at += 1
        if char == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def raw(self, start: int) -> str:
        return self.text[start : self.at].replace("\\\n", "")

    def deeper(self) -> None:
        """Count one more level of nesting; whoever calls it takes one off `depth` in the end."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotUnderstood("nested too deeply")

    def within(self, text: str) -> None:
        """Refuse a line's end inside a word where the body of a here-document should begin."""
        if self.waiting and "\n" in text:
            raise NotUnderstood("a line's end inside a word, where a here-document should begin")

    def reserved(self) -> str:
        """The reserved word that stands here, or ""."""
        if _NO_RESERVED.match(self.text, self.at):
            return ""
        start = self.at
        seen = ""
        while len(seen) < 10 and (char := self.peek()) and char not in " \t\n|&;()<>":
            seen += char
            self.at += 1
        self.at = start
        return seen if seen in _RESERVED else ""

    def expect(self, word: str) -> None:
        """Take a reserved word. Raises NotUnderstood."""
        if self.reserved() != word:
            raise NotUnderstood(f"{word!r} is missing")
        self.take(len(word))
