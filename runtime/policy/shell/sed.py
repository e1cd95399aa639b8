"""Whether a sed script does more than edit what it prints: runs a command (`e`), writes a file (`w`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import Word

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[+~]\d+)")
_SIMPLE = frozenset("=dDgGhHnNpPxzF")
_FLAGS = re.compile(r"[gpiIMm0-9]*")


def dangers(words: Sequence[Word]) -> list[int]:
    """The places of the arguments by which a sed command writes files or runs commands."""
    found: list[int] = []
    scripts: list[int] = []
    operands: list[int] = []
    at = 1
    while at < len(words):
        text = words[at].text
        if text.startswith("--"):
            name, equals, _ = text[2:].partition("=")
            if name and ("in-place".startswith(name) or "file".startswith(name)):
                found.append(at)
            elif name and "expression".startswith(name):
                at += not equals
                scripts.append(at)
            elif name and "line-length".startswith(name):
                at += not equals
        elif text.startswith("-") and len(text) > 1:
            for place, letter in enumerate(text[1:], 2):
                if letter in "iIf":
                    found.append(at)
                    break
                if letter in "el":
                    at += place == len(text)
                    scripts += [at] if letter == "e" else []
                    break
                if letter not in "nrEsuza":
                    found.append(at)
        else:
            operands.append(at)
        at += 1
    scripts = scripts or operands[:1]
    found += [at for at in scripts if at < len(words) and not (words[at].static and _edits_only(_script(words[at])))]
    return found


def executed(script: str) -> str:
    """The command that an `e` in a script runs, as far as it can be seen; "" if there is none."""
    found = re.search(r"(?:^|[\s;{}\d$/])e\s+(\S[^\n]*)", script)
    return found[1] if found else ""


def _script(word: Word) -> str:
    text = word.text
    return re.sub(r"\A(?:-e|-[nrEsuz]+e|--expression=)", "", text) if text.startswith("-") else text


def _edits_only(script: str) -> bool:
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        after = _after_addresses(script, at)
        after = None if after is None else _after_command(script, after)
        if after is None:
            return False
        at = after
    return True


def _after_addresses(script: str, at: int) -> int | None:
    for turn in range(2):
        if turn:
            while script[at : at + 1].isspace():
                at += 1
            if script[at : at + 1] != ",":
                break
            at += 1
        while script[at : at + 1] in (" ", "\t"):
            at += 1
        found = _ADDRESS.match(script, at)
        if found is not None:
            at = found.end()
        elif script[at : at + 1] in ("/", "\\"):
            end = _delimited(script, at + (script[at] == "\\"))
            if end is None:
                return None
            at = end
            while script[at : at + 1] in ("I", "M"):
                at += 1
        elif turn:
            return None
        else:
            break
    while at < len(script) and script[at] in " \t!":
        at += 1
    return at


def _delimited(script: str, at: int) -> int | None:
    """After a text between two delimiters, the first of which stands at `at`."""
    mark = script[at : at + 1]
    if not mark or mark in "\n\\":
        return None
    at += 1
    while at < len(script) and script[at] != mark:
        at += 2 if script[at] == "\\" else 1
    return at + 1 if at < len(script) else None


def _after_command(script: str, at: int) -> int | None:
    """Where the command at `at` ends; None if it is not known to be harmless."""
    letter = script[at : at + 1]
    line = script.find("\n", at)
    line = len(script) if line < 0 else line
    if letter in ("", "{", "}"):
        return at + 1
    if letter in _SIMPLE:
        return at + 1
    if letter in ("q", "Q", "l", "L"):
        found = re.compile(r"\s*\d*").match(script, at + 1)
        return found.end() if found else at + 1
    if letter in ("b", "t", "T", ":"):
        found = re.compile(r"[^;\n}]*").match(script, at + 1)
        return found.end() if found else at + 1
    if letter in ("#", "r", "R", "v"):
        return line
    if letter in ("a", "i", "c"):
        while line < len(script) and script[line - 1] == "\\":
            after = script.find("\n", line + 1)
            line = len(script) if after < 0 else after
        return line
    if letter not in ("s", "y"):
        return None
    middle = _delimited(script, at + 1)
    end = None if middle is None else _delimited(script, middle - 1)
    if end is None:
        return None
    if letter == "y":
        return end
    flags = _FLAGS.match(script, end)
    end = flags.end() if flags else end
    return end if end == len(script) or script[end] in " \t\n;}#" else None
