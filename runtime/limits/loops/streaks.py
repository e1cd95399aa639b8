"""Runs of calls that get nowhere although no two of them are equal: errors, short answers, asks, texts.

Each keeps its own count since the last progress; `guard.py` says how much of it is too much.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, define, field

from .subject import Relation, Scalar, relation, tokens, touches
from .waiting import WAIT

KEPT = 8


@define
class Streak:
    """One error or one short answer of one tool, and what was asked when it came last."""

    tool: str
    mark: int
    failed: bool
    words: list[str]
    weight: float
    times: int
    question: dict[str, Scalar]
    waited: float


@define
class Errors:
    """The same failure for calls that differ, whatever the tool. It is the same if most of its words are."""

    streaks: list[Streak] = field(factory=list[Streak])

    def add(self, tool: str, mark: int, text: str, question: dict[str, Scalar], waited: float) -> Streak:
        """Count the failure. Returns its streak; its first time, `times` is 1."""
        words = sorted(set(tokens(text)))[:200]
        streak = next((s for s in self.streaks if s.mark == mark or _alike(s.words, words)), None)
        if streak is None:
            streak = Streak(tool, mark, True, words, 1.0, 1, question, waited)
            self.streaks = [*self.streaks, streak][-KEPT:]
            return streak
        gained = 1.0 if touches(streak.question, question) else 0.4
        streak.weight += gained if waited - streak.waited < WAIT else gained / 3
        streak.times += 1
        streak.question, streak.waited = question, waited
        return streak

    def snapshot(self) -> list[dict[str, Any]]:
        return [asdict(streak) for streak in self.streaks]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.streaks = [Streak(**row) for row in rows]


@define
class SameAnswers:
    """Questions that differ and get the same short answer, tool by tool."""

    streaks: dict[str, Streak] = field(factory=dict[str, Streak])

    def add(self, tool: str, mark: int, question: dict[str, Scalar], waited: float, own_notes: bool) -> Streak:
        streak = self.streaks.pop(tool, None)
        if streak is None:
            streak = Streak(tool, mark, False, [], 0.0, 0, question, waited)
            gained = 1.0
        else:
            # Asking about something else is no repetition even if the answer is; notes have no subject.
            about = Relation.SAME if own_notes else relation(streak.question, question)
            gained = 1.0 if about is Relation.SAME else 0.85 if about is Relation.VARIANT else 0.25
            if mark != streak.mark and not own_notes:
                gained /= 2
            if waited - streak.waited >= WAIT:
                gained /= 3
        streak.weight += gained
        streak.times += 1
        streak.mark, streak.question, streak.waited = mark, question, waited
        self.streaks[tool] = streak
        if len(self.streaks) > KEPT:
            del self.streaks[next(iter(self.streaks))]
        return streak

    def snapshot(self) -> list[dict[str, Any]]:
        return [asdict(streak) for streak in self.streaks.values()]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.streaks = {row["tool"]: Streak(**row) for row in rows}


@define
class Said:
    """A reply without calls, and how often it came."""

    words: list[str]
    times: int


@define
class Replies:
    """Replies that only talk, since the last progress."""

    said: list[Said] = field(factory=list[Said])

    def add(self, text: str) -> int:
        """Count the reply. Returns how often the same has been said."""
        words = tokens(text[:4000])
        for known in self.said:
            if known.words == words or (len(words) >= 4 and _alike(known.words, words, 0.8)):
                known.times += 1
                return known.times
        self.said = [*self.said, Said(words, 1)][-2 * KEPT :]
        return 1

    def snapshot(self) -> list[dict[str, Any]]:
        return [asdict(said) for said in self.said]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.said = [Said(**row) for row in rows]


def _alike(one: list[str], two: list[str], share: float = 0.6) -> bool:
    first, second = set(one), set(two)
    return len(first & second) >= share * len(first | second) and bool(first or second)
