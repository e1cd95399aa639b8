"""The hooks of one actor, run at its moments: in order, within its time, each on record once it has ended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

import attrs
import trio

from runtime.events import HookFinished, HookStarted, Warned
from runtime.messages import AssistantMessage, JsonObject, Message, ToolCall, ToolResult, ToolResults, UserMessage
from runtime.record import calls_to_json, report_to_json
from runtime.report import Report

from .answers import Answer, Failed, Outcome, Said, read_answer, stands_for
from .command import run_command
from .environment import hook_environment
from .moments import Decision
from .settings import Function, Hook

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.journal.state import ActorState

MOST_SENT_BACK = 3
"""How often hooks may refuse an actor's end; then it stands."""
MOST_SHOWN = 20_000
"""Characters of the newest message that a before_model hook is told."""
WITHHELD = "It ran; its result is withheld: {why}"
INTERRUPTED = "it was interrupted before its answer was on record; it may have taken effect, and is not run again"

Fit = Callable[[JsonObject], JsonObject | str]


class ActorHooks:
    """What runs around one actor's steps. With no hooks for a moment, it costs nothing."""

    def __init__(self, agent: Agent, hooks: Iterable[Hook]) -> None:
        self._agent = agent
        self._hooks: dict[str, list[Hook]] = {}
        self._recorded: list[HookFinished] = []
        self._under_way: list[HookStarted] = []
        self._started = False
        self._sent_back = 0
        self._finish_seen = False
        self.add(hooks)

    def add(self, hooks: Iterable[Hook]) -> None:
        """More hooks, after those that are there; one that is there already is not added again."""
        for hook in hooks:
            there = self._hooks.setdefault(hook.moment.name, [])
            if hook not in there:
                there.append(hook)

    def restore(self, state: ActorState) -> None:
        """What an earlier process ran is not run again before the next reply."""
        self._recorded = list(state.hooked)
        self._under_way = list(state.hooking)
        self._started = state.steps > 0
        self._sent_back = state.sent_back

    # --- around the loop -----------------------------------------------------------------------------------------

    async def start(self) -> str | None:
        """Before the first step: why the actor may not work, if a hook says so. A cancelled call may have run some.

        An actor that had its first reply in an earlier process has begun, whatever hooks have been added since.
        """
        if self._started:
            return None
        moments = ("run_start", "actor_start") if self._agent.parent is None else ("actor_start",)
        for moment in moments:
            if moment in self._hooks:
                outcome = await self._consult(moment, {"task": self._task(), "tools": self._tools()})
                if outcome.is_denied:
                    return f"the hook {outcome.by} refused the start: {outcome.reason}"
        return None

    async def before_model(self) -> str | None:
        """Before a model call: why there must be none, if a hook says so. A cancelled call may have run some."""
        if "before_model" not in self._hooks:
            return None
        messages = self._agent.history.conversation.messages
        event = {"turn": self._agent.turn, "messages": len(messages), "last_message": _newest(messages)}
        outcome = await self._consult("before_model", event)
        return f"the hook {outcome.by} refused a model call: {outcome.reason}" if outcome.is_denied else None

    async def after_model(self, reply: AssistantMessage) -> None:
        """After a reply. A cancelled call may have run some."""
        self._recorded = [event for event in self._recorded if event.event in ("run_start", "actor_start")]
        self._under_way = []
        self._finish_seen = False
        if "after_model" in self._hooks:
            event = {
                "turn": self._agent.turn - 1,
                "text": reply.text,
                "tool_calls": list(calls_to_json(reply)),
                "finish": reply.finish,
            }
            await self._consult("after_model", event)

    async def compacting(self, why: str, by: str = "") -> None:
        """Before the history is shortened, `by` a person's wish or of itself. A cancelled call may have run some."""
        if "compaction" in self._hooks:
            messages = len(self._agent.history.conversation.messages)
            event = {"trigger": "manual" if by else "auto", "why": why, "messages": messages}
            await self._consult("compaction", event)

    async def sends_back(self, text: str) -> bool:
        """Whether a hook refuses the actor's end; its reason is then in the history.

        After MOST_SENT_BACK refusals an end stands. A cancelled call may have run some.
        """
        if "actor_finish" not in self._hooks:
            return False
        self._finish_seen = True
        may = self._sent_back < MOST_SENT_BACK
        outcome = await self._consult("actor_finish", {"status": "completed", "text": text}, sends_back=may)
        if not outcome.is_denied:
            return False
        self._sent_back += 1
        self._finish_seen = not may
        if not may:
            said = f"{self._agent.path} ends: the hook {outcome.by} had refused its end {MOST_SENT_BACK} times before"
            self._agent.run.append(Warned(actor=self._agent.path, text=said))
        return may

    async def finished(self, report: Report) -> None:
        """After the last step, and for the root after the run's. A cancelled call may have run some.

        They have what is left of the actor's time.
        """
        agent = self._agent
        due = [] if self._finish_seen else ["actor_finish"]
        due += ["run_finish"] if agent.parent is None else []
        due = [moment for moment in due if moment in self._hooks]
        if due:
            with agent.run.deadlines.hard(agent.path):
                for moment in due:
                    await self._consult(moment, dict(report_to_json(report)), stands=True)

    # --- around a call -------------------------------------------------------------------------------------------

    async def before_tool(
        self, call: ToolCall, arguments: JsonObject, recorded: Sequence[HookFinished], fit: Fit, *, again: bool
    ) -> Outcome:
        """What the hooks say of a call that may run or would be asked about; `fit` checks what they make of it.

        Those on record do not run once more, and none does for a call that is to run `again`. A cancelled call may
        have run some.
        """
        if again:
            return recall(recorded, "before_tool")
        if "before_tool" not in self._hooks:
            return Outcome()
        event = {"tool_name": call.name, "tool_input": arguments, "tool_use_id": call.id}
        return await self._consult("before_tool", event, call=call, recorded=recorded, fit=fit)

    async def approval(
        self, call: ToolCall, arguments: JsonObject, why: str, recorded: Sequence[HookFinished]
    ) -> Outcome:
        """What the hooks say in place of a human who is about to be asked. A cancelled call may have run some."""
        if "approval" not in self._hooks:
            return Outcome()
        event = {"tool_name": call.name, "tool_input": arguments, "tool_use_id": call.id, "why": why}
        return await self._consult("approval", event, call=call, recorded=recorded)

    def reviews(self, tool: str) -> bool:
        """Whether a hook looks at the results of this tool."""
        return any(hook.matcher.fits(tool) for hook in self._hooks.get("after_tool", ()))

    async def after_tool(self, call: ToolCall, arguments: JsonObject, result: ToolResult, seconds: float) -> ToolResult:
        """The result as the hooks leave it. A cancelled call may have run some."""
        event = {
            "tool_name": call.name,
            "tool_input": arguments,
            "tool_use_id": call.id,
            "tool_response": result.content,
            "is_error": result.is_error,
            "seconds": round(seconds, 6),
        }
        outcome = await self._consult("after_tool", event, call=call)
        if outcome.is_denied:
            why = f"refused by the hook {outcome.by}: {outcome.reason}"
            return attrs.evolve(result, content=WITHHELD.format(why=why), kind="error", images=())
        if outcome.result is not None:
            result = attrs.evolve(result, content=outcome.result)
        return with_context(result, outcome.contexts)

    def cut_off(self, result: ToolResult) -> ToolResult:
        """The result of a call whose hooks could not say their word: withheld if one of them counts for no by then."""
        hooks = self._hooks.get("after_tool", ())
        if any(hook.on_error == "deny" and hook.matcher.fits(result.name) for hook in hooks):
            return attrs.evolve(
                result, content=WITHHELD.format(why="a hook on it was cut off"), kind="error", images=()
            )
        return result

    # --- one moment ----------------------------------------------------------------------------------------------

    async def _consult(
        self,
        moment: str,
        event: JsonObject,
        *,
        call: ToolCall | None = None,
        recorded: Sequence[HookFinished] | None = None,
        fit: Fit | None = None,
        sends_back: bool = False,
        stands: bool = False,
    ) -> Outcome:
        """Run the hooks of a moment, until one refuses; with `stands`, none can."""
        agent = self._agent
        name = call.name if call is not None else agent.definition.name
        call_id = call.id if call is not None else ""
        earlier = self._recorded if recorded is None and call is None else recorded or ()
        outcome = Outcome()
        for hook in self._hooks[moment]:
            if not hook.matcher.fits(name):
                continue
            known = next((each for each in earlier if each.event == moment and each.hook == hook.name), None)
            if known is not None:
                answer = recalled(known, hook.on_error)
            elif call is None and any((each.event, each.hook) == (moment, hook.name) for each in self._under_way):
                said = Failed(INTERRUPTED)
                self._record(hook, said, "", 0.0, "")
                answer = stands_for(said, hook.name, hook.on_error)
            else:
                if outcome.arguments is not None:
                    event = {**event, "tool_input": outcome.arguments}
                if outcome.result is not None:
                    event = {**event, "tool_response": outcome.result}
                answer = await self._run(hook, event, call_id, fit, sends_back)
            outcome = outcome.then(hook.name, answer)
            if outcome.is_denied and not stands:
                break
        return outcome

    async def _run(self, hook: Hook, event: JsonObject, call_id: str, fit: Fit | None, sends_back: bool) -> Answer:
        if hook.moment.once:
            self._agent.run.append(HookStarted(actor=self._agent.path, hook=hook.name, event=hook.moment.name))
            await self._agent.run.journal.barrier()
        started = trio.current_time()
        said: Said = Failed(f"it did not end within {hook.timeout:g} s")
        ended = False
        try:
            with trio.move_on_after(hook.timeout):
                said = await self._said(hook, {**self._common(hook), **event})
            ended = True
        finally:
            if not ended and not self._agent.run.suspending:
                self._record(hook, Failed("it was cut off"), call_id, trio.current_time() - started, "")
        if fit is not None and isinstance(said, Answer) and said.arguments is not None:
            fitted = fit(said.arguments)
            said = Failed(fitted) if isinstance(fitted, str) else attrs.evolve(said, arguments=fitted)
        answer = stands_for(said, hook.name, hook.on_error)
        context = answer.context
        if not call_id:
            if sends_back and answer.decision == "deny":
                context = f"You are not done yet, says the hook {hook.name}: {answer.reason}"
            elif context:
                context = f"From the hook {hook.name}:\n{context}"
        self._record(hook, said, call_id, trio.current_time() - started, context)
        if context and not call_id:
            self._agent.history.hear(context)
        return answer

    async def _said(self, hook: Hook, event: JsonObject) -> Said:
        if hook.function is not None:
            return await _called(hook, hook.function, event)
        run = self._agent.run
        root = run.workspace.root
        return await run_command(
            run.reaper,
            hook.moment,
            hook.command,
            json.dumps(event).encode() + b"\n",
            cwd=root,
            env=hook_environment(os.environ, run=run.id, event=hook.moment.name, workspace=root),
        )

    def _record(self, hook: Hook, said: Said, call_id: str, seconds: float, context: str) -> None:
        match said:
            case Failed(why=why):
                outcome, message, arguments = "error", why, None
            case Answer():
                outcome = said.decision or "none"
                message = "; ".join(each for each in (said.reason, said.message) if each)
                arguments = said.arguments
        self._agent.run.append(
            HookFinished(
                actor=self._agent.path,
                hook=hook.name,
                event=hook.moment.name,
                outcome=outcome,
                seconds=round(seconds, 6),
                message=message,
                call_id=call_id,
                arguments=arguments,
                context=context,
            )
        )

    def _common(self, hook: Hook) -> JsonObject:
        agent = self._agent
        return {
            "hook_event_name": hook.written or hook.moment.name,
            "event": hook.moment.name,
            "session_id": agent.run.id,
            "run": agent.run.id,
            "actor": agent.path,
            "agent": agent.definition.name,
            "model": agent.model.full_name,
            "cwd": agent.run.workspace.root,
            "mode": agent.permits.ceiling.mode,
        }

    def _task(self) -> str:
        first = next(
            (each for each in self._agent.history.conversation.messages if isinstance(each, UserMessage)), None
        )
        return first.text if first is not None else ""

    def _tools(self) -> list[str]:
        return [spec.name for spec in self._agent.specs]


