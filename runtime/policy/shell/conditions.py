"""Tests between double brackets: `[[ … ]]`."""

from __future__ import annotations

import re

from .found import NotUnderstood
from .simple import SimpleCommands
from .words import Word

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNARY_TEXT = frozenset({"-v", "-R"})
_ARITHMETIC_TEST = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_PATTERN_TEST = frozenset({"=", "==", "!=", "=~"})


class Conditions(SimpleCommands):
    """Reads tests."""

    def test(self) -> None:
        self.newlines()
        self._test_or()
        self.newlines()
        self.expect("]]")

    def _test_or(self) -> None:
        while True:
            self.newlines()
            while self.reserved() == "!":
                self.take()
                self.newlines()
            if self.peek() == "(":
                self.at += 1
                self.deeper()
                self._test_or()
                self.newlines()
                if self.peek() != ")":
                    raise NotUnderstood("a parenthesis in [[ that is not closed")
                self.at += 1
                self.depth -= 1
            else:
                self._comparison()
            self.newlines()
            if self.ahead(2) not in ("&&", "||"):
                return
            self.take(2)

    def _comparison(self) -> None:
        left = self._operand_of_test()
        self.blanks()
        if left.plain and re.fullmatch(r"-[a-zA-Z]", left.text) and not self._ends_test():
            right = self._operand_of_test()
            if left.text in _UNARY_TEXT:
                self._evaluated(right)
            return
        if self._ends_test():
            return
        if self.peek() in ("<", ">") and self.ahead(2) not in ("<(", ">("):
            self.at += 1
            self.blanks()
            self._operand_of_test()
            return
        operator = self.word()
        if not operator.plain:
            raise NotUnderstood("an operator in [[ that is not known")
        self.blanks()
        if operator.text in _PATTERN_TEST:
            self.word(pattern=True)
            return
        if not re.fullmatch(r"-[a-z]{2}", operator.text):
            raise NotUnderstood(f"{operator.text!r} in [[")
        right = self._operand_of_test()
        if operator.text in _ARITHMETIC_TEST:
            self._evaluated(left)
            self._evaluated(right)

    def _operand_of_test(self) -> Word:
        if self.reserved() == "]]":
            raise NotUnderstood("an empty [[")
        return self.word()

    def _ends_test(self) -> bool:
        return self.peek() in (")", "\n") or self.ahead(2) in ("&&", "||") or self.reserved() == "]]"

    def _evaluated(self, word: Word) -> None:
        """Note a text that is run as arithmetic: a subscript in it may hold a command."""
        for piece in word.pieces:
            if piece.kind == "variable":
                self.found.numbers.add(piece.name)
            elif "[" in piece.text and not re.fullmatch(r"\w+\[[\w@*]+\]", word.text):
                self.found.flag("eval_like")
                self.found.guesses.append(word.text)
            elif piece.kind == "text":
                self.found.numbers.update(_NAME.findall(piece.text))
