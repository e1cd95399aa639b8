"""How an agent is told what its answer must be, and what is wrong with one; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.definitions import OutputRules

_FORBIDDEN = {"email": "e-mail address", "key": "key, token or other credential"}


def asked_for(rules: OutputRules) -> str:
    """The section of the prompt that asks for such an answer."""
    lines: list[str] = []
    if rules.schema is not None:
        lines.append(
            "Your last answer is read by a program: it must be JSON and nothing else, one value that fits this JSON "
            "Schema, with no text before or behind it."
        )
        lines.append(json.dumps(rules.schema, ensure_ascii=False))
    if rules.max_chars is not None:
        lines.append(f"Your last answer may have at most {rules.max_chars:,} characters.")
    if rules.forbid:
        named = " and no ".join(_FORBIDDEN[each] for each in dict.fromkeys(rules.forbid))
        lines.append(f"Your last answer must hold no {named}.")
    if rules.check is not None and rules.schema is None:
        lines.append("Your last answer is checked by a program.")
    if not lines:
        return ""
    return "\n".join([*lines, "An answer that does not hold comes back to you with what is wrong with it."])


def sent_back(faults: Sequence[str], tries_left: int, schema: Mapping[str, Any] | None) -> str:
    """The message with which a bad answer goes back; `tries_left` includes the one that is asked for."""
    listed = "\n".join(f"- {' '.join(fault.split())}" for fault in faults)
    alone = " Give the JSON value alone." if schema is not None else ""
    tries = "This is your last try." if tries_left == 1 else f"You have {tries_left} tries left."
    return f"Your answer was not taken:\n{listed}\nGive the whole answer again with that put right.{alone} {tries}"


def faults_told(note: str) -> str:
    """The faults in such a message, on one line for a person."""
    return "; ".join(line.removeprefix("- ") for line in note.split("\n") if line.startswith("- "))


def summed_up(faults: Sequence[str]) -> str:
    """The faults in one line for a person."""
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more
