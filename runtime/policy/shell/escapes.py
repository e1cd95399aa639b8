"""Arguments a prefix rule does not cover: they start a program, change what governs one, or write or delete a file.

`rg *` was allowed for searching; `rg --pre=./x` runs `./x`. A rule that spells such an argument out still allows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from . import git, sed
from .behind import name_of
from .risks import ANYWHERE, COMMANDS, OUTPUTS, SUBCOMMANDS, Risks
from .words import Word


@attrs.frozen
class Escape:
    """The place of such an argument, and its value, which may be a command."""

    at: int
    value: str = ""


_HARMLESS_OUTPUT = frozenset({"/dev/null", "-", "/dev/stdout", "/dev/stderr"})
_FORMATS = re.compile(
    r"(?:json|ya?ml|table|text|wide|name|tsv|csv|xml|plain|html|md|markdown|tsvc|jsonl|short|pretty|github|none|log|sarif)"
    r"(?:[-=,].*)?|(?:json|go-template|custom-columns|jsonpath).*"
)


def escapes(words: Sequence[Word]) -> tuple[Escape, ...]:
    """Every such argument of a command."""
    name = name_of(words)
    if name == "git":
        return tuple(Escape(at, _value(words, at)) for at in git.dangers(words))
    if name in ("sed", "gsed"):
        return tuple(Escape(at, sed.executed(words[at].text)) for at in sed.dangers(words))
    risks = COMMANDS.get(name, ANYWHERE)
    by_subcommand = SUBCOMMANDS.get(name)
    if by_subcommand is not None:
        sub = next((word.text for word in words[1:] if not word.text.startswith(("-", "+"))), "")
        risks = by_subcommand.get(sub, risks)
    return tuple(_options(words, risks)) + tuple(Escape(at) for at in _OPERANDS.get(name, _nothing)(words))


def has_options_to_escape(name: str) -> bool:
    """Whether an argument that is not known yet could be one of these."""
    return name in COMMANDS or name in _OPERANDS or name in ("git", "sed", "gsed")


def _options(words: Sequence[Word], risks: Risks) -> list[Escape]:
    found: list[Escape] = []
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if word.glob and risks is not ANYWHERE and not text.strip("*?"):
            found.append(Escape(at))
        if text in risks.operands or any(text.startswith(mark) for mark in risks.starts):
            found.append(Escape(at, text.partition("=")[2]))
        if not text.startswith("-") or text in ("-", "--"):
            continue
        if (not word.static or word.glob) and re.match(r"-+[$`*?\[]", text):
            found.append(Escape(at))
            continue
        if _is_risky_long(text, risks) or (
            risks.words and re.split("[=:]", text.lstrip("-"))[0].lower() in risks.words
        ):
            name, equals, value = text.partition("=")
            value = value if equals else _value(words, at)
            if not _is_harmless(name.lstrip("-"), value, risks):
                found.append(Escape(at, "" if name.lstrip("-") in OUTPUTS else value))
        elif not text.startswith("--"):
            found.extend(_letters(words, at, risks))
    return found


def _is_risky_long(text: str, risks: Risks) -> bool:
    if not text.startswith("--"):
        return False
    name = re.split(r"[=$`]", text[2:])[0]
    if not name or name in risks.fine:
        return False
    return name in risks.longs or (risks.shortened and any(each.startswith(name) for each in risks.longs))


def _letters(words: Sequence[Word], at: int, risks: Risks) -> list[Escape]:
    text = words[at].text
    for place, letter in enumerate(text[1:], 2):
        if letter in risks.letters:
            value = text[place:] or _value(words, at)
            if _is_harmless(letter, value, risks):
                return []
            return [Escape(at, "" if letter in OUTPUTS and letter not in risks.only else value)]
        if letter in risks.values:
            break
    return []


def _is_harmless(name: str, value: str, risks: Risks) -> bool:
    if name in OUTPUTS and value in _HARMLESS_OUTPUT:
        return True
    if risks is ANYWHERE and name == "output":
        return _FORMATS.fullmatch(value) is not None
    wanted = risks.only.get(name)
    return wanted is not None and re.match(wanted, value, re.IGNORECASE) is None


def _value(words: Sequence[Word], at: int) -> str:
    return words[at + 1].text if at + 1 < len(words) else ""


def _nothing(words: Sequence[Word]) -> list[int]:
    del words
    return []


def _second_operand(values: str) -> Callable[[Sequence[Word]], list[int]]:
    def look(words: Sequence[Word]) -> list[int]:
        operands: list[int] = []
        skip = False
        for at, word in enumerate(words[1:], 1):
            if skip:
                skip = False
            elif word.text.startswith("-") and len(word.text) > 1:
                skip = len(word.text) == 2 and word.text[1] in values
            else:
                operands.append(at)
        return [at for at in operands[1:] if words[at].text not in _HARMLESS_OUTPUT]

    return look


def _operand_that_sets(words: Sequence[Word]) -> list[int]:
    """`date 0101…` and `hostname NAME` set what they would print."""
    found: list[int] = []
    skip = False
    for at, word in enumerate(words[1:], 1):
        if not skip and not word.text.startswith(("-", "+")):
            found.append(at)
        skip = word.text in ("-d", "-r", "-f", "-I", "--date", "--reference")
    return found


def _tar(words: Sequence[Word]) -> list[int]:
    """Letters without a dash, and an archive on another host."""
    found: list[int] = []
    if len(words) > 1 and not words[1].text.startswith("-") and any(letter in "IFT" for letter in words[1].text):
        found.append(1)
    for at, word in enumerate(words[1:], 1):
        file = re.fullmatch(r"-?[A-Za-z]*f", word.text) is not None or word.text == "--file"
        value = _value(words, at) if file else word.text[7:] if word.text.startswith("--file=") else ""
        if re.match(r"[^/]+:", value):
            found.append(at)
    return found + _leading_globs(words)


def _leading_globs(words: Sequence[Word]) -> list[int]:
    """A file named like an option would be one."""
    return [at for at, word in enumerate(words[1:], 1) if word.glob and word.text[:1] in "*?["]


def _tunnel(words: Sequence[Word]) -> list[int]:
    return [at for at, word in enumerate(words[1:], 1) if re.search(r"(?i)\b(?:exec|system|create|gopen):", word.text)]


def _curl(words: Sequence[Word]) -> list[int]:
    return [at for at, word in enumerate(words[1:], 1) if "%output{" in word.text]


def _printf(words: Sequence[Word]) -> list[int]:
    return [1] if len(words) > 1 and words[1].text.startswith("-v") else []


def _less(words: Sequence[Word]) -> list[int]:
    return [at for at, word in enumerate(words[1:], 1) if re.match(r"\+(?!\d*$|G$|F$|/)", word.text)]


def _make(words: Sequence[Word]) -> list[int]:
    return [at for at, word in enumerate(words[1:], 1) if re.match(r"[A-Za-z_][\w.-]*[:?+!]*=", word.text)]


_OPERANDS: dict[str, Callable[[Sequence[Word]], list[int]]] = {
    "uniq": _second_operand("fswN"),
    "guniq": _second_operand("fswN"),
    "curl": _curl,
    "xxd": _second_operand("cglosnR"),
    "date": _operand_that_sets,
    "hostname": _operand_that_sets,
    "tar": _tar,
    "bsdtar": _tar,
    "gtar": _tar,
    "rsync": _leading_globs,
    "zip": _leading_globs,
    "7z": _leading_globs,
    "socat": _tunnel,
    "printf": _printf,
    "less": _less,
    "more": _less,
    "zless": _less,
    "make": _make,
    "gmake": _make,
}
