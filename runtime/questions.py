"""Questions an agent puts to a human: durable events like approvals, the first answer wins, clocks stand meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from .approvals import Recorder
from .choice import chosen
from .errors import UsageError
from .events import QuestionAnswered, QuestionAsked
from .journal.interface import AlreadyRecorded
from .tools import ToolError

if TYPE_CHECKING:
    from .agent import Agent


@attrs.define(eq=False)
class OpenQuestion:
    """A question, and its answer once there is one."""

    asked: QuestionAsked
    answered: trio.Event = attrs.Factory(trio.Event)
    given: QuestionAnswered | None = None

    def is_answered(self) -> bool:
        return self.given is not None

    async def answer(self) -> QuestionAnswered:
        """The answer, once it is recorded. A cancelled wait leaves the question as it is."""
        await self.answered.wait()
        assert self.given is not None
        return self.given


class Questions:
    """The open questions of one run. Whoever shows them (terminal, dashboard, socket) calls `answer`.

    `changed` is called when an answer has been given.
    """

    def __init__(self, journal: Recorder, changed: Callable[[], None]) -> None:
        self._journal = journal
        self._changed = changed
        self._asked = 0
        self._by_call: dict[tuple[str, str], OpenQuestion] = {}
        self._by_id: dict[str, OpenQuestion] = {}
        self._given: dict[str, QuestionAnswered] = {}

    @property
    def pending(self) -> tuple[QuestionAsked, ...]:
        """What nobody has answered yet, oldest first."""
        return tuple(entry.asked for entry in self._by_id.values() if entry.given is None)

    def restore(self, asked: int, questions: Iterable[QuestionAsked], answers: Mapping[str, QuestionAnswered]) -> None:
        """Take over what an earlier process asked: `asked` in all, and those whose call has no result yet."""
        self._asked = asked
        self._given.update(answers)
        for question in questions:
            entry = OpenQuestion(question, given=answers.get(question.id))
            if entry.is_answered():
                entry.answered.set()
            before = self._by_call.get((question.actor, question.call_id))
            if before is not None:  # at this point of its call something else was asked later
                del self._by_id[before.asked.id]
            self._by_id[question.id] = self._by_call[question.actor, question.call_id] = entry

    async def ask(self, actor: str, call_id: str, text: str, options: Sequence[str] = ()) -> OpenQuestion:
        """The question on record; the same one again for a call that has asked before.

        Raises JournalError. A cancelled ask may leave the question on record; `withdraw` it when the call ends.
        """
        entry = self._by_call.get((actor, call_id))
        if entry is None:
            self._asked += 1
            question = QuestionAsked(
                actor=actor, id=f"q{self._asked}", call_id=call_id, text=text, options=tuple(options)
            )
            entry = OpenQuestion(question)
            self._journal.append(question)
            await self._journal.barrier()
            self._by_id[question.id] = self._by_call[actor, call_id] = entry
        return entry

    def withdraw(self, actor: str, call_id: str) -> None:
        """The call, or the part of one, has its result: nobody waits for an answer any more."""
        for entry in self.of_call(actor, call_id):
            del self._by_id[entry.asked.id]
            del self._by_call[actor, entry.asked.call_id]

    def of_call(self, actor: str, call_id: str) -> list[OpenQuestion]:
        """What a call without a result has asked, with all its parts, or one part of it, oldest first."""
        return [
            entry
            for (path, part), entry in self._by_call.items()
            if path == actor and call_id in (part, entry.asked.within)
        ]

    async def answer(self, id: str, text: str, by: str) -> QuestionAnswered:
        """Record an answer, then let the agent go on; the number of an option stands for it.

        Raises UsageError for an unknown or answered id, and for an empty answer, JournalError. A cancelled call has
        answered all the same.
        """
        entry = self._by_id.get(id)
        if (given := self._given.get(id)) is not None:
            raise UsageError(f"{id} was answered before, by {given.by or 'somebody'}")
        if entry is None:
            open_ids = ", ".join(question.id for question in self.pending) or "none"
            raise UsageError(f"{id} waits for no answer; open: {open_ids}")
        if not text.strip():
            raise UsageError(f"the answer to {id} is empty")
        entry.given = self._given[id] = QuestionAnswered(
            actor=entry.asked.actor, id=id, answer=chosen(text, entry.asked.options), by=by
        )
        try:
            self._journal.append(entry.given)
        except AlreadyRecorded as late:
            raise UsageError(str(late)) from late
        self._changed()
        try:
            await self._journal.barrier()
        finally:
            entry.answered.set()
        return entry.given


def asked_within(me: Agent, call_id: str) -> str:
    """What a call asked a human for somebody else before the process died, and what became of it; "" for nothing."""
    said = ""
    for entry in me.run.questions.of_call(me.path, call_id):
        if entry.asked.call_id != call_id:
            answer = f"the answer {entry.given.answer!r} may not have reached it" if entry.given else "nobody answered"
            said += f"\nwhile it ran it asked {entry.asked.text.strip()!r}; {answer}"
    return said


async def ask_human(me: Agent, call_id: str, text: str, options: Sequence[str]) -> str:
    """A human's answer for one call of an agent; its clock stands still meanwhile.

    With nobody there the answer from the settings counts, and so it does when nobody answers in time. Raises ToolError
    where there is none, JournalError. A cancelled wait leaves the question on record.
    """
    questions, settings = me.run.questions, me.run.settings
    entry = await questions.ask(me.path, call_id, text, options)
    if settings.headless and settings.humans.answer is not None and not entry.is_answered():
        await questions.answer(entry.asked.id, settings.humans.answer, "the settings")
    limit = settings.humans.timeout
    with me.activity.idle(entry.is_answered), trio.move_on_after(math.inf if limit is None else limit):
        await entry.answer()
    if not entry.is_answered():
        if settings.humans.answer is None:
            raise ToolError(f"nobody answered within {limit:g} s; go on as you think best, and say what you assumed")
        await questions.answer(entry.asked.id, settings.humans.answer, "time-out")
    return (await entry.answer()).answer
