"""What a call brought, judged against what this actor has been told before.

What counts is not that a call comes again but that nothing is learned and nothing has changed since:

* A change asked for the first time and done makes everything before it worth looking at again; so does a human.
* A line never seen, another answer to the same call, an unknown failure, a new fact from another agent: news.
  What was known stays known, but counts start over.
* Tools that change only the agent's own notes never bring news.
"""

import json
from collections.abc import Container, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from attrs import define

from .canonical import canonical, digest, without
from .errands import Errands, Told, ask_of
from .memory import CALLS, Answer, Answers, Lines, Marks
from .reading import only_reads
from .settings import GuardSettings
from .steps import CallSeen, Flags
from .streaks import Errors, SameAnswers, Streak
from .subject import Scalar, flat
from .volatile import is_clock, masked, masked_error, reads_as_error, says_something, without_echo
from .waiting import LATER, PAUSE, WAIT, ended, waits

BRIEF = 80
"""Characters up to which one line is a bare answer ("ok", "no matches") that many questions may share."""
HEADER = 0.05
"""The share of lines up to which new ones over known ones are a header, not news."""
REMEMBERED = 0.5
"""What an answer from before the latest news still counts."""
REFUSALS = ("refused:", "[refused]", "[loop guard]")
"""How the result of a call begins that the guard has kept from running."""
_LOOKS = Flags(read_only=True)


class Novelty(Enum):
    """What a call brought."""

    WORK = "a change asked for and done for the first time"
    NEWS = "something not known before"
    REPEAT = "the same call with the same answer"
    REREAD = "other arguments, but every line is known"
    SAME_ANSWER = "another question with a short known answer"
    SAME_ERROR = "another call with a known failure"
    ASKED_AGAIN = "an errand another agent already had"
    NOTHING = "neither news nor a repetition"

    @property
    def is_progress(self) -> bool:
        return self in (Novelty.WORK, Novelty.NEWS)


@define
class Judged:
    """One call and what it brought. Filled in while it is judged, then only read.

    `before` is how much its answer had counted so far, `gained` what this time adds. `excused` means that the
    context was lost in between, `refused` that the call is blocked and did not run.
    """

    call: CallSeen
    key: int
    arguments: str
    flags: Flags
    novelty: Novelty = Novelty.NOTHING
    answer: Answer | None = None
    before: float = 0.0
    gained: float = 1.0
    streak: Streak | None = None
    told: Told | None = None
    excused: bool = False
    refused: bool = False

    @property
    def weight(self) -> float:
        return self.before + self.gained

    @property
    def own_notes(self) -> bool:
        flags = self.flags
        return not (flags.read_only or flags.mutates or flags.poll)