def recalled(event: HookFinished, on_error: str) -> Answer:
    """The answer that a hook on record gave."""
    if event.outcome == "error":
        return stands_for(Failed(event.message), event.hook, on_error)
    decision = cast("Decision", "" if event.outcome == "none" else event.outcome)
    return Answer(decision, event.message, event.arguments, None, event.context)


def recall(recorded: Iterable[HookFinished], moment: str) -> Outcome:
    """What the hooks on record came to; those that failed did not keep the call from running."""
    outcome = Outcome()
    for event in recorded:
        if event.event == moment:
            outcome = outcome.then(event.hook, recalled(event, "allow"))
    return outcome


def with_context(result: ToolResult, contexts: Sequence[str]) -> ToolResult:
    """A call's result with what hooks have added to it."""
    if not contexts:
        return result
    return attrs.evolve(result, content="\n\n".join((result.content, *(f"From a hook:\n{each}" for each in contexts))))


async def _called(hook: Hook, function: Function, event: JsonObject) -> Said:
    from runtime.tools import is_async

    try:
        if is_async(function):
            found: object = await function(event)
        else:
            found = await trio.to_thread.run_sync(function, event, abandon_on_cancel=True)
    except Exception as error:  # noqa: BLE001  # a hook's own fault ends here, as a tool's does in its toolbox
        return Failed(f"it raised {type(error).__name__}: {error}")
    return read_answer(hook.moment, found)


def _newest(messages: Sequence[Message]) -> str:
    match messages[-1] if messages else None:
        case UserMessage(text=text):
            return text[:MOST_SHOWN]
        case ToolResults(results=results):
            return "\n\n".join(result.content for result in results)[:MOST_SHOWN]
        case _:
            return ""
