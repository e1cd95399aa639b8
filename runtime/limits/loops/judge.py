"""What a call brought, judged against what this actor has been told before.

What counts is not that a call comes again but that nothing is learned and nothing has changed since:

* A change asked for the first time and done makes everything before it worth looking at again; so does a human.
* A line never seen, another answer to the same call, an unknown failure, a new fact from another agent: news.
  What was known stays known, but counts start over.
* Tools that change only the agent's own notes never bring news.
"""

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from attrs import evolve, frozen

from .canonical import canonical, digest, without
from .memory import CALLS, Answer, Answers, Lines, Marks
from .reading import only_reads
from .settings import GuardSettings
from .steps import CallSeen, Flags
from .streaks import Errands, Errors, SameAnswers, Streak, Told
from .subject import Scalar, ask_of, flat
from .volatile import is_clock, masked, masked_error, reads_as_error, says_something, without_echo
from .waiting import LATER, PAUSE, WAIT, ended, waits

BRIEF = 80
"""Characters up to which one line is a bare answer ("ok", "no matches") that many questions may share."""

LOOKS = Flags(read_only=True)
REFUSALS = ("refused:", "[refused]", "[loop guard]")
"""How the result of a call begins that the guard has kept from running."""


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


@frozen
class Judged:
    """One call and what it brought.

    `before` is how much its answer had counted so far, `gained` what this time adds. `excused` means that the
    context was lost in between, `refused` that the call was blocked and did not run.
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


class Judge:
    """Knows what the actor knows. Three clocks say how old that is.

    `epoch` rises when the world changed or a human spoke (counts are void), `turn` with news (counts fall back to
    one), `phase` with the epoch and when the context was lost (known lines may be read again).
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.settings = settings
        self.ignore = frozenset(settings.ignore_fields)
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

    def judge(self, call: CallSeen, at: float, blocked: Iterable[int]) -> Judged:
        arguments = canonical(call.arguments, self.ignore)
        flags = LOOKS if call.flags.mutates and only_reads(call.arguments) else call.flags
        seen = Judged(call, self.key(call.name, arguments), arguments, flags)
        if seen.key in blocked:
            return evolve(seen, novelty=Novelty.REPEAT, refused=True)
        if call.is_error and call.result.startswith(REFUSALS):
            return self._did_not_run(seen)
        text = self._heard(call.result)
        failed = (call.is_error and says_something(text)) or (len(text) < 200 and reads_as_error(text))
        ask = None if flags.read_only or flags.poll else ask_of(call.name, call.arguments, flags.delegates)
        if ask is None and waits(call, flags, arguments, text):
            self.waited += call.seconds
        raw = digest(("!" if failed else "") + text)
        read = self.lines.read(text, self.phase)
        record = self.answers.find(seen.key)
        if ask is not None:
            seen = evolve(seen, told=self.errands.add(ask, masked(text[:8000]), failed))
        if record is None:
            answer = self.answers.add(seen.key, (call.name, arguments[:2000]), raw, text)
            return self._first(evolve(seen, answer=answer), text, failed, *read)
        answer, new, same = self.answers.match(record, raw, text)
        return self._again(evolve(seen, answer=answer), new, same, text, at)

    def _did_not_run(self, seen: Judged) -> Judged:
        """Our own refusal came back as the result: nothing was learned, and the call was asked for once more."""
        record = self.answers.find(seen.key)
        if record is None or record.last.epoch != self.epoch:
            return seen
        return evolve(seen, novelty=Novelty.REPEAT, answer=record.last, before=record.last.weight)

    def _heard(self, result: str) -> str:
        """The result without the ignored fields, where it is JSON."""
        if not self.ignore or result[:1] not in ("{", "["):
            return result
        try:
            parsed: Any = json.loads(result)
        except ValueError:
            return result
        return json.dumps(without(parsed, self.ignore), sort_keys=True, ensure_ascii=False)

    def _first(self, seen: Judged, text: str, failed: bool, lines: int, never: int, unread: int) -> Judged:
        """A call that was not made before, or too long ago to remember."""
        flags = seen.flags
        if seen.told is not None and seen.told.known:
            return evolve(seen, novelty=Novelty.NEWS if seen.told.news else Novelty.ASKED_AGAIN)
        if failed:
            return self._failure(seen, text)
        if flags.mutates and not flags.read_only:
            return evolve(seen, novelty=Novelty.WORK if self.calls.add(seen.key) else Novelty.NOTHING)
        if _own_notes(seen):
            return evolve(seen, novelty=Novelty.SAME_ANSWER, streak=self._question(seen, text))
        if len(text) <= BRIEF and "\n" not in text.strip():
            return self._brief(seen, text, never)
        # A new header over known lines is no news; one new line in a short answer is.
        if never and (lines < 20 or never > lines * 0.05):
            return evolve(seen, novelty=Novelty.NEWS)
        if flags.poll or unread > lines * 0.05:
            return seen
        return evolve(seen, novelty=Novelty.REREAD)

    def _brief(self, seen: Judged, text: str, never: int) -> Judged:
        """A bare answer to a new question. What it repeats of the question does not make it a new one."""
        if is_clock(text):
            return seen
        said = digest(f"{seen.call.name}\0{without_echo(masked(text), _strings(flat(seen.call.arguments)))}")
        if self.said.add(said) and never:
            self._question(seen, text)
            return evolve(seen, novelty=Novelty.NEWS)
        if seen.flags.poll:
            return seen
        return evolve(seen, novelty=Novelty.SAME_ANSWER, streak=self._question(seen, text))

    def _failure(self, seen: Judged, text: str) -> Judged:
        question = flat(seen.call.arguments)
        error = masked_error(text, _strings(question))
        mark = digest(f"{seen.call.name}\0{error}")
        unknown = self.failures.add(mark)
        found = self.errors.add(seen.call.name, mark, error, question, self.waited)
        if found is not None:
            return evolve(seen, novelty=Novelty.SAME_ERROR, streak=found)
        return evolve(seen, novelty=Novelty.NEWS if unknown and not _own_notes(seen) else Novelty.NOTHING)

    def _question(self, seen: Judged, text: str) -> Streak:
        question = flat(seen.call.arguments)
        said = digest(without_echo(masked(text), _strings(question)))
        return self.same.add(seen.call.name, said, question, _own_notes(seen))

    def _again(self, seen: Judged, new: bool, same: bool, text: str, at: float) -> Judged:
        """A call that was made before."""
        answer, told = seen.answer, seen.told
        assert answer is not None
        if new:
            if told is not None and told.known and not told.news:
                return evolve(seen, novelty=Novelty.ASKED_AGAIN)
            nothing = _own_notes(seen) or is_clock(text)
            return evolve(seen, novelty=Novelty.NOTHING if nothing else Novelty.NEWS)
        before = answer.weight if answer.epoch == self.epoch else 0.0
        if answer.turn != self.turn:
            before = min(before, 1.0)
        if not before:
            return seen
        gained = self._gain(seen, answer, same, text, at)
        excused = answer.phase != self.phase
        return evolve(seen, novelty=Novelty.REPEAT, before=before, gained=gained, excused=excused)

    def _gain(self, seen: Judged, answer: Answer, same: bool, text: str, at: float) -> float:
        """What one more of the same answer counts."""
        waited = self.waited - answer.waited
        if seen.flags.poll:
            passes = (waited >= WAIT or at - answer.at >= LATER) and not ended(text)
            return 0.2 if passes else 0.5
        if waited >= WAIT:
            return 1 / 3
        if waited >= PAUSE:
            return 0.5
        return 1.0 if same else 0.7

    def progress(self, judged: list[Judged]) -> bool:
        """Move the clocks if any call of the step brought something. Returns whether one did."""
        brought = {one.novelty for one in judged}
        if Novelty.WORK in brought:
            self.new_epoch()
            if any(one.novelty is Novelty.WORK and one.told is None for one in judged):
                self.errands = Errands()
        elif Novelty.NEWS in brought:
            self.turn += 1
            self._forget_streaks()
            if any(one.novelty is Novelty.NEWS and one.told is None for one in judged):
                self.errands.floor()
        else:
            return False
        self.moved = True
        return True

    def new_epoch(self) -> None:
        self.epoch += 1
        self.phase += 1
        self._forget_streaks()

    def _forget_streaks(self) -> None:
        self.errors = Errors()
        self.same = SameAnswers()

    def human(self) -> None:
        """A human spoke: the mandate is fresh."""
        self.new_epoch()
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
            answer.times = answer.times + 1 if weight > 1 else 1
            answer.weight = weight
            answer.epoch, answer.turn, answer.phase = self.epoch, self.turn, self.phase
            answer.waited, answer.at = self.waited, at

    def snapshot(self) -> dict[str, Any]:
        return {
            "clocks": [self.epoch, self.turn, self.phase, self.moved, self.waited],
            "lines": self.lines.snapshot(),
            "answers": self.answers.snapshot(),
            "calls": self.calls.snapshot(),
            "failures": self.failures.snapshot(),
            "said": self.said.snapshot(),
            "errands": self.errands.snapshot(),
            "errors": self.errors.snapshot(),
            "same": self.same.snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.turn, self.phase, self.moved, self.waited = state["clocks"]
        self.lines.restore(state["lines"])
        self.answers.restore(state["answers"])
        self.calls.restore(state["calls"])
        self.failures.restore(state["failures"])
        self.said.restore(state["said"])
        self.errands.restore(state["errands"])
        self.errors.restore(state["errors"])
        self.same.restore(state["same"])


def _own_notes(seen: Judged) -> bool:
    flags = seen.flags
    return not (flags.read_only or flags.mutates or flags.poll)


def _strings(question: Mapping[str, Scalar]) -> list[str]:
    return [value for value in question.values() if isinstance(value, str)]
