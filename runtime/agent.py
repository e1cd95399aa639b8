"""One agent: an actor that turns an Assignment into a Report. The loop is one screen; the rest are its steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import attrs
import trio

from actors import Actor

from .conversation import CallModel, Conversation, Finish, RunTools
from .definitions import Definition
from .events import (
    ActorContinued,
    ActorFinished,
    ActorHeld,
    ActorStarted,
    FileChanged,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    NoteAdded,
    SteerReceived,
    ToolOutput,
    ToolRetried,
)
from .journal.state import ActorState, Alert
from .limits.budget import Ask, Purpose
from .limits.estimate import Gauge
from .limits.limits import Limits
from .limits.loops import Block, CallSeen, ChantGuard, Flags, Guard, Nudge, Ok, StepSeen, note
from .limits.loops import Stop as LoopStop
from .messages import AssistantMessage, JsonObject, Message, ToolCall, ToolResults, UserMessage, size_of
from .model import ModelRequest, ModelSettings, ProviderError, ToolSpec
from .models import ModelRef
from .permits import Permits
from .record import report_to_json, result_of
from .report import Assignment, Report, Status, StopReason
from .round import Round, close_round, run_round
from .run import Run, digest
from .tools import RunHooks, ToolBox, ToolContext
from .turn import Stop, call_model

Hire: TypeAlias = Callable[[str, "Agent", str], "Agent"]

RESULT_CAP = 16_000
GO_ON = "There is room to go on now. Continue with your task from where you stand."
CONTINUE = "Continue exactly where you stopped; do not repeat what you have already written."
EMPTY = "Your reply was empty. Give your answer, or call a tool."
WRAP_UP = (
    "{why} This is your last turn: no more tools. Give the best answer you can from what you have so far, "
    "and say what is not done."
)
MOST_CONTINUATIONS = 5


class Agent(Actor[Assignment, Report]):
    """The actor. Its state belongs to its own task; control (steer, cancel, hold) only sets what the loop reads."""

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
        guard: Guard | None,
        limits: Limits,
        hire: Hire,
    ) -> None:
        self.run = run
        self.definition = definition
        self.path = path
        self.number = number
        self.parent = parent
        self.model = model
        self.permits = permits
        self.guard = guard
        self.limits = limits
        self.hire = hire
        self.toolbox = ToolBox(())
        self.hooks = RunHooks()
        self.specs: tuple[ToolSpec, ...] = ()
        self.system: tuple[str, ...] = ()
        self.settings = ModelSettings(definition.temperature, definition.top_p, definition.thinking)
        self.conversation = Conversation()
        self.turn = 0
        self.work: Round | None = None
        self.result_cap = 0
        self.children: dict[str, int] = {}
        self.strands = 1
        self.awaited: list[str] = []
        self._gauge = Gauge()
        self._steers: list[tuple[str, str, str]] = []
        self._cancelled_by = ""
        self._scope = trio.CancelScope()
        self._held = False
        self._continue = trio.Event()
        self._stop: Stop | None = None
        self._continued = 0
        self._nudged_empty = False
        self._cut = ""

    def equip(self, toolbox: ToolBox, system: tuple[str, ...]) -> None:
        """Give the actor its tools and its prompt, before it begins."""
        self.toolbox = toolbox
        self.specs = toolbox.specs()
        self.system = system
        self.hooks = RunHooks(
            retried=self._retried, backoff=lambda attempt: 0.5 * 2**attempt, keep=self.run.results.keep, data=self._data
        )
        self._gauge = Gauge()
        for part in system:
            self._gauge = self._gauge.add(part)
        for spec in self.specs:
            self._gauge = self._gauge.add(json.dumps(spec.parameters)).add(spec.name + spec.description)

    # --- the loop ------------------------------------------------------------------------------------------------

    async def handle(self, message: Assignment) -> Report:
        """Work until the end. Raises JournalError; every other end is a Report.

        A cancelled call leaves `actor.finished` (cancelled) in the journal and a valid history.
        """
        self._begin(message)
        report: Report | None = None
        failure = ""
        try:
            with self._scope:
                report = await self._work()
            if report is None:
                report = self._report("cancelled", detail=f"cancelled by {self._cancelled_by}")
            return report
        except ProviderError as error:
            report = self._report("failed", detail=error.message)
            return report
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            if not self.run.suspending:
                self._end(report or self._report("failed" if failure else "cancelled", detail=failure))

    async def _work(self) -> Report:
        with self.run.deadlines.soft(self.path) as scope:
            outcome = await self._loop()
        if scope.cancelled_caught:
            outcome = Stop("deadline", self.run.deadlines.explain(self.path))
        return outcome if isinstance(outcome, Report) else await self._wrap_up(outcome)

    async def _loop(self) -> Report | Stop:
        while True:
            await self._while_held()
            self._admit_steers()
            match self.conversation.next_step():
                case CallModel(because=because):
                    outcome = await self._call(because)
                case RunTools(calls=calls):
                    outcome = await self._run_tools(calls)
                case Finish(message=message):
                    outcome = self._finish(message)
            if outcome is not None:
                return outcome
            await trio.lowlevel.checkpoint_if_cancelled()

    # --- a reply -------------------------------------------------------------------------------------------------

    async def _call(self, because: str) -> Report | Stop | None:
        if because == "length":
            if self._continued >= MOST_CONTINUATIONS:
                return self._report("stopped", self._joined_text(), "length", f"{self._continued} continuations")
            self._continued += 1
            self._note(CONTINUE, "length")
            if self.guard is not None:
                self.guard.note("continuation")
        reply = await call_model(self)
        if isinstance(reply, Stop):
            return reply
        self.conversation = self.conversation.add(reply)
        return self._observe(reply, ()) if not reply.calls else None

    def _finish(self, message: AssistantMessage) -> Report | Stop | None:
        match message.finish:
            case "content_filter" | "refusal" | "context_window" as reason:
                return self._report("stopped", message.text or self.conversation.last_text, reason)
            case _:
                text = self._joined_text() or self.conversation.last_text
        if text.strip():
            return self._report("completed", text)
        if self._nudged_empty:
            return self._report("failed", detail="the model gave an empty answer twice")
        self._nudged_empty = True
        self._note(EMPTY, "empty")
        return None

    def _joined_text(self) -> str:
        """The last reply, with the truncated ones it continues put before it, without a seam."""
        pieces: list[str] = []
        messages = self.conversation.messages
        index = len(messages) - 1
        while index >= 0 and isinstance(reply := messages[index], AssistantMessage):
            pieces.append(reply.text)
            index -= 1
            if index > 0 and isinstance(note := messages[index], UserMessage) and note.text == CONTINUE:
                index -= 1
            elif not (
                index >= 0 and isinstance(before := messages[index], AssistantMessage) and before.finish == "pause"
            ):
                break
        return "".join(reversed(pieces))

    async def _wrap_up(self, stop: Stop) -> Report:
        """End before a limit or the guard does it: close the round, ask once more with tools off, report."""
        self._close_round(f"interrupted: {stop.detail}")
        if stop.wrap_up and self.conversation.messages:
            self._note(WRAP_UP.format(why=_sentence(stop.detail)), "wrap_up")
            with self.run.deadlines.hard(self.path):
                try:
                    reply = await call_model(self, "wrap_up")
                except ProviderError as error:
                    stop = attrs.evolve(stop, detail=f"{stop.detail}; no last answer: {error.message}")
                else:
                    if isinstance(reply, AssistantMessage):
                        self.conversation = self.conversation.add(reply)
        text = self.conversation.last_text or self._cut
        return self._report("stopped", text, stop.reason, stop.detail)

    # --- tool calls ----------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: tuple[ToolCall, ...]) -> Stop | None:
        work = self.work = self.work or Round(calls)
        await run_round(self, work)
        close_round(self, work, work.interrupted_by or "interrupted")
        reply = self.conversation.messages[-1]
        assert isinstance(reply, AssistantMessage)
        stop = self._observe(reply, tuple(self._seen(call, work) for call in calls))
        self._close_round("")
        return stop or self._stop

    def _close_round(self, reason: str) -> None:
        calls = self.conversation.open_calls
        if not calls:
            return
        work = self.work or Round(calls)
        self.work = None
        close_round(self, work, reason)
        self._add(ToolResults(tuple(work.results[call.id] for call in calls)))

    def _seen(self, call: ToolCall, work: Round) -> CallSeen:
        result = work.results[call.id]
        arguments = call.arguments if call.arguments is not None else {"raw": call.raw}
        return CallSeen(
            call.name,
            arguments,
            result.content,
            result.is_error,
            work.seconds.get(call.id, 0.0),
            self._flags(call.name),
        )

    def _flags(self, name: str) -> Flags:
        tool = self.toolbox.get(name)
        if tool is None:
            return Flags(read_only=True)
        return Flags(read_only=tool.read_only, mutates=tool.mutates, poll=tool.poll)

    def _observe(self, reply: AssistantMessage, calls: tuple[CallSeen, ...]) -> Stop | None:
        if self.guard is None:
            return None
        verdict = self.guard.observe(StepSeen(text=reply.text, calls=calls, at=trio.current_time()))
        if isinstance(verdict, Ok):
            return None
        if isinstance(verdict, LoopStop):
            self.run.append(self._alert(LoopStopped, verdict))
            return Stop("loop", verdict.why)
        self.run.append(self._alert(LoopNudged if isinstance(verdict, Nudge) else LoopBlocked, verdict))
        return None

    def _alert(self, kind: type[Alert], verdict: Nudge | Block | LoopStop) -> Alert:
        seen = verdict.evidence
        advice = {} if kind is LoopStopped else self._advise(note(verdict))
        return kind(actor=self.path, why=verdict.why, calls=seen.calls, kind=seen.kind, times=seen.times, **advice)

    def _advise(self, text: str) -> dict[str, str]:
        """Let the model read the guard's note: in the round's last result, or as a message where there is none."""
        if self.work is None:
            self._add(UserMessage(text, "note"))
            return {"note": text}
        last = self.work.results[self.work.calls[-1].id]
        self.work.results[last.call_id] = attrs.evolve(last, content=f"{last.content}\n\n{text}")
        return {"call_id": last.call_id, "note": text}

    # --- what a turn and a round ask of their actor ------------------------------------------------------------

    def request(self, purpose: Purpose, attempt: int) -> ModelRequest:
        """The next request over the history as it stands."""
        return ModelRequest(
            model=self.model.name,
            system=self.system,
            messages=self.conversation.messages,
            tools=self.specs,
            tool_choice="none" if purpose == "wrap_up" else "auto",
            max_output_tokens=self.model.output_cap(self.definition.max_output_tokens),
            settings=self.settings,
            agent=self.definition.name,
            actor=self.path,
            turn=self.turn,
            attempt=attempt,
        )

    def ask(self, request: ModelRequest, purpose: Purpose) -> Ask:
        """The worst case of a request, for the ledger."""
        counted = self.model.provider.count(request)
        return Ask(
            input_tokens=self._gauge.tokens(counted),
            output_cap=request.max_output_tokens,
            price=self.model.price,
            result_cap=RESULT_CAP,
            purpose=purpose,
        )

    def learn(self, message: AssistantMessage) -> None:
        """A reply came: what it says of its size corrects the gauge."""
        self._measure(message)
        self.turn += 1

    def _measure(self, message: AssistantMessage) -> None:
        if message.usage is not None and message.usage.total > 0:
            self._gauge = self._gauge.after_reply(message.usage)
        else:
            self._gauge = self._gauge.add_bytes(size_of(message))

    def chant_guard(self) -> ChantGuard | None:
        return ChantGuard() if self.guard is not None else None

    def cut_off(self, text: str) -> None:
        """Keep the words of a stream that was cut: they are the partial answer if no better one comes."""
        self._cut = text

    def stop_after_round(self, stop: Stop) -> None:
        """End once this round's results are in."""
        self._stop = self._stop or stop

    def seconds_left(self) -> float | None:
        return self.run.deadlines.left(self.path)

    def tool_context(self, call: ToolCall) -> ToolContext:
        """What the tool of one call may touch."""
        run, id = self.run, call.id

        def changed(path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
            run.append(
                FileChanged(
                    actor=self.path, call_id=id, path=path, diff=diff, before=digest(before), after=digest(after)
                )
            )

        return ToolContext(
            workspace=run.workspace,
            call_id=id,
            actor=self.path,
            output=lambda text: run.stream.publish_live(ToolOutput(actor=self.path, call_id=id, text=text)),
            changed=changed,
            report=lambda event: run.append(attrs.evolve(event, actor=self.path)),
            readable=self.permits.readable,
        )

    def _retried(self, call: ToolCall, attempt: int, wait: float, message: str) -> None:
        self.run.append(
            ToolRetried(actor=self.path, call_id=call.id, name=call.name, attempt=attempt, wait=wait, message=message)
        )

    def _data(self, call: ToolCall, data: JsonObject) -> None:
        if self.work is not None:
            self.work.data[call.id] = data

    @property
    def works(self) -> bool:
        """Whether this actor does anything but wait for humans and for children that have not ended."""
        return self.strands > 0 or any(child not in self.run.live for child in self.awaited)

    @contextmanager
    def idle(self, child: str | None = None) -> Generator[None]:
        """While inside, one of this actor's strands waits for a human, or for the child at that path."""
        self.strands -= 1
        if child is not None:
            self.awaited.append(child)
        self.run.deadlines.rest(self.path)
        try:
            yield
        finally:
            self.strands += 1
            if child is not None:
                self.awaited.remove(child)
            self.run.deadlines.work(self.path)

    @contextmanager
    def busy(self) -> Generator[None]:
        """One more strand works: the opposite of idle, for calls that run side by side."""
        self.strands += 1
        self.run.deadlines.work(self.path)
        try:
            yield
        finally:
            self.strands -= 1
            self.run.deadlines.rest(self.path)

    # --- control: served at any time -----------------------------------------------------------------------------

    def steer(self, id: str, text: str, by: str, interrupt: bool = False) -> None:
        """Queue a human's message; it enters the history when the running round has all its results."""
        self.run.append(SteerReceived(actor=self.path, id=id, text=text, by=by, interrupt=interrupt))
        self.conversation = self.conversation.queue(UserMessage(text, "steer"))
        self._steers.append((id, text, by))
        if interrupt and self.work is not None:
            self.work.interrupted_by = f"interrupted by {by}'s message"
            self.work.scope.cancel()

    def cancel(self, by: str) -> None:
        """End this actor and everything below it; its parent gets a `cancelled` report."""
        self._cancelled_by = by
        self._scope.cancel()

    def hold(self, by: str) -> None:
        """Stop before the next step."""
        if not self._held:
            self._held = True
            self._continue = trio.Event()
            self.run.append(ActorHeld(actor=self.path, by=by))

    def go_on(self, by: str) -> None:
        if self._held:
            self._held = False
            self._continue.set()
            self.run.append(ActorContinued(actor=self.path, by=by))

    # --- beginning and end ---------------------------------------------------------------------------------------

    def restore(self, state: ActorState) -> None:
        """Stand where an earlier process left this actor: history, round, steering messages, turn."""
        self.conversation = self.conversation.replaced(state.history)
        for message in self.conversation.messages:
            if isinstance(message, AssistantMessage):
                self._measure(message)
            else:
                self._gauge = self._gauge.add_bytes(size_of(message))
        self.turn = state.turn
        self._held = state.held
        for path in state.children:
            name, _, number = path.rpartition("/")[2].rpartition("-")
            self.children[name] = max(self.children.get(name, 0), int(number))
        for steer in state.steers.values():
            self._steers.append((steer.id, steer.text, steer.by))
            self.conversation = self.conversation.queue(UserMessage(steer.text, "steer"))
        if calls := self.conversation.open_calls:
            self.work = Round(
                calls,
                {id: result_of(call.finished) for id, call in state.calls.items() if call.finished is not None},
                {id: call.finished.seconds for id, call in state.calls.items() if call.finished is not None},
                requested=set(state.calls),
                started={call.call_id for call in state.unclear_calls},
            )
        elif isinstance(self.conversation.next_step(), Finish):
            self._note(GO_ON, "resume")

    def _begin(self, assignment: Assignment) -> None:
        self.run.live[self.path] = self
        if self.conversation.messages:
            return
        parent = self.parent.path if self.parent is not None else None
        self.run.append(
            ActorStarted(
                actor=self.path,
                agent=self.definition.name,
                number=self.number,
                parent=parent,
                task=assignment.task,
                model=self.model.full_name,
                limits=self.limits.as_json(),
                prompt=self.system,
                tools=tuple(
                    {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                    for spec in self.specs
                ),
                call_id=assignment.call_id,
                definition=self.definition.path,
            )
        )
        self._add(UserMessage(assignment.task))

    def _end(self, report: Report) -> None:
        self._settle_history(report)
        self.run.append(ActorFinished(actor=self.path, report=report_to_json(report)))
        del self.run.live[self.path]
        self.run.deadlines.finish(self.path)
        self.run.gate.close(self.path)
        self.model.provider.forget(self.path)
        self.run.check_waiting()

    def _settle_history(self, report: Report) -> None:
        """However it ended, no call stays without a result."""
        if self.conversation.open_calls:
            self._close_round(f"interrupted: the agent was {report.status}")

    def _report(
        self, status: Status, text: str | None = None, reason: StopReason | None = None, detail: str = ""
    ) -> Report:
        spent = self.run.gate.ledger.spent(self.path)
        if text is None:
            text = self.conversation.last_text or self._cut
        return Report(status, text, spent.usage, spent.cost_usd, spent.steps, reason, detail)

    # --- the history ---------------------------------------------------------------------------------------------

    def _add(self, message: Message) -> None:
        """One more message, and its bytes on the gauge."""
        self.conversation = self.conversation.add(message)
        self._gauge = self._gauge.add_bytes(size_of(message))

    def _note(self, text: str, why: str) -> None:
        self.run.append(NoteAdded(actor=self.path, text=text, why=why))
        self._add(UserMessage(text, "note"))

    def _admit_steers(self) -> None:
        if not self._steers or self.conversation.open_calls:
            return
        for id, text, by in self._steers:
            self.run.append(SteerReceived(actor=self.path, id=id, text=text, by=by, entered=True))
            self._gauge = self._gauge.add(text)
        self._steers.clear()
        self.conversation = self.conversation.take_queued()
        if self.guard is not None:
            self.guard.note("user_message")

    async def _while_held(self) -> None:
        while self._held:
            with self.idle():
                await self._continue.wait()


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
