"""What this actor has been told so far: lines it has read, answers its calls got, changes it has asked for.

Everything here is bounded; the oldest is forgotten first. Forgetting only ever makes the guard more lenient.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from attrs import astuple, define, field

from .canonical import digest
from .volatile import masked, measures

LINES = 6000
CALLS = 2048
ANSWERED = 128
_NO_DIGITS = bytes.maketrans(b"0123456789", b"##########")
TEXT = 131_072
"""Characters of results kept to compare a later answer of the same call with."""
SAMPLE = 1000
"""Lines looked at from either end of a huge result."""


def _lines(text: str) -> list[bytes]:
    lines = text.encode("utf-8", "surrogatepass").split(b"\n")
    return lines if len(lines) <= 2 * SAMPLE else lines[:SAMPLE] + lines[-SAMPLE:]


@define
class Lines:
    """Which lines were delivered, and in which phase. A phase ends when the world or the context changes.

    Two generations: when the young one is full it takes the place of the old one, which is forgotten whole.
    """

    young: dict[int, int] = field(factory=dict[int, int])
    old: dict[int, int] = field(factory=dict[int, int])

    def read(self, text: str, phase: int) -> tuple[int, int, int]:
        """Take in a result. Returns (lines, lines never seen, lines not seen in this phase)."""
        lines = _lines(text)
        young, old = self.young, self.old
        marks = [*map(crc32, lines)]
        never = sum([mark not in young and mark not in old for mark in marks])
        stale = 0 if never == len(marks) else sum([young.get(mark, old.get(mark)) == phase for mark in marks])
        frame = [crc32(b"#" + lines[place].translate(_NO_DIGITS)) for place in (0, -1)] if len(lines) > 4 else []
        if 0 < never <= 2:
            fresh = [place for place, mark in enumerate(marks) if mark not in young and mark not in old]
            aliases = [self._alias(lines, place, frame) for place in fresh]
            never -= sum(alias in young or alias in old for alias in aliases)
            stale += sum(young.get(alias, old.get(alias)) == phase for alias in aliases)
            marks += aliases
        self._keep(marks + frame, phase)
        return len(lines), never, len(lines) - stale

    def learn(self, text: str, phase: int) -> None:
        """Take in a result whose news does not depend on its lines."""
        self._keep([*map(crc32, _lines(text))], phase)

    def _keep(self, marks: list[int], phase: int) -> None:
        self.young.update(dict.fromkeys(marks, phase))
        if len(self.young) > LINES:
            self.young, self.old = {}, self.young

    @staticmethod
    def _alias(lines: list[bytes], place: int, frame: list[int]) -> int:
        """What a new line is known by although it differs each time.

        Around a longer text stands a frame, "lines 41-80 of 300"; a footer says "took 0.3 s".
        """
        if frame and place in (0, len(lines) - 1):
            return frame[0 if place == 0 else 1]
        line = lines[place].decode("utf-8", "surrogatepass")
        blanked = masked(line)
        return crc32(b"~" + blanked.encode("utf-8", "surrogatepass")) if blanked != line else crc32(lines[place])

    def snapshot(self) -> list[list[list[int]]]:
        return [[[mark, phase] for mark, phase in part.items()] for part in (self.young, self.old)]

    def restore(self, parts: Iterable[Iterable[tuple[int, int]]]) -> None:
        self.young, self.old = (dict(part) for part in parts)


@define
class Answer:
    """One answer a call has got, and how often since something last changed."""

    raw: int
    weight: float = 0.0
    times: int = 0
    epoch: int = -1
    turn: int = -1
    phase: int = -1
    waited: float = 0.0
    at: float = 0.0


@define
class Record:
    """The answers of one call. `text` is the last one as long as its blanked form is not known.

    `measures` says that durations are what the call is for, `live` how often its answer changed although this
    actor had changed nothing.
    """

    last: Answer
    shown: tuple[str, str]
    text: str | None
    live: int = 0
    measures: bool = False
    answers: dict[int, Answer] = field(factory=dict[int, Answer])

    def settle(self) -> None:
        """Blank the volatile parts of the first answer, which is only worth it once there is a second."""
        if self.text is not None:
            self.measures = measures(self.shown[1])
            self.answers[digest(masked(self.text, self.measures))] = self.last
            self.text = None


@define
class Answers:
    """The latest calls with their answers."""

    records: dict[int, Record] = field(factory=dict[int, Record])
    held: int = 0

    def find(self, key: int) -> Record | None:
        record = self.records.pop(key, None)
        if record is not None:
            self.records[key] = record
        return record

    def add(self, key: int, shown: tuple[str, str], raw: int, text: str) -> Answer:
        kept = text if len(text) <= TEXT // 4 else text[: TEXT // 8] + text[-TEXT // 8 :]
        record = Record(Answer(raw), shown, kept)
        self.records[key] = record
        self.held += len(kept)
        while len(self.records) > ANSWERED or (self.held > TEXT and len(self.records) > 1):
            old = self.records.pop(next(iter(self.records)))
            self.held -= len(old.text or "")
        return record.last

    def match(self, record: Record, raw: int, text: str, epoch: int) -> tuple[Answer, bool, bool]:
        """The answer this result is. Returns (answer, it is new, it is the same to the letter)."""
        if raw == record.last.raw:
            return record.last, False, True
        self.held -= len(record.text or "")
        record.settle()
        kept = text if len(text) <= TEXT // 4 else text[: TEXT // 8] + text[-TEXT // 8 :]
        mark = digest(masked(kept, record.measures))
        answer = record.answers.get(mark)
        new = answer is None
        if answer is None:
            record.live += record.last.epoch == epoch
            answer = record.answers[mark] = Answer(raw)
            if len(record.answers) > 16:
                del record.answers[next(iter(record.answers))]
        same = answer.raw == raw
        answer.raw = raw
        record.last = answer
        return answer, new, same

    def snapshot(self) -> list[Any]:
        rows: list[Any] = []
        self.held = 0
        for key, record in self.records.items():
            record.settle()
            rows.append(
                {
                    "key": key,
                    "call": list(record.shown),
                    "live": record.live,
                    "last": next(mark for mark, answer in record.answers.items() if answer is record.last),
                    "answers": [[mark, *astuple(answer)] for mark, answer in record.answers.items()],
                }
            )
        return rows

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.records, self.held = {}, 0
        for row in rows:
            answers = {mark: Answer(*rest) for mark, *rest in row["answers"]}
            name, arguments = row["call"]
            self.records[row["key"]] = Record(
                answers[row["last"]], (name, arguments), None, row["live"], measures(arguments), answers
            )


@define
class Marks:
    """A bounded set that forgets the oldest."""

    limit: int
    known: dict[int, None] = field(factory=dict[int, None])

    def add(self, mark: int) -> bool:
        """Whether the mark was not known yet."""
        if mark in self.known:
            return False
        self.known[mark] = None
        if len(self.known) > self.limit:
            del self.known[next(iter(self.known))]
        return True

    def snapshot(self) -> list[int]:
        return list(self.known)

    def restore(self, marks: Iterable[int]) -> None:
        self.known = dict.fromkeys(marks)
