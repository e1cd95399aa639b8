"""What a dollar sign begins: variables, their operations, substitutions, arithmetic."""

from __future__ import annotations

import re

from .found import NotUnderstood
from .lexer import Lexer
from .words import Piece, PieceKind

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD_AFTER = re.compile(r"[ \t\n]+[\w$`'\"]")
_NUMBER = re.compile(r"[0-9][A-Za-z0-9_#@.]*")
_SPECIAL = frozenset("@*#?-$!0123456789")
_ARITHMETIC = frozenset(" \t\n+-*/%<>=!&|^~?:,")
_FALLBACK = frozenset("-=+?")


class Expansions(Lexer):
    """Reads expansions."""

    def dollar(self, pieces: list[Piece], *, quoted: bool = False) -> None:
        start = self.at
        self.at += 1
        char = self.peek()
        if char == "(":
            if self.ahead(2) == "((":
                self.take(2)
                self.arithmetic("))")
            else:
                self.at += 1
                self.found.flag("substitution")
                self.substituted()
            pieces.append(Piece("opaque", self.raw(start), quoted))
        elif char == "{":
            pieces.append(self._braced(start, quoted=quoted))
        elif char == "[":
            self.at += 1
            self.arithmetic("]")
            pieces.append(Piece("opaque", self.raw(start), quoted))
        elif char == "'" and not quoted:
            self.add(pieces, self.ansi_quoted(), quoted=True)
        elif char == '"' and not quoted:
            self.double(pieces)
        elif char and (char in _SPECIAL or _NAME.match(char)):
            name = self._name() if char not in _SPECIAL else char
            self.at += char in _SPECIAL
            pieces.append(Piece("variable", self.raw(start), quoted, name))
        else:
            self.add(pieces, "$", quoted=quoted)

    def _name(self) -> str:
        """A name, which may go on after a joined line."""
        name = ""
        while (char := self.peek()) and (char.isascii() and (char.isalnum() or char == "_")):
            name += char
            self.at += 1
        return name

    def _braced(self, start: int, *, quoted: bool) -> Piece:
        """`${…}`: a name, perhaps a subscript, perhaps an operation with a word, a pattern or arithmetic."""
        self.deeper()
        self.at += 1
        indirect = self._prefix()
        char = self.peek()
        if char and char in _SPECIAL:
            name = char
            self.at += 1
            while name.isdigit() and self.peek().isdigit():
                self.at += 1
        else:
            name = self._name()
        if not name and not indirect:
            raise NotUnderstood("an expansion that is not closed" if not char else "${ with a command or a bad name")
        if indirect == "!" and name:
            self.found.numbers.add(name)
        if self.peek() == "[":
            self.at += 1
            self._subscript()
        plain = self.peek() == "}"
        otherwise = self._operation(name, quoted=quoted)
        self.depth -= 1
        kind: PieceKind = "opaque" if indirect else "variable"
        return Piece(kind, self.raw(start), quoted, name, otherwise, shaped=not plain or indirect == "!")

    def _prefix(self) -> str:
        """The `#` or `!` of a length or an indirection, taken; "" where there is none."""
        char = self.peek()
        if char not in ("#", "!") or self.ahead(2)[1:] in ("", ":", "=", "+", "?", "%", "-"):
            return ""
        if self.ahead(2)[1:] == "}":
            return ""
        self.at += 1
        return char

    def _subscript(self) -> None:
        if self.ahead(2) in ("@]", "*]"):
            self.take(2)
        else:
            self.arithmetic("]")

    def _operation(self, name: str, *, quoted: bool) -> tuple[str, ...]:
        char = self.peek()
        if char == "}":
            self.at += 1
            return ()
        if char == ":" and self.ahead(2)[1:] not in _FALLBACK:
            self.at += 1
            self.arithmetic("}")
            return ()
        if char == "@" and re.fullmatch(r"@[QEPAKaukUL]\}", self.ahead(3)):
            if self.ahead(2) == "@P":
                self.found.flag("eval_like")
            self.take(3)
            return ()
        if char in ("@", "*") and self.ahead(2)[1:] == "}":
            self.take(2)
            return ()
        operator = self.ahead(2)[1:] if char == ":" else char
        self.take(2 if char == ":" else 1)
        if not operator or operator not in "-=+?#%/^,":
            raise NotUnderstood("an expansion with an unknown operation")
        pieces = self._operand(quoted=quoted)
        if operator in "#%/^,":
            return ()
        text = "".join(piece.text for piece in pieces)
        if operator == "=":
            self.found.worded.add(name)
            self.found.gives = True
        return (text,) if all(piece.kind == "text" for piece in pieces) else ()

    def _operand(self, *, quoted: bool) -> list[Piece]:
        """The word of an operation, to the closing brace."""
        pieces: list[Piece] = []
        while (char := self.peek()) != "}":
            if char == "":
                raise NotUnderstood("an expansion that is not closed")
            if char == "'":
                if quoted:
                    raise NotUnderstood("a single quote in an expansion between double quotes")
                self.add(pieces, self.single(), quoted=True)
            elif char == '"':
                begin = self.at
                self.double(pieces)
                if quoted and "}" in re.sub(r"\$\{\w+\}", "", self.raw(begin)):
                    raise NotUnderstood("a brace in nested double quotes")
            elif self.ahead(2) in ("<(", ">("):
                pieces.append(self.process())
            elif self.ahead(2) in ("$'", '$"'):
                raise NotUnderstood("$' or $\" in an expansion")
            elif char == "`":
                pieces.append(self.backticks(quoted=quoted, odd=True))
            elif char == "\\" and not quoted:
                self.add(pieces, self.text[self.at + 1 : self.at + 2], quoted=True)
                self.at += 2
            else:
                self.quoted(pieces, char, '$`"\\}')
        self.at += 1
        return pieces

    def arithmetic(self, close: str) -> None:
        """Read arithmetic up to `close`; names it reads are remembered. No quotes: their meaning is not the usual one.

        Raises NotUnderstood; also where the shell would take `((` for two subshells.
        """
        self.deeper()
        opened: list[str] = []
        while True:
            char = self.peek()
            if not opened and close and char == close[0] and self.ahead(len(close)) == close:
                break
            if char == "$":
                pieces: list[Piece] = []
                self.dollar(pieces, quoted=True)
                self.found.numbers.update(piece.name for piece in pieces if piece.kind == "variable")
            elif char == "`":
                self.backticks(odd=True)
            elif char in ("(", "["):
                opened.append(")" if char == "(" else "]")
                self.at += 1
            elif opened and char == opened[-1]:
                opened.pop()
                self.at += 1
            elif found := _NAME.match(self.text, self.at):
                self.found.numbers.add(found[0])
                self.at = found.end()
                if _WORD_AFTER.match(self.text, self.at):
                    raise NotUnderstood("commands where arithmetic is expected")
            elif found := _NUMBER.match(self.text, self.at):
                self.at = found.end()
            elif char and char in _ARITHMETIC:
                self.within(char)
                self.at += 1
            else:
                raise NotUnderstood(f"{char or 'the end'!r} in arithmetic")
        self.take(len(close))
        self.depth -= 1
