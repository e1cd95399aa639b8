"""What a call is about: whether two questions, or two asks, are the same one in other words.

Words alone do not tell. "Review a.py for leaks" and "Review b.py for leaks" share nearly all of them and are two
jobs; "push the branch, open the PR" and "please open a pull request and push" share few and are one. So: a name,
path or number that takes the place of another makes a new subject; added words, another order, another case or
other punctuation do not.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

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
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "at",
        "by",
        "for",
        "with",
        "from",
        "into",
        "as",
        "is",
        "are",
        "was",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "then",
        "there",
        "here",
        "now",
        "please",
        "kindly",
        "could",
        "can",
        "would",
        "should",
        "will",
        "you",
        "we",
        "i",
        "me",
        "my",
        "our",
        "your",
        "do",
        "does",
        "did",
        "need",
        "needs",
        "want",
        "again",
        "once",
        "more",
        "try",
        "just",
        "also",
        "so",
        "first",
        "next",
        "all",
        "any",
        "some",
        "about",
        "out",
        "up",
        "still",
        "not",
        "must",
        "important",
        "sure",
        "make",
        "let",
        "us",
        "try",
        "try",
    ]
)
_REFUSING = re.compile(
    r"\b(?:cannot|can't|can not|unable|impossible|not possible|missing|denied|refuse[ds]?|forbidden|not allowed"
    r"|not permitted|no access|could not|couldn't|don't have|do not have|lack|no longer|no \w+ credentials)\b",
    re.IGNORECASE,
)
_FACT = re.compile(r"[\w./\\-]*\d[\w./\\-]*|\w+(?:[./\\_]\w+)+|[a-z]+[A-Z]\w*")


def flat(arguments: Mapping[str, Any]) -> dict[str, Scalar]:
    """The scalars of the arguments by path; long texts are cut at 400 characters."""
    found: dict[str, Scalar] = {}

    def walk(path: str, value: Any) -> None:
        if is_mapping(value):
            for key, item in value.items():
                walk(f"{path}.{key}" if path else str(key), item)
        elif is_list(value):
            for place, item in enumerate(value[:20]):
                walk(f"{path}.{place}", item)
        elif value is None or isinstance(value, int | float):
            found[path] = value
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
            if set(_tokens(one)) & set(_tokens(two)) or _inside(one, two):
                return True
        elif one == two and one is not None and not isinstance(one, bool):
            return True
    return not before and not now


def compare(one: str, two: str) -> Relation:
    """Whether two strings name the same subject."""
    first, second = _tokens(one), _tokens(two)
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
        names = set(_names(one)) ^ set(_names(two))
        return Relation.OTHER if names or any(t.isdigit() for t in (*old, *new)) else Relation.VARIANT
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


@frozen
class Ask:
    """What one agent asked of another, or told somebody: then the answer is a receipt and never news."""

    target: str
    text: str
    words: tuple[str, ...]
    told: bool = False

    def relation(self, other: "Ask") -> Relation:
        """SAME for the same words in any order, VARIANT for a rewording, OTHER for another job."""
        if self.target != other.target:
            return Relation.OTHER
        if sorted(self.words) == sorted(other.words) and sorted(_names(self.text)) == sorted(_names(other.text)):
            return Relation.SAME
        if set(_names(self.text)) ^ set(_names(other.text)):
            return Relation.OTHER
        shared = set(self.words) & set(other.words)
        fewest = min(len(set(self.words)), len(set(other.words)))
        if not fewest or len(shared) / fewest < 0.5:
            return Relation.OTHER
        return Relation.VARIANT

    def is_template_of(self, other: "Ask") -> bool:
        """Whether the two differ in exactly one place: the same errand with another item."""
        return slot_of(list(self.words), list(other.words)) is not None


_DELEGATING = re.compile(
    r"^(?:delegate|spawn|hand_?off|transfer|assign|consult|start)(?:_|$)|^ask_(?!user|human|question|permission|approval)"
    r"|^(?:task|delegate|subagent|handoff)$",
    re.IGNORECASE,
)
_TELLING = re.compile(r"^(?:send|post|notify|reply|message|email|mail|comment|announce|publish)(?:_|$)", re.IGNORECASE)
_AGENT = re.compile(r"agent", re.IGNORECASE)
_NOT_ASKING = re.compile(
    r"^(?:a?wait|list|get|stop|cancel|kill|check|poll|read|show|status|find|describe)(?:_|$)", re.IGNORECASE
)
_ASK_KEYS = (
    "task",
    "message",
    "prompt",
    "ask",
    "question",
    "instructions",
    "instruction",
    "request",
    "goal",
    "input",
    "text",
    "body",
)


def ask_of(name: str, arguments: Mapping[str, Any], declared: bool) -> Ask | None:
    """What is asked of another agent or told somebody, or None if the call does neither."""
    asked = declared or _DELEGATING.search(name) or (_AGENT.search(name) and not _NOT_ASKING.search(name))
    told = not asked and _TELLING.search(name) is not None
    if not (asked or told):
        return None
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    key = next((key for key in _ASK_KEYS if key in texts), None) or max(
        texts, key=lambda key: len(texts[key]), default=None
    )
    if key is None or len(_tokens(texts[key])) < 3:
        return None
    rest = ",".join(f"{k}={re.sub(r'[0-9]+', '#', str(v))}" for k, v in sorted(arguments.items()) if k != key)
    text = texts[key][:2000]
    return Ask(f"{name}({rest})", text, tuple(content_words(text)), told)


def content_words(text: str) -> list[str]:
    """The words that carry meaning, without endings, in their order."""
    return [_stem(token) for token in _tokens(text) if token not in _STOP]


def similar(one: set[str], two: set[str]) -> bool:
    """Whether two answers say the same in other words."""
    fewest = min(len(one), len(two))
    return fewest == 0 or len(one & two) / fewest >= 0.5


def facts(text: str) -> set[str]:
    """The names, paths and numbers in an answer: what a reworded answer leaves unchanged."""
    return {match.casefold().strip(".,/-\\") for match in _FACT.findall(text[:20000])}


def shape(text: str) -> str:
    """The words of an answer in their order, numbers blanked."""
    return " ".join("#" if token.isdigit() else token for token in _tokens(text[:4000]))


def refuses(text: str) -> bool:
    return bool(_REFUSING.search(text[:2000]))


def tokens(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _tokens(text)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _names(text: str) -> list[str]:
    """Paths, identifiers and numbers: what names one thing among others."""
    words = (word.strip(".,;:!?\"'()[]{}") for word in text.split())
    return [word for word in words if _NAME_LIKE.fullmatch(word)]


def _path_like(text: str) -> bool:
    return ("/" in text or _DRIVE.match(text) is not None) and len(text.split()) == 1 and len(text) < 300


def _inside(one: str, two: str) -> bool:
    """Whether the longest word of either is most of the other: `\\bName` and `Name\\b`, `[N]ame` and `Name`."""
    first, second = _tokens(one), _tokens(two)
    for words, other in ((first, "".join(second)), (second, "".join(first))):
        longest = max(words, key=len, default="")
        if len(longest) >= 4 and longest in other and len(longest) * 2 > len(other):
            return True
    return False


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