class Judge:
    """Knows what the actor knows. Three clocks say how old that is.

    `epoch` rises when the world changed or a human spoke (counts are void), `turn` with news (little is left of
    counts), `phase` with the epoch and when the context was lost (known lines may be read again).
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.ignore = _fields(settings.ignore_fields)
        self.lines = Lines()
        self.answers = Answers()
        self.calls = Marks(CALLS)
        self.failures = Marks(256)
        self.said = Marks(1024)
        self.errands = Errands()
        self.errors = Errors()
        self.same = SameAnswers()
        self.epoch = self.turn = self.phase = 0
        self.moved = False
        self.waited = 0.0

    def key(self, name: str, arguments: str) -> int:
        return digest(f"{name}\0{arguments}")

    def judge(self, call: CallSeen, at: float, blocked: Container[int]) -> Judged:
        arguments = canonical(call.arguments, self.ignore)
        flags = _LOOKS if call.flags.mutates and only_reads(call.arguments) else call.flags
        seen = Judged(call, self.key(call.name, arguments), arguments, flags)
        if seen.key in blocked:
            seen.novelty, seen.refused = Novelty.REPEAT, True
            return seen
        if call.is_error and call.result.startswith(REFUSALS):
            return self._did_not_run(seen)
        text = self._heard(call.result)
        failed = (call.is_error and says_something(text)) or (len(text) < 200 and reads_as_error(text))
        ask = None if flags.read_only or flags.poll else ask_of(call.name, call.arguments, flags.delegates)
        if ask is not None:
            seen.told = self.errands.add(ask, masked(text[:8000]), failed)
        elif waits(call, flags, arguments, text):
            self.waited += call.seconds
        raw = digest(("!" if failed else "") + text)
        record = self.answers.find(seen.key)
        if record is None:
            seen.answer = self.answers.add(seen.key, (call.name, arguments[:2000]), raw, text)
            self._first(seen, text, failed, *self.lines.read(text, self.phase))
            return seen
        if raw != record.last.raw or self.phase != record.last.phase:
            self.lines.learn(text, self.phase)
        answer, new, same = self.answers.match(record, raw, text, self.epoch)
        seen.answer = answer
        if new:
            self._another_answer(seen, text)
        else:
            self._again(seen, answer, text, failed, same, record.live > 1, at)
        return seen

    def _did_not_run(self, seen: Judged) -> Judged:
        """Our own refusal came back as the result: nothing was learned, and the call was asked for once more."""
        record = self.answers.find(seen.key)
        if record is not None and record.last.epoch == self.epoch:
            seen.novelty, seen.answer, seen.before = Novelty.REPEAT, record.last, record.last.weight
        return seen

    def _heard(self, result: str) -> str:
        """The result without the ignored fields, where it is JSON."""
        if not self.ignore or result[:1] not in ("{", "["):
            return result
        try:
            parsed: Any = json.loads(result)
        except ValueError:
            return result
        return json.dumps(without(parsed, self.ignore), sort_keys=True, ensure_ascii=False)

    # A call that was not made before, or too long ago to remember

    def _first(self, seen: Judged, text: str, failed: bool, lines: int, never: int, unread: int) -> None:
        flags, told = seen.flags, seen.told
        if told is not None and told.known:
            seen.novelty = Novelty.NEWS if told.news else Novelty.ASKED_AGAIN
        elif failed:
            seen.streak, unknown = self._failure(seen, text)
            if seen.streak.times > 1:
                seen.novelty = Novelty.SAME_ERROR
            elif unknown and not seen.own_notes:
                seen.novelty = Novelty.NEWS
        elif flags.mutates and not flags.read_only:
            if self.calls.add(seen.key):
                seen.novelty = Novelty.WORK
        elif seen.own_notes:
            seen.novelty, seen.streak = Novelty.SAME_ANSWER, self._question(seen, text)
        elif _is_brief(text):
            self._brief(seen, text, never)
        elif never and (lines < 20 or never > lines * HEADER):
            seen.novelty = Novelty.NEWS
        elif not flags.poll and unread <= lines * HEADER:
            seen.novelty = Novelty.REREAD

    def _brief(self, seen: Judged, text: str, never: int) -> None:
        """A bare answer to a new question. What it repeats of the question does not make it a new one."""
        if is_clock(text):
            return
        question = flat(seen.call.arguments)
        said = without_echo(masked(text), _strings(question))
        news = self.said.add(digest(f"{seen.call.name}\0{said}")) and never
        if news or not seen.flags.poll:
            seen.novelty = Novelty.NEWS if news else Novelty.SAME_ANSWER
            seen.streak = self.same.add(seen.call.name, digest(said), question, self.waited, seen.own_notes)

    def _question(self, seen: Judged, text: str) -> Streak:
        question = flat(seen.call.arguments)
        said = digest(without_echo(masked(text), _strings(question)))
        return self.same.add(seen.call.name, said, question, self.waited, seen.own_notes)

    def _failure(self, seen: Judged, text: str) -> tuple[Streak, bool]:
        """The streak a failure begins or continues, and whether it is an unknown one."""
        question = flat(seen.call.arguments)
        error = masked_error(text, _strings(question))
        mark = digest(error)
        unknown = self.failures.add(mark)
        return self.errors.add(seen.call.name, mark, error, question, self.waited), unknown

    # A call that was made before

    def _another_answer(self, seen: Judged, text: str) -> None:
        told = seen.told
        if told is not None and told.known and not told.news:
            seen.novelty = Novelty.ASKED_AGAIN
        elif not seen.own_notes and not is_clock(text):
            seen.novelty = Novelty.NEWS

    def _again(self, seen: Judged, answer: Answer, text: str, failed: bool, same: bool, live: bool, at: float) -> None:
        before = answer.weight if answer.epoch == self.epoch else 0.0
        if answer.turn != self.turn:
            before = min(before, REMEMBERED)
        if not before:
            return
        seen.novelty, seen.before = Novelty.REPEAT, before
        seen.excused = answer.phase != self.phase
        seen.gained = self._gain(seen, answer, same, text, at)
        if live:  # It has changed by itself before, so asking again is sensible.
            seen.gained = min(seen.gained, 0.5)
        if failed:
            seen.streak, _ = self._failure(seen, text)
        elif not live and not seen.flags.mutates and not seen.flags.poll and _is_brief(text):
            seen.streak = self._question(seen, text)

    def _gain(self, seen: Judged, answer: Answer, same: bool, text: str, at: float) -> float:
        """What one more of the same answer counts."""
        waited = self.waited - answer.waited
        if seen.flags.poll:
            passed, over = waited >= WAIT or at - answer.at >= LATER, ended(text)
            return 0.75 if over and not passed else 0.2 if passed and not over else 0.5
        if waited >= WAIT:
            return 1 / 3
        if waited >= PAUSE:
            return 0.5
        return 1.0 if same else 0.7

    # Clocks

    def progress(self, judged: list[Judged]) -> bool:
        """Move the clocks if any call of the step brought something. Returns whether one did."""
        work = [one for one in judged if one.novelty is Novelty.WORK]
        news = [one for one in judged if one.novelty is Novelty.NEWS]
        if work:
            self._new_epoch()
            if any(one.told is None for one in work):
                self.errands = Errands()
        elif news:
            self.turn += 1
            self._forget_streaks(news)
            if any(one.told is None for one in news):
                self.errands.floor()
        else:
            return False
        self.moved = True
        return True

    def human(self) -> None:
        """A human spoke: the mandate is fresh."""
        self._new_epoch()
        self.lines = Lines()
        self.errands = Errands()
        self.moved = True

    def compacted(self) -> None:
        """The model may read once more what it has lost, unless it got nowhere since the last time."""
        if self.moved:
            self.phase += 1
        self.moved = False

    def count(self, one: Judged, weight: float, at: float) -> None:
        """Remember how much an answer counts now."""
        answer = one.answer
        if answer is not None:
            answer.times = answer.times + 1 if one.before and answer.turn == self.turn else 1 + (one.before > 0)
            answer.weight = weight
            answer.epoch, answer.turn, answer.phase = self.epoch, self.turn, self.phase
            answer.waited, answer.at = self.waited, at

    def _new_epoch(self) -> None:
        self.epoch += 1
        self.phase += 1
        self._forget_streaks()

    def _forget_streaks(self, news: Iterable[Judged] = ()) -> None:
        """Forget all but what the news itself begins."""
        begun = [one.streak for one in news if one.streak is not None]
        for streak in begun:
            streak.weight, streak.times = 1.0, 1
        self.errors = Errors([streak for streak in begun if streak.failed])
        self.same = SameAnswers({streak.tool: streak for streak in begun if not streak.failed})

    def snapshot(self) -> dict[str, Any]:
        return {
            "clocks": [self.epoch, self.turn, self.phase, self.moved, self.waited],
            **{name: getattr(self, name).snapshot() for name in _PARTS},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.turn, self.phase, self.moved, self.waited = state["clocks"]
        for name in _PARTS:
            getattr(self, name).restore(state[name])


_PARTS = ("lines", "answers", "calls", "failures", "said", "errands", "errors", "same")


@lru_cache(maxsize=64)
def _fields(names: tuple[str, ...]) -> frozenset[str]:
    """One set for all actors with these settings: even an empty one takes 216 bytes."""
    return frozenset(names)


def _is_brief(text: str) -> bool:
    return len(text) <= BRIEF and "\n" not in text.strip()


def _strings(question: Mapping[str, Scalar]) -> list[str]:
    return [value for value in question.values() if isinstance(value, str)]
