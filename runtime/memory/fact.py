"""A fact: one line somebody noted, for a workspace or for its user, with who noted it and when. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from runtime.output.forbidden import found_in
from runtime.providers.redaction import MARK

Scope: TypeAlias = Literal["workspace", "user"]

MOST_CHARS = 1000
"""Of one fact."""
MOST_FACTS = 2000
"""Of one workspace, and of the user."""

_JOINERS = "\u200c\u200d"
"""What is not seen and yet belongs to the spelling of words and emoji."""
_ASSIGNED = re.compile(
    r"(?i)(?:password|passwd|passphrase|secret|token|(?:api|access)[ _-]?key)[\"']?\s*(?:[:=]|\bis\b)\s*"
    r"[\"']?(?=\S*\d)\S{8,}"
)
_IN_ADDRESS = re.compile(r"\w://[^\s/:@]*:[^\s/@]{6,}@")


@attrs.frozen
class Fact:
    """`workspace` is the real path of the one it is about, "" for a fact about the user.

    `run` and `actor` say who noted it; both are "" where a person did. `at` and `edited` are seconds since the epoch.
    """

    id: int
    text: str
    workspace: str
    run: str
    actor: str
    at: float
    edited: float | None = None

    @property
    def scope(self) -> Scope:
        return "workspace" if self.workspace else "user"


def tidy(text: str) -> str:
    """A fact's text as it is kept: one line, no control characters, so that none can pass for two."""
    return " ".join("".join(map(_shown, text)).split())


def _shown(char: str) -> str:
    match unicodedata.category(char):
        case "Cc" | "Cs" | "Zl" | "Zp":
            return " "
        case "Cf":
            return char if char in _JOINERS else ""
        case _:
            return char


def objection(text: str, veiled: Callable[[str], str]) -> str:
    """Why a tidy text is no fact to be kept, "" where it is one; `veiled` takes out the secrets this process knows."""
    if not text:
        return "a fact needs words"
    if len(text) > MOST_CHARS:
        return f"a fact may have {MOST_CHARS} characters, this one has {len(text)}"
    if MARK in text or veiled(text) != text:
        return "it holds a key or password, and secrets are not remembered"
    if found := found_in(text, ["key"]):
        return f"it holds {found[0].what}, and secrets are not remembered"
    if _ASSIGNED.search(text) or _IN_ADDRESS.search(text):
        return "it seems to hold a password or token, and secrets are not remembered: note where it is kept instead"
    return ""
