"""Redirections and here-documents."""

from __future__ import annotations

import re
from abc import abstractmethod

import attrs

from .expansions import Expansions
from .found import Found, NotUnderstood
from .words import Word

_REDIRECTIONS = ("&>>", "<<<", "<<-", "<<", "<&", "<>", "<", "&>", ">>", ">&", ">|", ">")
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_SPECIAL_FILES = re.compile(r"/dev/(?:tcp|udp)/")


@attrs.frozen
class _Here:
    delimiter: str
    strip: bool
    expands: bool


class Redirections(Expansions):
    """Reads redirections, and the bodies of here-documents when their line ends."""

    def __init__(self, text: str, found: Found, depth: int = 0) -> None:
        super().__init__(text, found, depth)
        self.pending: list[_Here] = []
        self.held = False
        """Whether a here-document of the line around a substitution still waits for that line's end."""

    @property
    def waiting(self) -> bool:
        return self.held or bool(self.pending)

    @abstractmethod
    def document(self, body: str) -> str:
        """Read the expansions in the body of a here-document; the text, as far as it is known."""

    def redirections(self) -> None:
        """Take what redirections follow a compound command."""
        while True:
            self.blanks()
            if not self.redirection():
                if self.reserved() or self.peek() in ("", "\n", ";", "|", "&", ")", "("):
                    return
                word = self.word()
                if not self.is_descriptor(word):
                    raise NotUnderstood(f"{word.text!r} after a compound command")
                self.redirection(word.text)

    def redirection(self, descriptor: str = "") -> bool:
        """Take a redirection if one stands here."""
        char = self.peek()
        if char not in ("<", ">", "&") or self.ahead(2) in ("<(", ">("):
            return False
        seen = self.ahead(3)
        operator = next((each for each in _REDIRECTIONS if seen.startswith(each)), "")
        if not operator:
            return False
        self.take(len(operator))
        self.blanks()
        if operator in (">&", "<&") and self.peek() == "-":
            self.at += 1
            return True
        target = self.word()
        if operator not in (">&", "<&") and self.is_descriptor(target):
            raise NotUnderstood("a redirection to a descriptor of another one")
        match operator:
            case "<<" | "<<-":
                self._await_document(target, strip=operator == "<<-")
            case "<<<":
                self.found.flag("heredoc")
                if target.static:
                    self.found.texts.append(target.text)
            case ">&" | "<&" if target.static and re.fullmatch(r"[0-9]*-?", target.text) and target.text:
                pass
            case "<" | "<&":
                self.found.flag("redirect_read")
                if not target.static or _SPECIAL_FILES.match(target.text):
                    self.found.note("input from the network or from a file that is not known")
            case _:
                if operator == "<>":
                    self.found.flag("redirect_read")
                self._write(target)
        if descriptor.startswith("{"):
            self.found.note("a descriptor kept in a variable")
        return True

    def _write(self, target: Word) -> None:
        if target.static and target.text == "/dev/null" and not target.glob:
            return
        self.found.flag("redirect_write")
        if target.static and not target.glob:
            self.found.writes.append(target.text)

    def is_descriptor(self, word: Word) -> bool:
        """Whether a word that was just read is the `2` of `2>`, or the `{name}` of `{name}>`."""
        if self.peek() not in ("<", ">") or self.ahead(2) in ("<(", ">("):
            return False
        return word.plain and _DESCRIPTOR.fullmatch(word.text) is not None

    def _await_document(self, delimiter: Word, *, strip: bool) -> None:
        if not delimiter.static or "\n" in delimiter.text or "$" in delimiter.raw:
            raise NotUnderstood("a here-document whose end is not known")
        self.found.flag("heredoc")
        bare = delimiter.raw == delimiter.text
        self.pending.append(_Here(delimiter.text, strip, bare))

    def newlines(self) -> None:
        """Skip blanks, comments and lines' ends; the bodies of here-documents are read on the way."""
        while True:
            self.blanks()
            if self.peek() != "\n":
                return
            if self.held:
                raise NotUnderstood("a line's end in a substitution, where a here-document should begin")
            self.at += 1
            pending, self.pending = self.pending, []
            for here in pending:
                self._here_document(here)

    def _here_document(self, here: _Here) -> None:
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise NotUnderstood("a here-document without its end")
            line, ended = self._line(joined=here.expands)
            line = line.lstrip("\t") if here.strip else line
            if line == here.delimiter:
                break
            if not ended:
                raise NotUnderstood("a here-document without its end")
            lines.append(line + "\n")
        body = "".join(lines)
        if here.expands:
            body = self.document(body)
        self.found.texts.append(body)

    def _line(self, *, joined: bool) -> tuple[str, bool]:
        """The next line and whether it had an end; with `joined`, a backslash before the end joins the next one."""
        line = ""
        while True:
            end = self.text.find("\n", self.at)
            stop = len(self.text) if end < 0 else end
            line += self.text[self.at : stop]
            self.at = stop + 1
            if end < 0:
                return line, False
            if not joined or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return line, True
            line = line[:-1]
