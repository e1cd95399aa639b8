"""Option lists: where a command's own options end and what it is given begins."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from .words import Word, names

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\+?=")


@attrs.frozen
class Options:
    """The options a command knows. `longs` that end in `=` take a value.

    `stops`: options (letters, or long names) after which it runs nothing. `text`: options whose value is shell text.
    `operands`: arguments of its own before what it runs. `assigns`: `NAME=VALUE` words may come first. `numbers`: `-5`
    is an option. `any_long`: long options it may have besides, all with `=` if they take a value.
    """

    flags: str = ""
    values: str = ""
    longs: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    operands: int = 0
    stops: str = ""
    text: str = ""
    assigns: bool = False
    numbers: bool = False
    any_long: bool = False


@attrs.define
class Split:
    """A command's words, taken apart; `rest` is where what it runs begins. `trouble`: why that is not certain."""

    rest: int
    seen: list[tuple[str, Word | None]] = attrs.Factory(list[tuple[str, "Word | None"]])
    operands: list[Word] = attrs.Factory(list[Word])
    texts: list[Word] = attrs.Factory(list[Word])
    assigned: bool = False
    stopped: bool = False
    trouble: str = ""


def split(words: Sequence[Word], options: Options, start: int = 1) -> Split:
    """Take the options of `words` off, from `start` on."""
    found = Split(start)
    while found.rest < len(words) and not found.trouble:
        word = words[found.rest]
        text = word.text
        if options.assigns and _ASSIGNMENT.match(text):
            found.assigned = True
            found.rest += 1
            continue
        if not word.static or word.glob or word.braced:
            if len(found.operands) == options.operands and not text.startswith("-"):
                return found
            if (not word.static and '"' not in word.raw) or text.startswith("-"):
                found.trouble = f"{text} may be an option"
                break
        if text == "--":
            found.rest += 1
            _operands(words, options, found)
            return found
        if text.startswith("--"):
            _long(words, options, found)
        elif text.startswith("-") and len(text) > 1:
            if options.numbers and text[1:].isdigit():
                found.rest += 1
            else:
                _short(words, options, found)
        elif len(found.operands) < options.operands:
            found.operands.append(word)
            found.rest += 1
        else:
            return found
    return found


def _operands(words: Sequence[Word], options: Options, found: Split) -> None:
    while found.rest < len(words) and len(found.operands) < options.operands:
        found.operands.append(words[found.rest])
        found.rest += 1
    while options.assigns and found.rest < len(words) and _ASSIGNMENT.match(words[found.rest].text):
        found.assigned = True
        found.rest += 1


def _long(words: Sequence[Word], options: Options, found: Split) -> None:
    name, equals, _ = words[found.rest].text[2:].partition("=")
    known = [each for each in options.longs if each.rstrip("=") == name]
    known = known or [each for each in options.longs if each.startswith(name)]
    if len(known) > 1 or not (known or options.any_long):
        found.trouble = f"--{name} is not known"
        return
    full = known[0] if known else name
    value = None
    if equals:
        value = tail(words[found.rest], len(name) + 3)
    elif full.endswith("="):
        found.rest += 1
        if found.rest == len(words):
            found.trouble = f"--{name} has no value"
            return
        value = words[found.rest]
    found.rest += 1
    _note(options, found, full.rstrip("="), value)


def _short(words: Sequence[Word], options: Options, found: Split) -> None:
    word = words[found.rest]
    for at, letter in enumerate(word.text[1:], 2):
        if letter in options.values or letter in options.text:
            if at < len(word.text):
                value = tail(word, at)
            else:
                found.rest += 1
                if found.rest == len(words):
                    found.trouble = f"-{letter} has no value"
                    return
                value = words[found.rest]
            _note(options, found, letter, value)
            break
        if letter not in options.flags and letter not in options.stops:
            found.trouble = f"-{letter} is not known"
            return
        _note(options, found, letter, None)
    found.rest += 1


def _note(options: Options, found: Split, name: str, value: Word | None) -> None:
    found.seen.append((name, value))
    if (len(name) == 1 and name in options.stops) or name in ("help", "version"):
        found.stopped = True
    if value is not None and (name == "command" or (len(name) == 1 and name in options.text)):
        found.texts.append(value)


def tail(word: Word, count: int) -> Word:
    """What follows the first characters of a word: an option's value."""
    return attrs.evolve(word, text=word.text[count:], raw=word.raw)
