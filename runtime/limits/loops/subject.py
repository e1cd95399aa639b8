"""What a call is about: whether two questions are the same one in other words.

Words alone do not tell. "Review a.py for leaks" and "Review b.py for leaks" share nearly all of them and are two
jobs; "push the branch, open the PR" and "please open a pull request and push" share few and are one. So: a name,
path or number that takes the place of another makes a new subject; added words, another order, another case or
other punctuation do not.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from .canonical import is_list, is_mapping

Scalar = str | int | float | bool | None


class Relation(Enum):
    """How a question stands to the one before it."""

    SAME = "same"
    VARIANT = "variant"
    OTHER = "other"


_TOKEN = re.compile(r"[^\W_]+")
_NAME_LIKE = re.compile(r"[\w-]*\d[\w-]*|\w+[./\\]\S+|\S*[/\\]\S+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w+_\w+")
_PARAMETER = re.compile(
    r"(?:^|[._-])(?:limit|offset|page|max|min|count|size|timeout|depth|n|k|top|first|last|start|end|lines?|context"
    r"|from|to|tail|head|per|results?|version|retries|attempt|wait|seconds|length|window|skip|take)(?![a-z])"
)
_DRIVE = re.compile(r"[A-Za-z]:\\")


def flat(arguments: Mapping[str, Any]) -> dict[str, Scalar]:
    """The scalars of the arguments by path; long texts are cut at 400 characters."""
    found: dict[str, Scalar] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, str):  # first, for nearly all are
            found[path] = value[:400]
        elif value is None or isinstance(value, int | float):
            found[path] = value
        elif is_mapping(value):
            for key, item in value.items():
                walk(f"{path}.{key}" if path else str(key), item)
        elif is_list(value):
            for place, item in enumerate(value[:20]):
                walk(f"{path}.{place}", item)
        else:
            found[path] = str(value)[:400]

    walk("", arguments)
    return found


def relation(before: Mapping[str, Scalar], now: Mapping[str, Scalar]) -> Relation:
    """Whether `now` asks the same question as `before`, looking only at the fields that changed."""
    seen: set[Relation] = set()
    for key in {*before, *now}:
        one, two = before.get(key), now.get(key)
        if one == two:
            continue
        if isinstance(one, str) and isinstance(two, str):
            seen.add(compare(one, two))
        elif isinstance(one, str) or isinstance(two, str):
            seen.add(Relation.VARIANT)
        elif not (isinstance(one, bool) or isinstance(two, bool) or _PARAMETER.search(key)):
            seen.add(Relation.OTHER)
    for verdict in (Relation.SAME, Relation.OTHER, Relation.VARIANT):
        if verdict in seen:
            return verdict
    return Relation.SAME


def touches(before: Mapping[str, Scalar], now: Mapping[str, Scalar]) -> bool:
    """Whether two calls have any word in common in the same field."""
    for key in before.keys() & now.keys():
        one, two = before[key], now[key]
        if isinstance(one, str) and isinstance(two, str):
            if set(tokens(one)) & set(tokens(two)) or _inside(one, two):
                return True
        elif one == two and one is not None and not isinstance(one, bool):
            return True
    return not before and not now


def compare(one: str, two: str) -> Relation:
    """Whether two strings name the same subject."""
    first, second = tokens(one), tokens(two)
    if set(first) == set(second):
        return Relation.SAME
    if _path_like(one) and _path_like(two):
        return Relation.OTHER
    return _aligned(one, two, first, second)


def _aligned(one: str, two: str, first: list[str], second: list[str]) -> Relation:
    shared = set(first) & set(second)
    if not shared:
        return Relation.SAME if _inside(one, two) else Relation.OTHER
    added = [token for token in (*first, *second) if token not in shared]
    if shared >= set(first) or shared >= set(second):
        return Relation.OTHER if any(token.isdigit() for token in added) else Relation.SAME
    slot = slot_of(first, second)
    if slot is not None:
        old, new = slot
        if _inside("".join(old), "".join(new)):
            return Relation.SAME
        named = set(names(one)) ^ set(names(two))
        return Relation.OTHER if named or any(t.isdigit() for t in (*old, *new)) else Relation.VARIANT
    overlap = len(shared) / min(len(set(first)), len(set(second)))
    return Relation.SAME if overlap >= 0.5 else Relation.VARIANT if overlap >= 0.3 else Relation.OTHER


def slot_of(first: list[str], second: list[str]) -> tuple[list[str], list[str]] | None:
    """The one place where two texts differ, if both have something there and all they share stands around it."""
    head = 0
    while head < min(len(first), len(second)) and first[head] == second[head]:
        head += 1
    tail = 0
    while tail < min(len(first), len(second)) - head and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    old, new = first[head : len(first) - tail], second[head : len(second) - tail]
    if not old or not new or not head + tail or set(old) & set(new):
        return None
    return old, new


def tokens(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _TOKEN.findall(text.casefold())


@lru_cache(maxsize=256)
def names(text: str) -> tuple[str, ...]:
    """Paths, identifiers and numbers: what names one thing among others."""
    words = (word.strip(".,;:!?\"'()[]{}") for word in text.split())
    return tuple(word for word in words if _NAME_LIKE.fullmatch(word))


def _path_like(text: str) -> bool:
    return ("/" in text or _DRIVE.match(text) is not None) and len(text.split()) == 1 and len(text) < 300


def _inside(one: str, two: str) -> bool:
    """Whether the longest word of either is most of the other: `\\bName` and `Name\\b`, `[N]ame` and `Name`."""
    first, second = tokens(one), tokens(two)
    for words, other in ((first, "".join(second)), (second, "".join(first))):
        longest = max(words, key=len, default="")
        if len(longest) >= 4 and longest in other and len(longest) * 2 > len(other):
            return True
    return False
