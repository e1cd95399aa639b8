"""Everything a command line executes, however deep: what the rules are held against."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs

from . import builtins, interpreters, wrappers
from .behind import MOST_GUESSES, Behind, Inner, Words, name_of
from .braces import TooManyWords, expanded
from .escapes import Escape, escapes, has_options_to_escape
from .found import Flag, Found, NotUnderstood
from .grammar import parse
from .values import guessed
from .words import Word, begins_shaped

DEEPEST = 12
MOST_COMMANDS = 4000


@attrs.frozen
class Executed:
    """One command that runs, with its words after brace expansion. `shown` are the words as one would write them.

    `certain`: False for a guess, which only deny and ask rules look at. `open`: more words come at run time. `known`:
    False if the shell finds the name of the command only then. `escapes`: arguments no prefix rule covers. `wrapper`:
    the words before it, where a rule that spells all of them and its name is enough (`uv run pytest *`).
    """

    words: Words
    shown: tuple[str, ...]
    certain: bool = True
    open: bool = False
    known: bool = True
    escapes: tuple[Escape, ...] = ()
    wrapper: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


@attrs.frozen
class Line:
    """A command line, read. `notes` are reasons to ask; `unread` are texts that may be commands but were not read."""

    executed: tuple[Executed, ...]
    flags: tuple[Flag, ...]
    writes: tuple[str, ...]
    notes: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Every command found, as argv."""
        seen: dict[tuple[str, ...], None] = {}
        for each in self.executed:
            if each.certain:
                seen[each.shown] = None
                seen[each.argv] = None
        return tuple(seen)


@lru_cache(maxsize=64)
def read_line(text: str) -> Line:
    """Read a command line. What is not understood comes back as a line that says so."""
    return _Reader().line(text)


