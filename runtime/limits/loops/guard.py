"""The loop guard: tells work that repeats from work that gets nowhere.

How much is too much is measured against the ladder of the settings (nudge 3, block 6, stop 7): the same call with
the same answer counts 1, with an answer that differs only in times and ids 2/3, after real waiting 1/3, a poll
less still. Runs of calls that differ have a patience of their own (constants below). A block is the last warning:
whoever goes on without anything new is stopped.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, Self

from attrs import asdict, frozen

from .canonical import canonical, shown
from .chant import chants
from .circle import Circle
from .judge import Judge, Judged, Novelty
from .settings import GuardSettings, Ladder
from .steps import Event, StepSeen
from .streaks import Replies
from .verdicts import Block, Evidence, Nudge, Ok, Refusal, Stop, Verdict

VERSION = 1
ERROR_PATIENCE = 1.5
ANSWER_PATIENCE = 2.0
CIRCLE_PATIENCE = 1.5
REREAD_PATIENCE = 1.6


@frozen
class Strike:
    """A verdict in the making: how bad (1 nudge, 2 block, 3 stop), why, on what evidence, for which call."""

    level: int
    why: str
    evidence: Evidence
    judged: Judged | None = None


class Guard:
    """Watches one actor. Pure and owned by one task: feed it every step, ask it before every call.

    Memory is bounded; a step costs the same after ten thousand of them. A guard restored from a snapshot goes on
    exactly as the one it was taken from.
    """

    def __init__(self, settings: GuardSettings | None = None) -> None:
        self.settings = settings or GuardSettings()
        self._default = self.settings.ladder
        self._judge = Judge(self.settings)
        self._replies = Replies()
        self._idle = 0
        self._strikes = 0
        self._chants = 0
        self._blocked: dict[int, str] = {}
        self._stopped: Stop | None = None
        self._circle = Circle()

    def observe(self, step: StepSeen) -> Verdict:
        """Take in a step with its results and say what to do about it."""
        if step.event is not None:
            self.note(step.event)
        if self.settings.off:
            return Ok()
        if self._stopped is not None:
            return self._stopped
        judged = [self._judge.judge(call, step.at, self._blocked) for call in step.calls]
        moved = self._judge.progress(judged)
        if moved:
            self._fresh_start()
        strikes = [*self._weigh(judged, moved, step.at), *self._listen(step)]
        return self._verdict(strikes)

    def precheck(self, name: str, arguments: Mapping[str, Any]) -> Refusal | None:
        """Whether a call may run. Feed the refusal back through `observe` as the call's result."""
        if self.settings.off or self.settings.for_tool(name).off:
            return None
        if self._stopped is not None:
            return Refusal(f"refused: {self._stopped.why}")
        why = self._blocked.get(self._judge.key(name, canonical(arguments, self._judge.ignore)))
        return None if why is None else Refusal(f"refused: {why}; it did not run")

    def note(self, event: Event) -> None:
        """Something happened between two replies. Only a human's message wipes the slate."""
        match event:
            case "user_message":
                self._judge.human()
                self._fresh_start()
                self._stopped = None
            case "compaction":
                self._judge.compacted()
            case "continuation" | "resume":
                pass

    def snapshot(self) -> dict[str, Any]:
        """The guard's whole state as JSON-able values, at most a few hundred kilobytes.

        It costs some milliseconds: take it when the context is compacted or the actor is put away, not every step.
        """
        stopped = self._stopped
        return {
            "version": VERSION,
            "judge": self._judge.snapshot(),
            "replies": self._replies.snapshot(),
            "counts": [self._idle, self._strikes, self._chants],
            "blocked": [[key, why] for key, why in self._blocked.items()],
            "circle": list(self._circle.recent),
            "stopped": None if stopped is None else asdict(stopped),
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any], settings: GuardSettings | None = None) -> Self:
        """The guard a snapshot was taken of. Raises `ValueError` for a snapshot of another version."""
        if snapshot.get("version") != VERSION:
            raise ValueError(f"loop guard snapshot of version {snapshot.get('version')!r}, expected {VERSION}")
        guard = cls(settings)
        guard._judge.restore(snapshot["judge"])
        guard._replies.restore(snapshot["replies"])
        guard._idle, guard._strikes, guard._chants = snapshot["counts"]
        guard._blocked = dict(snapshot["blocked"])
        guard._circle = Circle(list(snapshot["circle"]))
        stopped = snapshot["stopped"]
        if stopped is not None:
            facts = stopped["evidence"]
            evidence = Evidence(facts["kind"], tuple(facts["calls"]), facts["times"], facts["result"])
            guard._stopped = Stop(stopped["why"], evidence)
        return guard

    def _ladder(self, one: Judged) -> Ladder:
        return self.settings.tools.get(one.call.name, self._default)

    def _fresh_start(self) -> None:
        self._replies = Replies()
        self._idle = 0
        self._strikes = self._chants = 0
        self._blocked.clear()
        self._circle = Circle()

    # Counting

    def _weigh(self, judged: list[Judged], moved: bool, at: float) -> list[Strike]:
        """Count what the step repeated, and say where a count is too high."""
        strikes: list[Strike] = []
        first: dict[int, Judged] = {}
        times: dict[int, int] = {}
        for one in judged:
            if self._ladder(one).off:
                continue
            twin = first.get(one.key)
            if twin is not None and not one.novelty.is_progress and one.answer is twin.answer:
                # Emitted together, before the first answer was there: one mistake, not many.
                times[one.key] = times.get(one.key, 1) + 1
                continue
            first[one.key] = one
            repeats = one.novelty is Novelty.REPEAT and not moved
            self._judge.count(one, self._weight(one) if repeats else 1.0, at)
            if not moved:
                strikes += self._weigh_one(one)
        for key, often in times.items():
            strikes += self._twins(first[key], often)
        return strikes

    def _weight(self, one: Judged) -> float:
        if one.flags.poll and one.gained < 0.3:
            # Waiting for others may earn a nudge, never more.
            return max(one.before, min(one.weight, self._ladder(one).block - 0.5))
        return one.weight

    def _weigh_one(self, one: Judged) -> list[Strike]:
        match one.novelty:
            case Novelty.REPEAT if one.refused:
                why = self._blocked.get(one.key, "").partition(": ")[2]
                because = f" ({why})" if why else ""
                return [self._strike(2, one, "refused", 1, f"asked for again although it is refused{because}")]
            case Novelty.REPEAT:
                return self._repeat(one)
            case Novelty.REREAD:
                self._idle += 1
                return self._idling(one)
            case Novelty.SAME_ERROR | Novelty.SAME_ANSWER:
                return self._streak(one)
            case Novelty.ASKED_AGAIN:
                self._idle += 1
                return self._asked(one)
            case _:
                return []

    def _repeat(self, one: Judged) -> list[Strike]:
        ladder, answer = self._ladder(one), one.answer
        assert answer is not None
        self._circle.add(one.key)
        if one.excused:
            return []
        if not one.flags.poll and one.gained > 0.5:
            self._idle += 1
        nudge = ladder.nudge + _is_acknowledged(one)
        found: list[Strike] = []
        if answer.weight >= ladder.block:
            found.append(self._repeated(2, one, answer.times))
        elif answer.weight >= nudge and (int(answer.weight) > int(one.before) or one.before < nudge):
            found.append(self._repeated(1, one, answer.times))
        return [*found, *self._streak(one), *self._idling(one), *self._asked(one)]

    def _repeated(self, level: int, one: Judged, times: int) -> Strike:
        if one.flags.poll:
            return self._strike(level, one, "poll", times, f"no change, {times} times")
        circle = self._circle.period()
        if circle > 1:
            what = f"{circle} calls in a circle with the same results, {times} times round"
            return self._strike(level, one, "cycle", times, what)
        return self._strike(level, one, "repeat", times, f"same call, same result, {times} times")

    def _twins(self, one: Judged, times: int) -> list[Strike]:
        """Three or more equal calls in one reply: worth two extra."""
        answer = one.answer
        if times < 3 or answer is None or one.flags.poll or one.refused:
            return []
        ladder = self._ladder(one)
        answer.weight += 2
        answer.times += times - 1
        if answer.weight < ladder.nudge:
            return []
        level = 2 if answer.weight >= ladder.block else 1
        what = f"{times} equal calls in one reply, the same result each time"
        return [self._strike(level, one, "parallel", times, what)]

    def _idling(self, one: Judged) -> list[Strike]:
        """Too many calls in a row that are repeats or re-reads, whichever they are."""
        ladder, idle = self._ladder(one), self._idle
        # An answer from before the latest news starts at a half, so this is its third time round.
        third = one.answer is not None and one.answer.weight >= ladder.nudge - 0.5
        if idle < ceil(CIRCLE_PATIENCE * ladder.nudge):
            return []
        level = 2 if idle >= ceil((CIRCLE_PATIENCE if third else REREAD_PATIENCE) * ladder.block) else 1
        if one.novelty is Novelty.REREAD:
            return [self._strike(level, one, "reread", idle, f"{idle} calls in a row without a new line")]
        circle = self._circle.period()
        around = f"{circle} calls in a circle" if circle > 1 else "the same calls again"
        return [self._strike(level, one, "cycle", idle, f"{around}, {idle} in a row without anything new")]

    def _streak(self, one: Judged) -> list[Strike]:
        """Too many calls with the same failure or the same short answer, equal or not."""
        ladder, found = self._ladder(one), one.streak
        if found is None:
            return []
        patience = ERROR_PATIENCE if found.failed else ANSWER_PATIENCE
        if found.weight < ceil(patience * ladder.nudge):
            return []
        level = 2 if found.weight >= ceil(patience * ladder.block) else 1
        if found.failed:
            return [
                self._strike(level, one, "same-error", found.times, f"the same failure {found.times} times in a row")
            ]
        return [self._strike(level, one, "same-answer", found.times, f"the same answer {found.times} times in a row")]

    def _asked(self, one: Judged) -> list[Strike]:
        told = one.told
        if told is None or not told.known or told.news:
            return []
        errand, ladder = told.errand, self._ladder(one)
        if errand.weight >= ladder.stop + 1:
            level = 3
        elif errand.weight >= ladder.block and told.exact:
            level = 2
        elif errand.weight >= ladder.nudge + 0.5:
            level = 1
        else:
            return []
        what = f"asked the same {errand.times} times, nothing new came back"
        return [self._strike(level, one, "delegation", errand.times, what)]

    def _listen(self, step: StepSeen) -> list[Strike]:
        """What the reply says: one text that repeats itself, or the same reply again."""
        strikes: list[Strike] = []
        ladder = self._default
        found = chants(step.text)
        if found is not None:
            self._chants += 1
            strikes.append(Strike(1 if self._chants == 1 else 3, found.why, found.evidence))
        if not step.calls:
            times = self._replies.add(step.text)
            if times >= ladder.nudge:
                said = " ".join(step.text.split())[:80]
                why = f'the same reply {times} times without doing anything: "{said}"'
                strikes.append(Strike(3 if times >= ladder.nudge + 2 else 1, why, Evidence("text", (), times, said)))
        return strikes

    # Deciding

    def _strike(self, level: int, one: Judged, kind: str, times: int, what: str) -> Strike:
        call = shown(one.call.name, one.arguments)
        calls = (self._members() if kind == "cycle" else ()) or (call,)
        result = " ".join(one.call.result[:200].split())[:120]
        return Strike(level, f"{call}: {what}", Evidence(kind, calls, times, result), one)

    def _verdict(self, strikes: list[Strike]) -> Verdict:
        worst = max(strikes, key=lambda strike: strike.level, default=None)
        if worst is None:
            return Ok()
        if worst.level == 1:
            return Nudge(worst.why, worst.evidence)
        if worst.level == 2 and worst.judged is not None:
            ladder = self._ladder(worst.judged)
            self._strikes += 1
            if self._strikes <= ladder.stop - ladder.block:
                return self._block(worst, [strike for strike in strikes if strike.level == 2])
        self._stopped = Stop(worst.why, worst.evidence)
        return self._stopped

    def _block(self, worst: Strike, strikes: list[Strike]) -> Block:
        calls: dict[int, tuple[str, str]] = {}
        for strike in strikes:
            one = strike.judged
            if one is not None:
                self._blocked.setdefault(one.key, strike.why)
                calls[one.key] = (one.call.name, one.arguments)
        return Block(worst.why, worst.evidence, tuple(calls.values()))

    def _members(self) -> tuple[str, ...]:
        records = [self._judge.answers.records.get(key) for key in self._circle.members()]
        return tuple(shown(*record.shown) for record in records if record is not None)


def _is_acknowledged(one: Judged) -> bool:
    """A change answered with a bare "ok" says nothing about the state, so it may be asked for once more."""
    call = one.call
    return one.flags.mutates and not call.is_error and len(call.result) <= 40 and "\n" not in call.result.strip()
