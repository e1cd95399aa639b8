"""What one agent asks of another: the same errand in other words, and whether an answer brings anything new.

A rewording has other words in another order and no name that the first did not have. "Review a.py" and "review b.py"
differ in one place and are two errands, unless both are refused for the same reason.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from attrs import asdict, define, field, frozen

from .subject import Relation, names, slot_of, tokens

KEPT = 8

_STOP = frozenset(  # one word a line would be a page
    """
    a an the and or of to in on at by for with from into as is are was be been it its this that these those
    then there here now please kindly could can would should will you we i me my our your do does did need
    needs want again once more try just also so first next all any some about out up still must
    important sure make let us
    """.split()  # noqa: SIM905
)
_REFUSING = re.compile(
    r"\b(?:cannot|can't|can not|unable|impossible|not possible|missing|denied|refuse[ds]?|forbidden|not allowed"
    r"|not permitted|no access|could not|couldn't|don't have|do not have|lack|no longer|no \w+ credentials)\b",
    re.IGNORECASE,
)
_FACT = re.compile(r"(?<![\w./\\-])[\w./\\-]*\d[\w./\\-]*|(?<!\w)\w+(?:[./\\_]\w+)+|(?<![a-z])[a-z]+[A-Z]\w*")
"""Each looks only at the beginning of a run of its letters: to try every place in a long one costs its square."""


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
        mine, theirs = names(self.text), names(other.text)
        if set(mine) != set(theirs):
            return Relation.OTHER
        if sorted(self.words) == sorted(other.words) and sorted(mine) == sorted(theirs):
            return Relation.SAME
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
    asked, told = _speaks(name)
    if not (asked or told or declared):
        return None
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    key = next((key for key in _ASK_KEYS if key in texts), None) or max(
        texts, key=lambda key: len(texts[key]), default=None
    )
    if key is None or len(tokens(texts[key])) < 3:
        return None
    rest = ",".join(f"{k}={re.sub(r'[0-9]+', '#', str(v))}" for k, v in sorted(arguments.items()) if k != key)
    text = texts[key][:2000]
    return Ask(f"{name}({rest})", text, tuple(content_words(text)), told and not declared)


@lru_cache(maxsize=512)
def _speaks(name: str) -> tuple[bool, bool]:
    """Whether a tool of this name asks another agent, and whether it tells somebody something."""
    asks = bool(_DELEGATING.search(name) or (_AGENT.search(name) and not _NOT_ASKING.search(name)))
    return asks, not asks and _TELLING.search(name) is not None


def content_words(text: str) -> list[str]:
    """The words that carry meaning, without endings, in their order."""
    return [_stem(token) for token in tokens(text) if token not in _STOP]


def similar(one: set[str], two: set[str]) -> bool:
    """Whether two answers say the same in other words."""
    fewest = min(len(one), len(two))
    return fewest == 0 or len(one & two) / fewest >= 0.5


def facts(text: str) -> set[str]:
    """The names, paths and numbers in an answer: what a reworded answer leaves unchanged."""
    return {match.casefold().strip(".,/-\\") for match in _FACT.findall(text[:20000])}


def shape(text: str) -> str:
    """The words of an answer in their order, numbers blanked."""
    return " ".join("#" if token.isdigit() else token for token in tokens(text[:4000]))


def refuses(text: str) -> bool:
    return bool(_REFUSING.search(text[:2000]))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@define
class Errand:
    """One thing asked of another agent, in all its wordings, with what the answers said."""

    wordings: list[Ask]
    facts: list[str]
    words: list[str]
    shape: str
    weight: float
    times: int

    def learn(self, answer: str, said: Iterable[str]) -> None:
        self.words = sorted({*self.words[:100], *said})[:200]
        self.facts = sorted({*self.facts, *facts(answer)})[:200]
        self.shape = shape(answer)[:1000]

    def brings_news(self, answer: str) -> bool:
        """Whether an answer says more than the ones before: other figures in the same words, or new names."""
        known = self.facts
        new = {fact for fact in facts(answer) if not any(fact in old or old in fact for old in known)}
        figures = facts(answer) - set(known)
        return len(new) > 1 or bool(figures and shape(answer)[:1000] == self.shape)


@frozen
class Told:
    """What became of an ask: a new errand, a known one with news, or a known one without."""

    errand: Errand
    known: bool
    news: bool
    exact: bool = False


@define
class Errands:
    """What was asked of other agents since the world last changed."""

    errands: list[Errand] = field(factory=list[Errand])

    def add(self, ask: Ask, answer: str, failed: bool) -> Told:
        said = set(content_words(answer[:4000]))
        for errand in reversed(self.errands):
            how = self._same(errand, ask, answer, said)
            if how is None:
                continue
            news = not (failed or ask.told or refuses(answer)) and errand.brings_news(answer)
            errand.learn(answer, said)
            errand.times += 1
            if how is Relation.VARIANT:
                errand.wordings = [*errand.wordings, ask][-KEPT:]
            errand.weight = 1.0 if news else errand.weight + (1.0 if how is Relation.SAME else 0.75)
            return Told(errand, True, news, how is Relation.SAME)
        errand = Errand([ask], [], [], "", 1.0, 1)
        errand.learn(answer, said)
        self.errands = [*self.errands, errand][-2 * KEPT :]
        return Told(errand, False, True)

    @staticmethod
    def _same(errand: Errand, ask: Ask, answer: str, said: set[str]) -> Relation | None:
        how = [wording.relation(ask) for wording in errand.wordings]
        if Relation.SAME in how:
            return Relation.SAME
        reworded = [wording for wording, kind in zip(errand.wordings, how, strict=True) if kind is Relation.VARIANT]
        if not reworded or not similar(said, set(errand.words)):
            return None
        # "Review A" and "review B" differ in one place; only the same refusal makes them one errand.
        if all(wording.is_template_of(ask) for wording in reworded) and not refuses(answer):
            return None
        return Relation.VARIANT

    def floor(self) -> None:
        """Something was learned elsewhere: every errand counts as asked once."""
        for errand in self.errands:
            errand.weight = min(errand.weight, 1.0)

    def snapshot(self) -> list[dict[str, Any]]:
        return [asdict(errand) for errand in self.errands]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.errands = []
        for row in rows:
            wordings = [Ask(w["target"], w["text"], tuple(w["words"]), w["told"]) for w in row["wordings"]]
            rest = (row["facts"], row["words"], row["shape"], row["weight"], row["times"])
            self.errands.append(Errand(wordings, *rest))