class _Reader:
    """Collects what runs, from the line and from every text it hands to a shell."""

    def __init__(self) -> None:
        self.executed: list[Executed] = []
        self.flags: dict[Flag, None] = {}
        self.notes: dict[str, None] = {}
        self.unread: list[str] = []
        self.feeds = False
        self.values: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.heads: list[Words] = []
        self.numbers: set[str] = set()
        self.worded: set[str] = set()
        self.gives = False
        self.left = 0
        """How many more characters of nested texts, and how many more words of braces, will be read."""
        self.words_left = 512

    def line(self, text: str) -> Line:
        self.left = 4_000 + 2 * len(text)
        try:
            found = parse(text)
        except NotUnderstood as error:
            return Line((), ("unparsable",), (), (f"not understood: {error}",), (text,))
        for flag in found.flags:
            self.flags[flag] = None
        self._found(found, 0, outer=True)
        self._arithmetic()
        self._fed()
        self._named()
        return Line(tuple(self.executed), tuple(self.flags), tuple(found.writes), tuple(self.notes), tuple(self.unread))

    def _found(self, found: Found, depth: int, *, outer: bool = False, certain: bool = True) -> None:
        self._remember(found)
        self.gives = self.gives or found.gives
        for note in found.notes:
            self._note(note)
        for flag in found.flags:
            if flag in _ASKS and not outer and certain:
                self._note(_ASKS[flag])
        for command in found.commands:
            self._command(Inner(command), depth, outer=outer, certain=certain)
        self._guess(found.guesses, depth)
        self.numbers |= found.numbers
        self.worded |= found.worded

    def _remember(self, found: Found) -> None:
        for name, values in found.values.items():
            self.values.setdefault(name, []).extend(values)
        self.texts += found.texts

    def _command(
        self, inner: Inner, depth: int, *, outer: bool = False, certain: bool = True, wrapper: Sequence[str] = ()
    ) -> None:
        if depth > DEEPEST or len(self.executed) > MOST_COMMANDS:
            self._note("more commands than anybody reads")
            self.unread.append(" ".join(word.text for word in inner.words[:64]))
            return
        words = self._expanded(inner.words)
        shown = tuple(word.text for word in inner.words)
        known = words[0].static and not (inner.words[0].braced or words[0].glob or words[0].text.startswith("-"))
        risky = escapes(words)
        self.executed.append(Executed(words, shown, certain, inner.open, known, risky, tuple(wrapper)))
        if not known:
            self._unknown(words, certain=certain)
            return
        for each in risky:
            self._guess([each.value, each.value.partition("=")[2]], depth)
        behind = Behind()
        wrappers.look_through(words, behind)
        builtins.look_for_eval(words, behind)
        interpreters.look_for_code(words, behind)
        if inner.open:
            self._opened(words, behind)
        self._behind(words, behind, depth, outer=outer, certain=certain)

    def _behind(self, words: Words, behind: Behind, depth: int, *, outer: bool, certain: bool) -> None:
        if outer:
            for flag in behind.flags:
                self.flags[flag] = None
        elif certain:
            for flag in behind.flags & _ASKS.keys():
                self._note(_ASKS[flag])
        if certain:
            for note in behind.notes:
                self._note(note)
        self.feeds = self.feeds or behind.feeds
        for inner in behind.commands:
            lead = [word.text for word in words[: len(words) - len(inner.words)]] if behind.named else []
            self._command(inner, depth + 1, outer=outer, certain=certain, wrapper=lead)
        for guess in behind.maybe:
            self.executed.append(Executed(guess, tuple(word.text for word in guess), certain=False))
        for text in behind.texts:
            self._text(text, depth, certain=certain)
        self._guess(behind.guesses, depth)

    def _opened(self, words: Words, behind: Behind) -> None:
        """A command whose arguments come from xargs' input: they could be options, a command or a file to run."""
        name = name_of(words)
        if _takes_options(name):
            self._note(f"{name} gets arguments that are known only at run time")
            self.feeds = True
        if behind.texts:
            self.feeds = True

    def _text(self, text: Word, depth: int, *, certain: bool) -> None:
        if not text.static:
            self._note("shell text that is known only at run time")
            self.unread.append(text.text)
            return
        try:
            found = self._parsed(text.text, depth)
        except NotUnderstood:
            self._note("shell text that is not understood")
            self.unread.append(text.text)
            return
        self._found(found, depth + 1, certain=certain)

    def _guess(self, texts: Sequence[str], depth: int) -> None:
        """Look into a text that may be a command for some other program."""
        for text in texts:
            if not text or depth > DEEPEST:
                continue
            try:
                found = self._parsed(text.lstrip(":!."), depth)
            except NotUnderstood:
                self.unread.append(text)
                continue
            self._remember(found)
            for command in found.commands:
                self._command(Inner(command), depth + 1, certain=False)

    def _parsed(self, text: str, depth: int) -> Found:
        self.left -= len(text)
        if self.left < 0:
            raise NotUnderstood("more text than anybody reads")
        return parse(text, depth + 1)

    def _fed(self) -> None:
        """What is fed to a shell's standard input: here-documents, here-strings, and what echo and printf say.

        What is found there may feed a shell in turn.
        """
        seen = 0
        for depth in range(1, DEEPEST):
            new = self.executed[seen:]
            seen = len(self.executed)
            said = [" ".join(each.argv[1:]) for each in new if name_of(each.words) in ("echo", "printf")]
            fed = [*self.texts, *(text.replace("\\n", "\n") for text in said)]
            self.texts = []
            if not (self.feeds and fed):
                return
            self._guess(fed, depth)

    def _arithmetic(self) -> None:
        """What a variable was given: arithmetic would run it as text, and an option may come from it."""
        certain = [each for each in self.executed if each.certain]
        gives = self.gives or any(builtins.gives_values(each.words) for each in certain)
        if self.numbers and (gives or self.numbers & self.worded):
            self.flags["eval_like"] = None
        if "eval_like" in self.flags:
            for texts in list(self.values.values()):
                self._guess(texts, 1)
        for each in certain:
            if not _takes_options(name_of(each.words)):
                continue
            for word in each.words[1 : 2 if name_of(each.words) == "printf" else None]:
                if begins_shaped(word) or (gives and any(piece.kind == "variable" for piece in word.pieces)):
                    self._note(f"{word.text} may be an option")

    def _unknown(self, words: Words, *, certain: bool) -> None:
        if certain:
            self._note("a command name that is known only at run time")
        self.unread.append(" ".join(word.text for word in words))
        self.heads.append(words)

    def _named(self) -> None:
        """What the names known only at run time may be, as far as the line gives values to their variables."""
        for words in self.heads[:MOST_GUESSES]:
            for argv in guessed(words, self.values):
                self.executed.append(Executed(argv, tuple(word.text for word in argv), certain=False))

    def _expanded(self, words: Words) -> Words:
        found: list[Word] = []
        for word in words:
            try:
                made = expanded(word) if self.words_left > 0 or not word.braced else None
                if made is None:
                    raise TooManyWords
                self.words_left -= len(made) if word.braced else 0
                found.extend(made)
            except TooManyWords:
                self._note("a brace expansion to very many words")
                found.append(attrs.evolve(word, static=False))
        return tuple(found)

    def _note(self, text: str) -> None:
        self.notes[text] = None


def _takes_options(name: str) -> bool:
    """Whether an argument nobody knows yet could make this command do more than it seems."""
    return (
        has_options_to_escape(name)
        or interpreters.is_interpreter(name)
        or wrappers.is_wrapper(name)
        or name in builtins.OPTIONS_MATTER
    )


WRITES = "it writes to a file"
_ASKS: dict[Flag, str] = {
    "redirect_write": WRITES,
    "substitution": "it runs a command to build an argument",
    "process_substitution": "it runs a command in place of a file",
    "function_def": "it defines a function",
    "eval_like": "it runs a text as commands",
    "interpreter_inline": "it runs program text",
    "variable_assignment": "it sets a variable",
}


def reasons(line: Line) -> tuple[str, ...]:
    """Why a line asks whatever the rules allow."""
    return tuple(_ASKS[flag] for flag in line.flags if flag in _ASKS) + line.notes
