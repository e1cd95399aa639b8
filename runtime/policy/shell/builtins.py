"""The shell's own commands that read text as commands, or change what later commands mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .behind import Behind, Words, name_of
from .grammar import SENSITIVE
from .words import Word, literal

_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[(?![\w@*]*\])")
_DECLARES = frozenset({"declare", "typeset", "local", "export", "readonly"})
_READS = frozenset({"read", "mapfile", "readarray", "getopts"})


def look_for_eval(words: Words, behind: Behind) -> None:
    """Find what a builtin reads as commands."""
    look = _LOOK.get(name_of(words))
    if look is not None:
        look(words, behind)


def gives_values(words: Words) -> bool:
    """Whether a command gives a variable or `$1` a text: options later in the line may come from it."""
    name = name_of(words)
    if name == "set":
        return any(word.text == "--" or word.text[:1] not in ("-", "+") for word in words[1:])
    if name == "printf":
        return len(words) > 1 and words[1].text.startswith("-v")
    return name in _READS or (name in _DECLARES and len(words) > 1)


def _eval(words: Words, behind: Behind) -> None:
    behind.flags.add("eval_like")
    _reads(list(words[1:]), behind)


def _reads(words: Sequence[Word], behind: Behind) -> None:
    if words and all(word.static for word in words):
        behind.texts.append(literal(" ".join(word.text for word in words)))
    elif words:
        behind.guesses.append(" ".join(word.text for word in words))


def _source(words: Words, behind: Behind) -> None:
    behind.flags.add("eval_like")
    behind.feeds = True


def _trap(words: Words, behind: Behind) -> None:
    if len(words) == 1 or words[1].text in ("-l", "-p", "-P"):
        return
    behind.flags.add("eval_like")
    rest = words[2:] if words[1].text == "--" else words[1:]
    if rest and rest[0].text not in ("", "-"):
        _reads(rest[:1], behind)


def _alias(words: Words, behind: Behind) -> None:
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and name:
            behind.flags.add("eval_like")
            behind.guesses.append(value)


def _let(words: Words, behind: Behind) -> None:
    behind.flags.add("eval_like")
    behind.guesses.extend(word.text for word in words[1:])


def _always(words: Words, behind: Behind) -> None:
    behind.flags.add("eval_like")
    behind.guesses.extend(word.text for word in words[1:])


def _bind(words: Words, behind: Behind) -> None:
    _always(words, behind)
    behind.guesses.extend(word.text.rpartition(":")[2] for word in words[1:])


def _with(letters: str) -> Callable[[Words, Behind], None]:
    def look(words: Words, behind: Behind) -> None:
        for word in words[1:]:
            if (word.text.startswith("-") and any(letter in word.text for letter in letters)) or not word.static:
                _always(words, behind)
                return
        _names(words, behind)

    return look


def _declare(words: Words, behind: Behind) -> None:
    if any("=" in word.text and not word.text.startswith("-") for word in words[1:]):
        behind.flags.add("variable_assignment")
    options = [word.text for word in words[1:] if word.text.startswith(("-", "+"))]
    if any("i" in text or "n" in text for text in options) or any(not word.static for word in words[1:]):
        behind.notes.append("a declaration that evaluates its value")
    _names(words, behind)


def _names(words: Words, behind: Behind) -> None:
    """Names with a subscript: bash evaluates what stands between the brackets."""
    for word in words[1:]:
        if _SUBSCRIPT.search(word.text):
            behind.flags.add("eval_like")
            behind.guesses.append(word.text)


def _read(words: Words, behind: Behind) -> None:
    _names(words, behind)
    for word in words[1:]:
        if not word.static or SENSITIVE.fullmatch(word.text.removeprefix("-v").removeprefix("-a")):
            behind.notes.append(f"{name_of(words)} sets {word.text}")


def _printf(words: Words, behind: Behind) -> None:
    if len(words) > 1 and words[1].text.startswith("-v"):
        _read(words[:3], behind)


def _test(words: Words, behind: Behind) -> None:
    if not all(word.static for word in words) and any(_SUBSCRIPT.search(word.text) for word in words if word.static):
        behind.flags.add("eval_like")
    for at, word in enumerate(words[:-1]):
        if word.text in ("-v", "-R"):
            _names(words[at:], behind)
            if not words[at + 1].static:
                behind.notes.append("a test of a variable whose name is not known")


_LOOK: dict[str, Callable[[Words, Behind], None]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "let": _let,
    "bind": _bind,
    "complete": _always,
    "compgen": _always,
    "fc": _always,
    "enable": _with("fnd"),
    "hash": _with("p"),
    "mapfile": _with("C"),
    "readarray": _with("C"),
    "unset": _names,
    "wait": _names,
    "getopts": _read,
    "read": _read,
    "printf": _printf,
    "test": _test,
    "[": _test,
    **dict.fromkeys(_DECLARES, _declare),
}

OPTIONS_MATTER = frozenset(_LOOK) - {"test", "[", "wait", "unset"}
"""Builtins that an option makes dangerous."""
