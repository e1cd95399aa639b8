"""How long a regular expression may run on a hostile text: a cautious guess from its spelling alone.

Python's `re` backtracks and holds the interpreter lock while it does, so a pattern that somebody else wrote may stop
the whole runtime. Only what is plainly cheap may run inside the process.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Cost: TypeAlias = Literal["linear", "quadratic", "unknown"]

_REPEAT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
_MAX_CHOICES = 8
_MAX_REPEAT = 64


def cost(pattern: str) -> Cost:
    """Guess the cost of searching one line: `linear` and `quadratic` are sure, anything else is `unknown`.

    Sure means: at most one unbounded repetition, not of a group, and few places where the search may choose.
    """
    unbounded = choices = depth = 0
    at = 0
    after_group = False
    while at < len(pattern):
        char = pattern[at]
        group, after_group = after_group, False
        if char == "\\":
            if pattern[at + 1 : at + 2].isdigit() and pattern[at + 1] != "0":
                return "unknown"  # A reference back repeats whatever its group matched.
            at += 2
            continue
        if char == "[":
            at = _class_end(pattern, at)
            continue
        if char == "(":
            depth += 1
            if pattern.startswith("(?", at):
                if not pattern.startswith("(?:", at):
                    return "unknown"
                at += 2
        elif char == ")":
            depth -= 1
            after_group = True
        elif char == "|":
            choices += depth > 0
        elif char in "*+":
            if group:
                return "unknown"
            unbounded += 1
            at += pattern[at + 1 : at + 2] in ("?", "+")
        elif char == "?":
            choices += 1
        elif char == "{" and (found := _REPEAT.match(pattern, at)):
            low, comma, high = found.groups()
            if group:
                return "unknown"
            if int(high or low or 0) > _MAX_REPEAT:
                return "unknown"
            if comma and (not high or int(high) - int(low or 0) > _MAX_CHOICES):
                unbounded += 1
            elif comma:
                choices += 3
            at = found.end()
            at += pattern[at : at + 1] in ("?", "+")
            continue
        at += 1
    if unbounded > 1 or choices > _MAX_CHOICES:
        return "unknown"
    return "quadratic" if unbounded else "linear"


def _class_end(pattern: str, at: int) -> int:
    at += 1
    at += pattern[at : at + 1] == "^"
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
