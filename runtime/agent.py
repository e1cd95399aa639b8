"""One agent: an actor that turns an Assignment into a Report. The loop is one screen; the rest are its steps."""

from __future__ import annotations

from typing import Any

import attrs
import trio

from actors import Actor

from .activity import Activity
from .alerts import Alerts
from .background import Background
from .compactor import Compactor
from .context.joined import continuations, joined_text
from .context.sections import announce
from .continuation import Continuation
from .conversation import CallModel, Finish, RunTools
from .definitions import Definition
from .errors import UsageError
from .events import (
    ActorFinished,
    ActorStarted,
    MessageSent,
    Warned,
)
from .family import Family, Hire
from .handover.attachment import opening
from .handover.trail import Trail
from .history import History
from .hooks.actor import ActorHooks
from .hooks.hired import hooks_of
from .limits.budget import Ask, Purpose
from .limits.limits import Limits
from .limits.loops import GuardSettings
from .messages import AssistantMessage, ToolCall, ToolResults, UserMessage, size_of
from .model import ModelRequest, ModelSettings, ProviderError, ToolSpec
from .models import ModelRef
from .output.submit import Answers, last_answer, submit
from .peers import take_messages
from .permits import Permits
from .policy.paths import Workspace
from .record import messages_to_json, report_to_json
from .report import Assignment, Report, Status, StopReason
from .resume import abandon
from .round import NOTE_BYTES, Round, close_round, run_round
from .run import Run
from .skills.active import ActiveSkills
from .skills.hired import recall_skills
from .standing import RESULT_CAP, Standing
from .stop import Stop
from .switching import take_model
from .tools import ToolBox
from .tools.jobs import Jobs
from .tools.memory import Memory
from .turn import call_model
from .words import CONTINUE, EMPTY, STALE_SKILL, last_turn
from .workbench import run_hooks

MOST_CONTINUATIONS = 5


