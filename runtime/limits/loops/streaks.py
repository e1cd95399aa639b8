"""Runs of calls that get nowhere although no two of them are equal: errors, short answers, asks, texts.

Each keeps its own count since the last progress; `guard.py` says how much of it is too much.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, define, field, frozen

from .subject import Ask, Relation, Scalar, content_words, facts, refuses, relation, shape, similar, tokens, touches
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
            gained = {Relation.SAME: 1.0, Relation.VARIANT: 0.85, Relation.OTHER: 0.25}[about]
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
        how = {wording: wording.relation(ask) for wording in errand.wordings}
        if Relation.SAME in how.values():
            return Relation.SAME
        reworded = [wording for wording, kind in how.items() if kind is Relation.VARIANT]
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
