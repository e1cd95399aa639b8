"""Words and their quoting, read as bash reads them.

Strict on purpose. Where shells, versions or modes of bash differ, or where a quote stands in a place where its meaning
depends on what surrounds it, the lexer raises NotUnderstood instead of guessing: such a line asks.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from . import ansi
from .braces import has_braces
from .characters import Characters
from .found import NotUnderstood
from .words import Piece, Word, word_of

_ENDS_WORD = frozenset(" \t\n|&;()<>")
_PLAIN_RUN = re.compile(r"[A-Za-z0-9_./=,:%@+~^\[\]{}*?!\u0080-\U0010ffff-]+")
_QUOTED_RUN = re.compile(r"[^\\$`\"}<>']+")
_BACKTICKS = re.compile(r"`([^`\\]*(?:\\.[^`\\]*)*)`", re.DOTALL)
_ANSI = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
_COMMENT = re.compile(r"(?:^|[\s;|&(])#[^\n]*")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Lexer(Characters):
    """Reads words."""

    @abstractmethod
    def substituted(self) -> None:
        """Read the commands of a substitution, to its closing parenthesis."""

    @abstractmethod
    def reread(self, text: str) -> None:
        """Read the commands of a text that was quoted once more: what stood between backticks."""

    @abstractmethod
    def dollar(self, pieces: list[Piece], *, quoted: bool = False) -> None:
        """Read what a dollar sign begins."""

    def word(self, *, pattern: bool = False) -> Word:
        """Read one word. In a `pattern` (the right side of == and =~) parentheses and bars belong to it.

        Raises NotUnderstood; also if there is no word here.
        """
        start = self.at
        pieces: list[Piece] = []
        opened, subscripts = 0, 0
        while (char := self.peek()) and (char not in _ENDS_WORD or self._goes_on(char, pattern, opened)):
            if char == "\\":
                self.at += 1
                if self.at == len(self.text):
                    raise NotUnderstood("a backslash at the end")
                self.add(pieces, self.text[self.at], quoted=True)
                self.at += 1
            elif char == "'":
                self.add(pieces, self.single(), quoted=True)
            elif char == '"':
                self.double(pieces)
            elif char == "$":
                self.dollar(pieces)
            elif char == "`":
                pieces.append(self.backticks())
            elif char in "<>":
                pieces.append(self.process())
            elif pattern:
                opened += {"(": 1, ")": -1}.get(char, 0)
                self.add(pieces, char)
                self.at += 1
            else:
                run = _PLAIN_RUN.match(self.text, self.at)
                text = run[0] if run else char
                if "[" in text or subscripts:
                    subscripts = self._subscripts(pieces, text, subscripts)
                self.add(pieces, text)
                self.at += len(text)
        if self.at == start:
            raise NotUnderstood(f"{self.ahead(1) or 'the end'!r} where a word is expected")
        if opened or subscripts > 0:
            raise NotUnderstood("a bracket that is not closed")
        word = word_of(pieces, self.raw(start))
        if not has_braces(word):
            return word
        return Word(word.pieces, word.raw, word.text, word.static, plain=False, glob=True, braced=True)

    def _goes_on(self, char: str, pattern: bool, opened: int) -> bool:
        if char in "<>":
            return self.ahead(2) in ("<(", ">(")
        return pattern and (char == "(" or (char in "|)" and opened > 0))

    @staticmethod
    def _subscripts(pieces: list[Piece], text: str, depth: int) -> int:
        """How many brackets are open of those that follow a name: blanks inside would belong to the word."""
        begins = not depth and not any("[" in piece.text for piece in pieces)
        for at, char in enumerate(text):
            if char == "[" and begins:
                begins = False
                depth += _SUBSCRIPTED.fullmatch("".join(piece.text for piece in pieces) + text[:at]) is not None
            elif char == "[" and depth:
                depth += 1
            elif char == "]" and depth:
                depth -= 1
        return depth

    @staticmethod
    def add(pieces: list[Piece], text: str, *, quoted: bool = False) -> None:
        if pieces and pieces[-1].kind == "text" and pieces[-1].quoted == quoted:
            text = pieces.pop().text + text
        pieces.append(Piece("text", text, quoted))

    def single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotUnderstood("a quote that is not closed")
        text = self.text[self.at + 1 : end]
        self.within(text)
        self.at = end + 1
        return text

    def ansi_quoted(self) -> str:
        found = _ANSI.match(self.text, self.at)
        if found is None:
            raise NotUnderstood("a quote that is not closed")
        self.within(found[1])
        self.at = found.end()
        return ansi.decoded(found[1])

    def double(self, pieces: list[Piece]) -> None:
        start = self.at
        self.at += 1
        self.add(pieces, "", quoted=True)
        while (char := self.peek()) != '"':
            if char == "":
                raise NotUnderstood("a quote that is not closed")
            self.quoted(pieces, char, '$`"\\')
        self.at += 1
        self.within(self.text[start : self.at])

    def quoted(self, pieces: list[Piece], char: str, escapable: str, *, odd: bool = False) -> None:
        """Read on by one step where blanks and operators mean nothing: double quotes, a here-document."""
        if char == "\\":
            after = self.text[self.at + 1 : self.at + 2]
            self.add(pieces, after if after and after in escapable else char + after, quoted=True)
            self.at += 2
        elif char == "$":
            self.dollar(pieces, quoted=True)
        elif char == "`":
            pieces.append(self.backticks(quoted=True, odd=odd))
        else:
            run = _QUOTED_RUN.match(self.text, self.at)
            text = run[0] if run else char
            self.add(pieces, text, quoted=True)
            self.at += len(text)

    def process(self) -> Piece:
        start = self.at
        self.take(2)
        self.found.flag("process_substitution")
        self.substituted()
        return Piece("opaque", self.raw(start))

    def backticks(self, *, quoted: bool = False, odd: bool = False) -> Piece:
        """A substitution between backticks; `odd` where shells differ about an escaped double quote in it."""
        start = self.at
        found = _BACKTICKS.match(self.text, self.at)
        if found is None:
            raise NotUnderstood("a backtick that is not closed")
        self.within(found[1])
        self.at = found.end()
        self.found.flag("substitution")
        body = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", found[1])
        if any("`" in comment[0] or comment.end() == len(body) for comment in _COMMENT.finditer(body)):
            raise NotUnderstood("a comment before a backtick")
        if odd and '\\"' in found[1]:
            raise NotUnderstood("an escaped double quote between backticks")
        self.reread(body)
        return Piece("opaque", self.raw(start), quoted)
