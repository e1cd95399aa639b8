"""Whether an awk program does more than read and print: starts a command, or writes a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import Word

_OPTIONS = re.compile(r"-[fEilodpD]|--(?:file|exec|include|load|pretty-print|dump-variables|profile|debug)")
_TOKEN = re.compile(
    r"(?P<skip>[ \t\r]+|#[^\n]*|\\\n)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\d[\w.]*|\.\d\w*)"
    r"|(?P<mark>\|\||\|&|>>|>=|<=|==|!=|!~|&&|\+\+|--|\*\*|[-+*/%^]=|[-+*%^!<>|?:~$=,;(){}\[\]\n@])",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.)*\])*/", re.DOTALL)
_OPERAND = re.compile(r"[\w\"\]).]\Z")
_ENDS_LINE = re.compile(r"[\w\"\])}{;/+-]\Z|\A\Z")
_PRINTS = frozenset({"print", "printf"})
_BEFORE_REGEX = _PRINTS | {"return", "in", "case", "else", "do", "delete", "exit"}


def runs_something(words: Sequence[Word]) -> bool:
    """Whether an awk command may start a command or write a file; also if that cannot be seen."""
    at, programs = 1, list[Word]()
    while at < len(words):
        word = words[at]
        text = word.text
        if text == "--":
            at += 1
            break
        if not text.startswith("-") or text == "-":
            break
        if text in ("-v", "-F", "--assign", "--field-separator"):
            at += 2
        elif text in ("-e", "--source"):
            programs += words[at + 1 : at + 2]
            at += 2
        elif not word.static or _OPTIONS.match(text) or not re.match(r"-[vFVhMbcCnNOPrStg]|--\w", text):
            return True
        else:
            at += 1
    programs = programs or list(words[at : at + 1])
    return any(not program.static or not _reads_only(program.text) for program in programs)


def _reads_only(program: str) -> bool:
    """Whether every token is known and none leads out. `printing`: how deep in brackets a print stands, or -1."""
    at, depth, printing, last = 0, 0, -1, ""
    while at < len(program):
        found = _TOKEN.match(program, at)
        if found is None:
            after = _after_slash(program, at, last)
            if after is None:
                return False
            last, at = "/", after
            continue
        token, at = found[0], found.end()
        if found["skip"]:
            continue
        if token in ("system", "|", "|&", "@", "extension", "load", "include"):
            return False
        if token in (">", ">>") and printing == depth:
            return False
        if token in _PRINTS:
            printing = depth
        elif token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
        elif token in (";", "}", "{") or (token == "\n" and _ENDS_LINE.search(last)):
            printing = -1
        last = token if token != "\n" else last
    return True


def _after_slash(program: str, at: int, last: str) -> int | None:
    """After a division, or after the regular expression that begins here; None where it could be either."""
    if program[at] != "/" or last in ("++", "--", "$", "getline"):
        return None
    if last in _BEFORE_REGEX or not _OPERAND.search(last):
        regex = _REGEX.match(program, at)
        return None if regex is None else regex.end()
    if last == ")" and '"' in program[at:]:
        return None
    return at + 1