class Agent(Actor[Assignment, Report]):
    """The actor. Its state belongs to its own task; control (steer, cancel) only sets what the loop reads."""

    # So many attributes in a dict would take five times the memory.
    __slots__ = tuple(  # a page otherwise
        """
        _scope activity alerts answers background compactor cut_text definition earlier family history hooks
        jobs left_out limits memory model next_model number parent path permits remarks report result_cap
        room run settings skills specs stale_skills standing system toolbox tools_version trail turn unread user_hooks
        work
        """.split()  # noqa: SIM905
    )

    def __init__(
        self,
        run: Run,
        definition: Definition,
        *,
        path: str,
        number: int,
        parent: Agent | None,
        model: ModelRef,
        permits: Permits,
        limits: Limits,
        hire: Hire,
    ) -> None:
        self.run = run
        self.definition = definition
        self.path = path
        self.number = number
        self.parent = parent
        self.model = model
        self.next_model: ModelRef | None = None
        self.permits = permits
        self.limits = limits
        self.settings = ModelSettings(definition.temperature, definition.top_p, definition.thinking)
        self.answers = Answers(run, path, definition, run.settings.output_schema if parent is None else None)
        self.history = History(run, path)
        self.compactor = Compactor(self, model.window)
        self.activity = Activity(run, path)
        self.memory = Memory()
        self.trail = Trail(number)
        self.skills = ActiveSkills()
        self.stale_skills: tuple[str, ...] = ()
        self.remarks: list[str] = []
        self.family = Family(self, hire)
        self.background = Background(self)
        self.unread: tuple[MessageSent, ...] = ()
        self.jobs = Jobs(needed="start_job" in definition.tools)
        self.user_hooks = ActorHooks(self, hooks_of(run, definition))
        self.turn = 0
        self.result_cap = RESULT_CAP
        self.room = RESULT_CAP * 2
        self.left_out = 0
        self.tools_version = 0
        self.work: Round | None = None
        self.cut_text = ""
        self.standing = Standing()
        self.report: Report | None = None
        self._scope = trio.CancelScope()
        self.earlier: Continuation | None = None

    def equip(
        self, toolbox: ToolBox, system: tuple[str, ...], specs: tuple[ToolSpec, ...], guard: GuardSettings
    ) -> None:
        """Give the actor its tools, its prompt and its guard, before it begins; `specs` is what its model is shown."""
        self.toolbox = toolbox
        self.specs = specs
        self.system = system
        self.alerts = Alerts(self.run, self.path, guard, toolbox)
        self.hooks = run_hooks(self)
        self.history.measure_prompt(system, self.specs)

    def refit(self, toolbox: ToolBox) -> None:
        """Give it other tools from its next turn on."""
        self.toolbox, self.specs = toolbox, toolbox.specs()
        self.alerts.toolbox = toolbox
        self.history.measure_prompt(self.system, self.specs)

    @property
    def workspace(self) -> Workspace:
        """The run's workspace, and what the actor may read of its skills outside it."""
        return self.run.workspace.reading(folders) if (folders := self.skills.folders) else self.run.workspace

    # --- the loop ------------------------------------------------------------------------------------------------

    async def handle(self, message: Assignment) -> Report:
        """Work until the end. Raises JournalError; every other end is a Report.

        A cancelled call leaves `actor.finished` (cancelled) in the journal and a valid history.
        """
        self.begin(message)
        report: Report | None = None
        failure = ""
        try:
            with self._scope:
                report = await self._work()
            if report is None:
                report = self._report("cancelled", detail=f"cancelled by {self.standing.cancelled_by}")
            with trio.CancelScope() as self._scope:  # whoever cancels now cuts the last hooks short
                await self.user_hooks.finished(report)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            if not self.run.suspending:
                report = self._end(report or self._report("failed" if failure else "cancelled", detail=failure))
        assert report is not None
        return report

    async def _work(self) -> Report:
        async with self.background, self.jobs:
            try:
                for child in self.standing.orphans:
                    await self.family.prepare(child.agent)
                    self.background.take_up(child)
                with self.run.deadlines.soft(self.path) as scope:
                    outcome = await self._loop()
                if scope.cancelled_caught:
                    outcome = Stop("deadline", self.run.deadlines.explain(self.path))
                if isinstance(outcome, Report):
                    return outcome
                return await last_answer(self, await self._wrap_up(outcome))
            except ProviderError as error:
                if error.kind == "context_length":
                    return self._report("stopped", None, "context_window", error.message)
                return self._report("failed", detail=error.message)
            finally:
                self.standing.too_late = "has ended"

    async def _loop(self) -> Report | Stop:
        await trio.lowlevel.checkpoint_if_cancelled()  # by a cancel on record: nothing is to wait for a human before it
        if (refused := await self.user_hooks.start()) is not None:
            return self._report("failed", detail=refused)
        if self.run.settings.compacts:
            return self._report("completed", await self.compactor.by_hand("you"))
        while True:
            if self.standing.stop is not None and not self.history.conversation.open_calls:
                return self.standing.stop
            await self._while_held()
            self._hear()
            match self.history.conversation.next_step():
                case CallModel(because=because):
                    outcome = await self._call(because)
                case RunTools(calls=calls):
                    outcome = await self._run_tools(calls)
                case Finish(message=message):
                    outcome = await self._finish(message)
            if outcome is not None:
                return outcome
            await trio.lowlevel.checkpoint_if_cancelled()

    # --- steps ---------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """What came in while the last step was under way: a human's words, reports of background children."""
        if self.history.conversation.open_calls:
            return
        if self.definition.mcps and self.tools_version != self.run.mcps.version:
            self.family.refit()
        if self.history.admit_steers():
            self.alerts.tell("user_message")
        for report in self.background.take_reports(self.room - NOTE_BYTES):
            self.history.add(report)
            self.room -= size_of(report)
        for message in take_messages(self, self.room - NOTE_BYTES) if self.unread else ():
            self.history.add(message)
            self.room -= size_of(message)

    async def _call(self, because: str) -> Report | Stop | None:
        if because == "length":
            messages = self.history.conversation.messages
            if (times := continuations(messages, CONTINUE)) >= MOST_CONTINUATIONS:
                text = joined_text(messages, CONTINUE)
                return self._report("stopped", text, "length", f"still cut off after {times} continuations")
            self.history.note(CONTINUE, "length")
            self.alerts.tell("continuation")
        if (refused := await self.user_hooks.before_model()) is not None:
            return self._report("failed", detail=refused)
        take_model(self)
        if (stop := await self.compactor.before_call()) is not None:
            return stop
        try:
            reply = await call_model(self)
        except ProviderError as error:
            if error.kind != "context_length" or not await self.compactor.refused(error):
                raise
            return None
        if isinstance(reply, Stop):
            return reply
        self._add(reply)
        await self.user_hooks.after_model(reply)
        return None if reply.calls else self.alerts.observe(reply, None, self.history)

    def _add(self, reply: AssistantMessage) -> None:
        self.history.add(reply)
        self.cut_text = ""
        if reply.text.strip():
            self.standing.said = reply.text

    async def _run_tools(self, calls: tuple[ToolCall, ...]) -> Stop | None:
        work = self.work = self.work or Round(calls, self.result_cap)
        await run_round(self, work)
        close_round(self, work, work.interrupted_by or "interrupted")
        reply = self.history.conversation.messages[-1]
        assert isinstance(reply, AssistantMessage)
        stop = self.alerts.observe(reply, work, self.history)
        self._close_round("")
        return stop or self.standing.stop

    async def _finish(self, message: AssistantMessage) -> Report | None:
        """The model wants nothing more: report, unless a background child still works or nothing was said."""
        match message.finish:
            case "content_filter" | "refusal" | "context_window" as reason:
                return self._report("stopped", message.text or None, reason)
            case _:
                pass
        if self.background.running:
            await self.background.wait_news()
            return None
        text = joined_text(self.history.conversation.messages, CONTINUE)
        if self.answers.rules is not None:
            end = await submit(self, text)
            if end is None or (end.status == "completed" and await self.user_hooks.sends_back(end.text)):
                return None
            return self._report(end.status, end.text or None, detail=end.detail, output=end.output)
        text = text or self.standing.said
        if text.strip():
            return None if await self.user_hooks.sends_back(text) else self._report("completed", text)
        if self.standing.was_empty:
            return self._report("failed", detail="the model gave an empty answer twice")
        self.standing.was_empty = True
        self.history.note(EMPTY, "empty")
        return None

    async def _wrap_up(self, stop: Stop) -> Report:
        """End before a limit or the guard does it: close the round, ask once more with tools off, report."""
        self._close_round(f"interrupted: {stop.detail}")
        with self.run.deadlines.hard(self.path):
            await self.background.stop()
        if not self.standing.wrapping_up:
            self._hear()
            self.history.note(last_turn(stop.detail), "wrap_up", stop)
        self.standing.too_late = "gives its last answer"
        if self.standing.wrapped_up:
            return self._report("stopped", None, stop.reason, stop.detail)
        with self.run.deadlines.hard(self.path):
            await self.compactor.before_last_turn()
            try:
                reply = await call_model(self, "wrap_up")
            except ProviderError as error:
                stop = attrs.evolve(stop, detail=f"{stop.detail}; no last answer: {error.message}")
            else:
                if isinstance(reply, AssistantMessage):
                    self._add(reply)
        return self._report("stopped", None, stop.reason, stop.detail)

    async def _while_held(self) -> None:
        holds = self.run.holds
        while holds.stop(self.path):
            with self.activity.idle(lambda: not holds.stop(self.path)):
                await holds.changed()

    def _close_round(self, reason: str) -> None:
        """Put the round's results into the history; calls without one get a typed result that gives the reason."""
        calls = self.history.conversation.open_calls
        if not calls:
            return
        work = self.work or Round(calls, self.result_cap)
        self.work = None
        close_round(self, work, reason)
        results = ToolResults(tuple(work.results[call.id] for call in calls))
        self.history.add(results)
        self.room -= size_of(results)

    # --- what a turn and a round ask of their actor ---------------------------------------------------------------

    def request(self, purpose: Purpose, attempt: int) -> ModelRequest:
        """The next request over the history as it stands."""
        request = ModelRequest(
            model=self.model.name,
            system=self.system,
            messages=self.history.conversation.messages,
            tools=self.specs,
            tool_choice="none" if purpose == "wrap_up" else "auto",
            max_output_tokens=self.model.output_cap(self.definition.max_output_tokens),
            settings=self.settings,
            output_schema=self.answers.sent_form if purpose in ("turn", "wrap_up") else None,
            agent=self.definition.name,
            actor=self.path,
            turn=self.turn,
            attempt=attempt,
        )
        return self.compactor.fitted(request)

    def ask(self, request: ModelRequest, purpose: Purpose) -> Ask:
        """The worst case of a request, for the ledger."""
        tokens = self.history.gauge.tokens(self.model.provider.count(request))
        return Ask(
            input_tokens=tokens,
            output_cap=request.max_output_tokens,
            price=self.model.price_for(tokens),
            result_cap=self.compactor.result_cap(RESULT_CAP),
            purpose=purpose,
        )

    def stop_after_round(self, stop: Stop) -> None:
        """End once this round's results are in."""
        self.standing.stop = self.standing.stop or stop

    # --- control: served at any time -------------------------------------------------------------------------------

    def steer(self, id: str, text: str, by: str, interrupt: bool = False) -> None:
        """Queue a human's message; it enters the history when the running round has all its results.

        Raises UsageError where it would never be read.
        """
        if self.standing.too_late:
            raise UsageError(f"too late: {self.path} {self.standing.too_late}")
        self.history.steer(id, text, by, interrupt)
        if interrupt and self.work is not None:
            self.work.interrupt(by)
        self.background.stir()

    def cancel(self, by: str) -> None:
        """End this actor and everything below it; its parent gets a `cancelled` report."""
        self.standing.cancelled_by = by
        self._scope.cancel()

    # --- beginning and end -----------------------------------------------------------------------------------------

    def follow(self, earlier: Continuation) -> None:
        """Begin with what the root of an earlier run has heard and said."""
        self.earlier = earlier
        self.history.restore(earlier.history, (), earlier.measured)
        self.turn = earlier.turn
        self.trail.open(*earlier.results)
        recall_skills(self, earlier.carried)

    def begin(self, assignment: Assignment) -> None:
        """Put the actor on record as started, once; `handle` or `dismiss` ends it."""
        self.run.live[self.path] = self
        if self.standing.begun:
            return
        self.standing.begun = True
        self.run.append(
            ActorStarted(
                actor=self.path,
                agent=self.definition.name,
                number=self.number,
                parent=self.parent.path if self.parent is not None else None,
                task=assignment.task,
                model=self.model.full_name,
                limits=self.limits.as_json(),
                prompt=self.system,
                tools=tuple(spec.as_json() for spec in self.specs),
                call_id=assignment.call_id,
                definition=self.definition.path,
                attached=tuple(each.as_json() for each in assignment.attached),
                window=self.model.window,
                **self._inherited(),
            )
        )
        for lost in self.toolbox.left_out:
            text = f"{self.path} goes without its tool {lost.name}: {lost.why}"
            self.remarks.append(text)
        for text in self.remarks:
            self.run.append(Warned(actor=self.path, text=text))
        self.answers.warn_of_check()
        announce(self)
        self.trail.begun(assignment.attached)
        if not self.run.settings.compacts:
            self.history.add(UserMessage(opening(assignment.task, assignment.attached)))
        for name in self.stale_skills:
            self.history.note(STALE_SKILL.format(name=name), "skill")

    def _inherited(self) -> dict[str, Any]:
        if (earlier := self.earlier) is None:
            return {}
        return {
            "history": messages_to_json(earlier.history),
            "turn": earlier.turn,
            "results": earlier.results,
            "measured": earlier.measured,
        }

    def dismiss(self) -> None:
        """End an actor that was cut off before its task ran; nothing happens to one that has ended by itself."""
        if not self.standing.ended and not self.run.suspending:
            self._end(self._report("cancelled"))

    @property
    def words(self) -> str:
        """The newest words of its model: its partial work."""
        return self.answers.masked(self.cut_text or self.standing.said)

    def _end(self, report: Report) -> Report:
        self.standing.ended = True
        self.standing.too_late = "has ended"
        self.report = report
        run = self.run
        try:
            self._close_round(f"interrupted: the agent was {report.status}")
            abandon(run, self.path)
            spent = run.gate.ledger.spent(self.path)
            report = attrs.evolve(report, usage=spent.usage, cost_usd=spent.cost_usd, steps=spent.steps)
            report = self.report = self.trail.added_to(report)
            elapsed = run.deadlines.elapsed(self.path)
            finished = ActorFinished(actor=self.path, report=report_to_json(report), elapsed=elapsed)
            run.append(finished)
            if self.parent is not None:
                self.parent.trail.received(finished.report)
        finally:
            del run.live[self.path]
            run.holds.forget(self.path)
            run.deadlines.finish(self.path)
            run.gate.close(self.path)
            self.model.provider.forget(self.path)
        run.check_waiting()
        return report

    def _report(
        self,
        status: Status,
        text: str | None = None,
        reason: StopReason | None = None,
        detail: str = "",
        output: Any = None,
    ) -> Report:
        spent = self.run.gate.ledger.spent(self.path)
        text = self.words if text is None else text if status == "completed" else self.answers.masked(text)
        return Report(status, text, spent.usage, spent.cost_usd, spent.steps, reason, detail, output)
