"""`elenco debug shell`: what a command line executes and what a set of rules says to it; nothing is run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from runtime.policy.rules import Words
from runtime.policy.shell import judge, read_line


def shell(lines: Iterable[str], out: TextIO) -> int:
    """Answer each case line with one line; 0, or 2 at the first line that is no case."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            case = json.loads(text)
            answer = {"id": case["id"], **_decide(_text(case["command"]), case.get("rules") or {})}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            print(f"error: line {number} is no shell case: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
        out.write(json.dumps(answer) + "\n")
        out.flush()
    return 0


def _decide(command: str, rules: Any) -> dict[str, Any]:
    allow, ask, deny = (_rules(rules.get(effect) or ()) for effect in ("allow", "ask", "deny"))
    line = read_line(command)
    said = judge(command, allow=allow, ask=ask, deny=deny)
    return {
        "commands": [list(argv) for argv in line.commands],
        "flags": list(line.flags),
        "writes": list(line.writes),
        "verdict": said.verdict,
        "why": said.why,
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the command is no text: {value!r}")
    return value


def _rules(given: Iterable[str]) -> tuple[Words, ...]:
    return tuple(words for rule in given if (words := _words(rule)))


def _words(rule: str) -> Words:
    """A rule's words; quotes group them as in a shell, unless they do not match."""
    try:
        return tuple(shlex.split(rule))
    except ValueError:
        return tuple(rule.split())
