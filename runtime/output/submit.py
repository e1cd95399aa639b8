"""What becomes of an actor's answer: taken, sent back with what is wrong, or the end of its tries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from runtime.definitions import Definition, OutputRules
from runtime.events import SENT_BACK, ModelWithdrawn, Warned
from runtime.messages import JsonObject
from runtime.wire.output_schema import sent_form

from .answer import unfenced
from .forbidden import masked
from .judge import Faulty, Holds, Judge, Unjudged
from .words import asked_for, sent_back, summed_up

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.report import Report
    from runtime.run import Run


@attrs.frozen
class End:
    """The end of an actor's work by its answer; of an answer that was taken `text` is what is inside its code fence."""

    status: Literal["completed", "failed"]
    text: str
    detail: str = ""
    output: Any = None


def rules_of(definition: Definition, schema: JsonObject | None) -> OutputRules | None:
    """An actor's rules; a `schema` of the caller's own takes the place of the file's."""
    rules = definition.output
    if schema is not None:
        rules = attrs.evolve(rules or OutputRules(), schema=schema)
    return rules


class Answers:
    """The output rules of one actor at work; without rules every answer is taken as it is."""

    def __init__(self, run: Run, path: str, definition: Definition, schema: JsonObject | None) -> None:
        self._run = run
        self._path = path
        self._source = definition.path or definition.name
        self.rules = rules_of(definition, schema)
        self.sent_form = None if self.rules is None or self.rules.schema is None else sent_form(self.rules.schema)

    @property
    def prompt(self) -> str:
        """The section of the system prompt that asks for such an answer."""
        return asked_for(self.rules) if self.rules is not None else ""

    def masked(self, text: str) -> str:
        """A text that is handed on without having been taken: what is forbidden is not in it."""
        return masked(text, self.rules.forbid) if self.rules is not None and self.rules.forbid else text

    def judge(self) -> Judge:
        assert self.rules is not None
        run = self._run
        root = Path(run.workspace.root) if run.trusted else None
        return Judge(self.rules, run.reaper, root, run.models.secrets)

    def warn_of_check(self) -> None:
        """Say that a check does not count here."""
        rules = self.rules
        if rules is not None and rules.check is not None and not self._run.trusted:
            text = (
                f"{self._source}: output.check {rules.check} is left out: this workspace is not trusted (elenco trust)"
            )
            self._run.append(Warned(actor=self._path, text=text))


async def submit(me: Agent, text: str) -> End | None:
    """Hold an answer against the rules; None: it went back, or a human has spoken meanwhile, so the actor goes on.

    A cancelled call leaves everything as it was.
    """
    rules = me.answers.rules
    assert rules is not None
    verdict = await me.answers.judge().judge(text)
    if me.history.conversation.queued:
        return None
    match verdict:
        case Holds(output=output):
            return End("completed", unfenced(text) if rules.schema is not None else text, output=output)
        case Unjudged(why=why):
            return End("failed", text, f"the answer could not be checked: {me.answers.masked(why)}")
        case Faulty(faults=faults):
            told = summed_up(faults)
            me.run.append(ModelWithdrawn(actor=me.path, turn=me.turn - 1, why=f"the answer does not hold: {told}"))
            left = rules.retries - me.standing.rejected
            if left <= 0:
                return End("failed", text, f"the answer does not hold after {_tries(rules.retries + 1)}: {told}")
            me.standing.rejected += 1
            me.history.note(sent_back(faults, left, rules.schema), SENT_BACK)
            me.alerts.tell("user_message")
            return None


async def last_answer(me: Agent, report: Report) -> Report:
    """A stopped actor's report, with the value of its last answer where that holds; its status stays what it is.

    A cancelled call leaves everything as it was.
    """
    if me.answers.rules is None or not report.text.strip():
        return report
    why = "there was no time left to check its last answer"
    with me.run.deadlines.hard(me.path):
        match await me.answers.judge().judge(report.text):
            case Holds(output=output):
                return attrs.evolve(report, output=output)
            case Faulty(faults=faults):
                why = f"its last answer does not hold: {summed_up(faults)}"
            case Unjudged(why=problem):
                why = f"its last answer could not be checked: {problem}"
    return attrs.evolve(report, detail=f"{report.detail}; {me.answers.masked(why)}")


def _tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count} tries"
