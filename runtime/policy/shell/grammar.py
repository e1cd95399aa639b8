"""The grammar of a command line: lists, pipelines, compound commands, redirections, here-documents.

Our own parser, and a strict one, because "not understood" must mean "ask". tree-sitter-bash repairs what it cannot
read, so that text is left out of the tree or put in the wrong place: no node for backticks in `${x:-…}` and in the body
of `<<-`, none for a substitution split by a joined line, no redirection in `[ a > b ]`, a wrong tree for `<>`, a line
that begins with `{a,b}`, and `time {`. A check for each known misreading would leave the unknown ones. This one reads
less than bash does (no extglob, no `${ command; }`) and knows it.

The grammar is bash's, version 5; the line must be run by `bash -c`. Other shells read some of it otherwise.
"""

from __future__ import annotations

import re

from .conditions import Conditions
from .found import Found, NotUnderstood
from .words import Piece, Word, begins_shaped, literal, word_of

_ENDING = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_COMPOUND = frozenset({"{", "if", "while", "until", "for", "case", "select", "[[", "function", "coproc"})
_BODY = _COMPOUND - {"function", "coproc"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What every program started later, or the shell itself, obeys.
SENSITIVE = re.compile(
    r"PATH|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|PS\d|PROMPT_COMMAND|CDPATH|GLOBIGNORE|SHELLOPTS|BASHOPTS|HOME|TMPDIR"
    r"|GIT_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|NPM_.*|LESS.*|(?:MAN)?PAGER|VISUAL|EDITOR|BROWSER|SHELL|SSH_.*|CC|CXX"
    r"|[A-Z]*_?(?:OPTIONS|OPTS|FLAGS|COMMAND|CONFIG|RC)|TERM|TERMINFO.*|LANG|LC_.*|LOCPATH|HISTFILE|MAKE|MAKEFILES"
)


def parse(text: str, depth: int = 0) -> Found:
    """Read a whole command line. Raises NotUnderstood."""
    found = Found()
    Parser(text, found, depth).script()
    return found


class Parser(Conditions):
    """Reads commands by recursive descent; one method a rule of the grammar."""

    def script(self) -> None:
        """Read to the end of the text."""
        self._list()
        if self.peek():
            raise NotUnderstood(f"{self.peek()!r} where a command is expected")
        if self.pending:
            raise NotUnderstood("a here-document without its end")

    def substituted(self) -> None:
        outer, self.pending = self.pending, []
        held, self.held = self.held, self.held or bool(outer)
        self._group(")")
        if self.pending:
            raise NotUnderstood("a here-document that begins in a substitution and ends after it")
        self.pending, self.held = outer, held

    def reread(self, text: str) -> None:
        Parser(text, self.found, self.depth + 1).script()

    def document(self, body: str) -> str:
        return Parser(body, self.found, self.depth + 1)._expanded()

    def _expanded(self) -> str:
        """Read the body of a here-document: only expansions mean something in it. The text, as far as it is known."""
        pieces: list[Piece] = []
        while char := self.peek():
            self.quoted(pieces, char, "$`\\", odd=True)
        return word_of(pieces, "").text if pieces else literal("").text

    def _group(self, end: str) -> None:
        """A list in parentheses, to the closing one."""
        self.deeper()
        self._list()
        if self.peek() != end:
            raise NotUnderstood(f"{self.peek() or 'the end'!r} where {end!r} is expected")
        self.at += 1
        self.depth -= 1

    def _list(self, *, needed: bool = False) -> None:
        """Commands up to what cannot begin one: the end, a parenthesis, a reserved word that ends something."""
        self.newlines()
        separator = ""
        if needed and self._at_end_of_list():
            raise NotUnderstood("no command where one is expected")
        while not self._at_end_of_list():
            if separator and separator != "&":
                self.found.flag("chain")
            self._and_or()
            separator = self._separator()
            if not separator:
                break

    def _separator(self) -> str:
        """What ends a command: `;`, `&` or a line's end; "" if there is nothing of the kind."""
        self.blanks()
        char = self.peek()
        if char == "&" and self.ahead(2) != "&&":
            self.at += 1
            self.found.flag("background")
        elif char == ";" and self.ahead(2) not in (";;", ";&"):
            self.at += 1
        elif char != "\n":
            return ""
        self.newlines()
        return char

    def _at_end_of_list(self) -> bool:
        char = self.peek()
        return char in ("", ")") or self.ahead(2) in (";;", ";&") or self.reserved() in _ENDING

    def _and_or(self) -> None:
        self._pipeline()
        while True:
            self.blanks()
            if self.ahead(2) not in ("&&", "||"):
                return
            self.take(2)
            self.found.flag("chain")
            self.newlines()
            self._pipeline()

    def _pipeline(self) -> None:
        prefixed = self._prefixes()
        if prefixed and self.peek() in ("", "\n", ";"):
            return
        self._command()
        while True:
            self.blanks()
            if self.peek() != "|" or self.ahead(2) == "||":
                return
            self.take(2 if self.ahead(2) == "|&" else 1)
            self.found.flag("pipe")
            self.newlines()
            self._command()

    def _prefixes(self) -> bool:
        """Take `time`, its `-p`, and `!`; whether a `time` allows that nothing follows."""
        timed = False
        while True:
            self.blanks()
            match self.reserved():
                case "time":
                    timed = True
                    self.take(4)
                    self.blanks()
                    if self.ahead(2) == "-p" and self.ahead(3)[2:] in ("", " ", "\t", "\n"):
                        self.take(2)
                        self.blanks()
                    if self.ahead(2) == "--" and self.ahead(3)[2:] in ("", " ", "\t", "\n"):
                        self.take(2)
                case "!":
                    self.take(1)
                case _:
                    return timed

    def _command(self) -> None:
        self.blanks()
        if self.peek() == "(":
            self._parenthesis()
            self.redirections()
            return
        reserved = self.reserved()
        if reserved in _ENDING or reserved in ("]]", "!"):
            raise NotUnderstood(f"{reserved!r} where a command is expected")
        if reserved not in _COMPOUND:
            self.simple()
            return
        self.take(len(reserved))
        self.deeper()
        match reserved:
            case "{":
                self._list(needed=True)
                self.expect("}")
            case "if":
                self._if()
            case "while" | "until":
                self.found.flag("control_flow")
                self._list(needed=True)
                self._body("do", "done")
            case "for" | "select":
                self._for()
            case "case":
                self._case()
            case "[[":
                self.test()
            case "function":
                self.blanks()
                self.function(self.word(), bare=True)
            case _:
                self._coprocess()
        self.depth -= 1
        self.redirections()

    def _body(self, begin: str, end: str) -> None:
        self.newlines()
        self.expect(begin)
        self._list(needed=True)
        self.expect(end)

    def _parenthesis(self) -> None:
        if self.ahead(2) == "((":
            self.take(2)
            self.arithmetic("))")
            return
        self.take()
        self.found.flag("subshell")
        self.deeper()
        self._list(needed=True)
        if self.peek() != ")":
            raise NotUnderstood("a parenthesis that is not closed")
        self.at += 1
        self.depth -= 1

    def _if(self) -> None:
        self.found.flag("control_flow")
        self._list(needed=True)
        self.expect("then")
        self._list(needed=True)
        while self.reserved() == "elif":
            self.take(4)
            self._list(needed=True)
            self.expect("then")
            self._list(needed=True)
        if self.reserved() == "else":
            self.take(4)
            self._list(needed=True)
        self.expect("fi")

    def _for(self) -> None:
        self.found.flag("control_flow")
        self.blanks()
        if self.ahead(2) == "((":
            self.take(2)
            for close in (";", ";", "))"):
                self.arithmetic(close)
            self.blanks()
            if self.peek() == ";":
                self.at += 1
        else:
            self._loop_words(self._identifier())
        self.newlines()
        if self.reserved() == "{":
            self.take()
            self._list(needed=True)
            self.expect("}")
        else:
            self._body("do", "done")

    def _identifier(self) -> str:
        word = self.word()
        if not word.plain or not _NAME.fullmatch(word.text):
            raise NotUnderstood(f"{word.text!r} is no name for a variable")
        return word.text

    def _loop_words(self, name: str) -> None:
        if SENSITIVE.fullmatch(name):
            self.found.note(f"a loop that sets {name}")
        self.newlines()
        if self.reserved() == "in":
            self.take(2)
            self.blanks()
            while self.peek() not in ("", ";", "\n"):
                word = self.argument(self.word())
                self.found.value(name, word)
                if not word.static or not word.text.isdigit():
                    self.found.worded.add(name)
                if begins_shaped(word) or re.search(r"(?:^|\s)-", word.text) or (word.braced and "-" in word.text):
                    self.found.note("a loop over options")
                self.blanks()
        if self.peek() == ";":
            self.at += 1

    def _case(self) -> None:
        self.found.flag("control_flow")
        self.blanks()
        self.word()
        self.newlines()
        self.expect("in")
        self.newlines()
        while self.reserved() != "esac":
            if self.peek() == "(":
                self.at += 1
            self._patterns()
            self._list()
            ended = next((mark for mark in (";;&", ";;", ";&") if self.ahead(len(mark)) == mark), "")
            self.take(len(ended))
            self.newlines()
            if not ended and self.reserved() != "esac":
                raise NotUnderstood("a case without its end")
        self.take(4)

    def _patterns(self) -> None:
        while True:
            self.blanks()
            self.word()
            self.blanks()
            char = self.peek()
            if char not in ("|", ")"):
                raise NotUnderstood("a case pattern without its parenthesis")
            self.at += 1
            if char == ")":
                return

    def function(self, name: Word, *, bare: bool) -> None:
        """The rest of a definition, after its name."""
        self.found.flag("function_def")
        self.blanks()
        if self.peek() == "(":
            self.at += 1
            self.blanks()
            if self.peek() != ")":
                raise NotUnderstood("a parenthesis after a word")
            self.at += 1
        elif not bare:
            raise NotUnderstood("a function without parentheses")
        if not name.static:
            raise NotUnderstood("a function whose name is not known")
        self.newlines()
        if self.peek() != "(" and self.reserved() not in _BODY:
            raise NotUnderstood("a function without a body")
        self._command()

    def _coprocess(self) -> None:
        self.found.flag("background")
        self.blanks()
        if self.peek() == "(" or self.reserved() in _BODY:
            self._command()
            return
        if self.reserved() in _ENDING | {"!", "]]", "time", "coproc", "function"}:
            raise NotUnderstood("a reserved word where a command is expected")
        word = self.word()
        self.blanks()
        if self.peek() == "(" or self.reserved() in _BODY:
            if not word.plain:
                raise NotUnderstood("a coprocess whose name is not known")
            self._command()
        else:
            self.simple(word)
