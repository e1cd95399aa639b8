"""What an answer must not hold: e-mail addresses and credentials, found by their shape in linear time; pure.

A finding says what it is and where, never what it says: the words go to a model and into the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from runtime.shapes import is_list, is_object

_LOCAL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}\Z")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:[^\W\d_]{2,24}|xn--[a-zA-Z0-9-]{2,59})(?![\w-])")
_EDGES = ".!#$%&'*+/=?^`{|}~-"


def _shape(prefix: str, rest: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){prefix}{rest}")


_KEYS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    ("an Anthropic key", _shape("sk-ant-", r"[A-Za-z0-9_-]{16,}")),
    ("an OpenRouter key", _shape("sk-or-", r"[A-Za-z0-9_-]{16,}")),
    ("an API key", _shape("sk-", r"[A-Za-z0-9_-]{20,}")),
    ("a Stripe key", _shape("(?:sk|rk|pk|whsec)_", r"(?:(?:live|test)_)?[A-Za-z0-9]{16,}")),
    ("an AWS access key", _shape("(?:AKIA|ASIA|ABIA|ACCA)", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    ("a GitHub token", _shape("gh[pousr]_", r"[A-Za-z0-9]{30,}")),
    ("a GitHub token", _shape("github_pat_", r"[A-Za-z0-9_]{22,}")),
    ("a GitLab token", _shape("gl(?:pat|ptt|rt|dt|soat|cbt)-", r"[A-Za-z0-9_-]{18,}")),
    ("a Slack token", _shape("(?:xox[a-z]|xapp|xwfp)-", r"[A-Za-z0-9-]{10,}")),
    ("a Google API key", _shape("AIza", r"[A-Za-z0-9_-]{35}")),
    ("a Google access token", _shape(r"ya29\.", r"[A-Za-z0-9_-]{20,}")),
    ("a Groq key", _shape("gsk_", r"[A-Za-z0-9]{20,}")),
    ("an xAI key", _shape("xai-", r"[A-Za-z0-9]{20,}")),
    ("a Hugging Face token", _shape("hf_", r"[A-Za-z0-9]{20,}")),
    ("an npm token", _shape("npm_", r"[A-Za-z0-9]{30,}")),
    ("a PyPI token", _shape("pypi-", r"[A-Za-z0-9_-]{30,}")),
    ("a SendGrid key", _shape(r"SG\.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    ("a Telegram bot token", _shape(r"\d{8,10}:", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    ("a signed web token", _shape("eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
)


@attrs.frozen
class Found:
    """Something forbidden, by what it is; characters `start` to `end` (exclusive) of the text."""

    what: str
    start: int
    end: int


def found_in(text: str, forbid: Iterable[str]) -> list[Found]:
    """All that a text holds of the forbidden kinds, in its order; what overlaps is one, called as its beginning is."""
    kinds = set(forbid)
    every: list[Found] = []
    if "email" in kinds:
        every += _addresses(text)
    if "key" in kinds:
        every += (Found(what, *each.span()) for what, shape in _KEYS for each in shape.finditer(text))
    kept: list[Found] = []
    for each in sorted(every, key=lambda one: one.start):  # stable: of those at one place the more exact name wins
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
        elif each.end > kept[-1].end:
            kept[-1] = attrs.evolve(kept[-1], end=each.end)
    return kept


def faults_in_text(text: str, forbid: Iterable[str]) -> list[str]:
    """What is forbidden in a text, by name and place: `line 3, column 12: holds an e-mail address, …`."""
    lines: list[str] = []
    for each in found_in(text, forbid):
        line = text.count("\n", 0, each.start) + 1
        column = each.start - text.rfind("\n", 0, each.start)
        lines.append(f"line {line}, column {column}: holds {each.what}, which is forbidden")
    return lines


def faults_in_value(value: Any, forbid: Iterable[str]) -> list[str]:
    """The same for a JSON value, by the path to each text."""
    kinds = tuple(forbid)
    if not kinds:
        return []
    lines: list[str] = []
    for path, text, is_key in _texts(value):
        where = f"a key in {path or 'the answer'}" if is_key else (path or "the answer")
        lines += [f"{where}: holds {each.what}, which is forbidden" for each in found_in(text, kinds)]
    return lines


def masked(text: str, forbid: Iterable[str]) -> str:
    """The text with what is forbidden taken out; `[an e-mail address]` stands in its place."""
    kinds = tuple(forbid)
    while found := found_in(text, kinds):  # what stood right behind a finding may be one itself, once that is gone
        pieces: list[str] = []
        at = 0
        for each in found:
            pieces += (text[at : each.start], f"[{each.what}]")
            at = each.end
        text = "".join((*pieces, text[at:]))
    return text


def _addresses(text: str) -> Iterator[Found]:
    """Looked for from each @ outwards, so that no text makes the search slow."""
    at = text.find("@")
    while at >= 0:
        begin = max(0, at - 64)
        local = _longest_local(text, begin, at)
        domain = _DOMAIN.match(text, at + 1, min(len(text), at + 260))
        if local is not None and domain is not None:
            yield Found("an e-mail address", local, domain.end())
        at = text.find("@", at + 1)


def _longest_local(text: str, begin: int, at: int) -> int | None:
    start = at
    while start > begin and (text[start - 1].isalnum() or text[start - 1] == "_" or text[start - 1] in _EDGES):
        start -= 1
    while start < at and text[start] in _EDGES:
        start += 1
    return start if start < at and _LOCAL.match(text, start, at) else None


def _texts(value: Any) -> Iterator[tuple[str, str, bool]]:
    todo: list[tuple[str, Any]] = [("", value)]
    while todo:
        path, each = todo.pop()
        if isinstance(each, str):
            yield path, each, False
        elif is_object(each):
            for key in each:
                yield path, key, True
            todo += [(f"{path}.{key}" if path else key, inner) for key, inner in reversed(each.items())]
        elif is_list(each):
            todo += [(f"{path}[{number}]", inner) for number, inner in reversed(list(enumerate(each)))]
