"""The tool calls of one reply: decided, made durable, run in their order, each ended by exactly one result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import attrs
import trio

from .approvals import Pending
from .errors import JournalError, first_of
from .events import (
    ApprovalDecided,
    BudgetRefused,
    HookFinished,
    PermissionDecided,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    Warned,
)
from .family import changed_before, key_of
from .hooks.actor import recall, with_context
from .hooks.answers import ruled
from .limits.estimate import byte_length
from .messages import FRAME_BYTES, JsonObject, ToolCall, ToolResult
from .policy.decision import Decision
from .policy.grants import grants_of
from .policy.subjects import PathSubject, Subject
from .questions import asked_within
from .record import images_to_json
from .stop import Stop
from .tools import Problem, RunHooks, Tool, rounds
from .tools.results import fitting
from .words import UNKNOWN
from .workbench import tool_context

if TYPE_CHECKING:
    from .agent import Agent

LEAST_BYTES = 120
UNCLEAR = (
    "it was interrupted before its result was recorded and may have taken effect: "
    "yes runs it again, no leaves it at that"
)
NOTE_BYTES = 1200
"""Kept for what the guard and the wrap-up may have to say after a round."""
FEW = 4
"""Children of a reply that begin one after the other: the first asks its model while the next is hired."""
TURNS = 4
"""Of Trio's loop, in which a child that is called gets as far as its first request."""


@attrs.define(eq=False)
class Round:
    """What has come in so far for the calls of one reply; survives a cancelled round, so nothing that ran is lost.

    `cap` is what all results together may add to the history, in estimated tokens. `started` are calls that an earlier
    process began, `hooked` the hooks it ran for them.
    """

    calls: tuple[ToolCall, ...]
    cap: int
    results: dict[str, ToolResult] = attrs.Factory(dict[str, ToolResult])
    seconds: dict[str, float] = attrs.Factory(dict[str, float])
    partial: dict[str, str] = attrs.Factory(dict[str, str])
    data: dict[str, JsonObject] = attrs.Factory(dict[str, JsonObject])
    requested: set[str] = attrs.Factory(set[str])
    counted: set[str] = attrs.Factory(set[str])
    started: set[str] = attrs.Factory(set[str])
    hooked: Mapping[str, tuple[HookFinished, ...]] = attrs.Factory(dict[str, tuple[HookFinished, ...]])
    used: int = attrs.field(init=False)
    interrupted_by: str = ""
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.used = sum(_weight(result) for result in self.results.values())

    @property
    def open(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call.id not in self.results)

    def interrupt(self, by: str) -> None:
        """Cancel what runs, or is about to: there is a message that cannot wait."""
        self.interrupted_by = f"interrupted by a message from {by or 'somebody'}"
        self.scope.cancel()


@attrs.frozen
class Ready:
    """A call that may run: validated arguments, the tool that takes them, and what hooks add to its result."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    context: tuple[str, ...] = ()


async def run_round(me: Agent, work: Round) -> None:
    """Fill `work` with a result for each call. Raises JournalError.

    Cancelled from outside, or by a steering message that interrupts, the calls that still ran have no result yet;
    `close_round` gives them one.
    """
    for call in work.calls:
        if call.id not in work.requested:
            me.run.append(
                ToolRequested(
                    actor=me.path,
                    call_id=call.id,
                    name=call.name,
                    arguments=call.arguments,
                    arguments_error=call.arguments_error,
                )
            )
    ready = {call.id: entry for call in work.open if (entry := _prepare(me, work, call)) is not None}
    with work.scope:
        await trio.lowlevel.checkpoint_if_cancelled()  # by a message on record: no call is to wait for a human first
        for batch in rounds([entry.call for entry in ready.values()], me.toolbox.effects_of):
            if len(batch) == 1:
                await _perform(me, work, ready[batch[0].id])
            else:
                await _together(me, work, [ready[call.id] for call in batch])


async def _together(me: Agent, work: Round, batch: list[Ready]) -> None:
    with me.activity.forked(len(batch)) as done:

        async def one(entry: Ready, ahead: int) -> None:
            try:
                for _ in range(TURNS * min(ahead, FEW)):
                    await trio.lowlevel.checkpoint()
                await _perform(me, work, entry)
            finally:
                done()

        try:
            async with trio.open_nursery() as nursery:
                children: dict[tuple[str, ...], int] = {}
                for entry in batch:
                    delegates = entry.tool.delegates
                    ask = key_of(entry.tool.name, entry.arguments) if delegates else ()
                    nursery.start_soon(one, entry, children.setdefault(ask, len(children)) if delegates else 0)
        except BaseExceptionGroup as group:
            # A journal that cannot be written is all a call may raise; it goes up as it is.
            if (fault := first_of(group, JournalError)) is not None:
                raise fault from None
            raise


def close_round(me: Agent, work: Round, reason: str) -> None:
    """Give every call without a result a typed one that says so; never invented content.

    One that an earlier process began may have taken effect, whatever ends it now.
    """
    for call in work.open:
        text = reason
        if call.id in work.started and me.toolbox.effects_of(call) in ("once", "idempotent"):
            unknown = f"{UNKNOWN}{asked_within(me, call.id)}\n{reason}"
            _finish(me, work, ToolResult(call.id, call.name, unknown, "unknown"), 0.0)
            continue
        if partial := work.partial.get(call.id):
            text = f"{reason}\n\nPartial work of {call.name.removeprefix('delegate_to_')}:\n{partial}"
        _finish(me, work, ToolResult(call.id, call.name, text, "interrupted"), 0.0)


def _prepare(me: Agent, work: Round, call: ToolCall) -> Ready | None:
    """Decide what needs no waiting; a call that cannot run gets its result here."""

    def refuse(text: str, kind: str = "error") -> None:
        _finish(me, work, ToolResult(call.id, call.name, text, "refused" if kind == "refused" else "error"), 0.0)

    arguments = me.toolbox.check(call)
    if isinstance(arguments, Problem):
        refuse(arguments.text)
        return None
    if (refusal := me.alerts.precheck(call.name, arguments)) is not None:
        refuse(refusal.why, "refused")
        return None
    tool = me.toolbox.get(call.name)
    assert tool is not None
    return Ready(call, tool, arguments)


async def _perform(me: Agent, work: Round, entry: Ready) -> None:
    call, tool = entry.call, entry.tool
    if call.id in work.started:
        entry = _as_begun(me, work, entry)
        if (settled := await _recovered(me, entry)) is not None:
            await _review(me, work, entry, settled, 0.0)
            return
    allowed = await _permit(me, work, entry)
    if isinstance(allowed, ToolResult):
        _finish(me, work, allowed, 0.0)
        return
    ready, subject = allowed
    me.run.append(ToolStarted(actor=me.path, call_id=call.id, name=call.name))
    if tool.effects != "none" and tool.begins_on_record:
        await me.run.journal.barrier()
    started = trio.current_time()
    limit = math.inf if tool.delegates or tool.timeout is None else tool.timeout
    result: ToolResult | None = None
    with nullcontext() if limit == math.inf else trio.move_on_after(limit):
        context = tool_context(me, call, subject) if tool.takes_context else None
        result = await me.toolbox.run(call, context, _hooks(me, tool), ready.arguments)
    await _review(me, work, ready, result or _overdue(call, tool, limit), trio.current_time() - started)


async def _review(me: Agent, work: Round, entry: Ready, result: ToolResult, seconds: float) -> None:
    """End a call that has run, once its hooks have seen the result. A cancelled call may have ended it."""
    result = with_context(result, entry.context)
    if result.kind != "unknown" and me.user_hooks.reviews(result.name):
        seen = False
        try:
            result = await me.user_hooks.after_tool(entry.call, entry.arguments, result, seconds)
            seen = True
        finally:
            if not seen and not me.run.suspending:
                _finish(me, work, me.user_hooks.cut_off(result), seconds)
    result = _fitting(me, work, _veiled(me, result))
    await me.run.results.save(result.call_id)
    _finish(me, work, result, seconds)


def _hooks(me: Agent, tool: Tool) -> RunHooks:
    """What the toolbox asks and tells of a call: a further attempt counts as one more call of a tool."""
    if not tool.retries:
        return me.hooks
    return attrs.evolve(me.hooks, may_retry=lambda: me.run.gate.ledger.tool_calls(me.path) is None)


def _veiled(me: Agent, result: ToolResult) -> ToolResult:
    """The result without secrets, whoever wrote it: a tool, a hook, a human."""
    text = me.run.veil.text(result.content)
    return result if text == result.content else attrs.evolve(result, content=text)


def _overdue(call: ToolCall, tool: Tool, limit: float) -> ToolResult:
    doubt = "" if tool.effects == "none" else "; it may have taken effect: inspect before repeating"
    text = f"{call.name} did not end within {limit:g} s and was stopped{doubt}"
    return ToolResult(call.id, call.name, text, "error" if tool.effects == "none" else "unknown")


async def _permit(me: Agent, work: Round, entry: Ready) -> tuple[Ready, Subject] | ToolResult:
    """The call as it may run (hooks or a human may have changed it) and what it is about, or why it may not."""
    call, tool = entry.call, entry.tool
    subject = await me.permits.subject(tool, entry.arguments, me.workspace)
    decision = me.permits.judge(subject)
    if call.id not in work.counted and (over := me.run.gate.ledger.tool_calls(me.path)) is not None:
        me.run.append(BudgetRefused(actor=me.path, limit=over.limit, scope=over.scope, message=over.message))
        me.stop_after_round(Stop(over.limit, over.message))
        return ToolResult(call.id, call.name, f"refused: {over.message}", "refused")
    work.counted.add(call.id)
    if decision.verdict != "deny":
        entry, subject, decision = await _hooked(me, work, entry, subject, decision)
    _record(me, call, decision)
    if decision.verdict == "ask" and not me.run.approvals.was_asked(me.path, call.id):
        why = f"{decision.rule} ({decision.by})"
        said = await me.user_hooks.approval(call, entry.arguments, why, work.hooked.get(call.id, ()))
        if (settled := ruled(decision, said)) is not decision:
            decision = settled
            _record(me, call, decision)
    # What a human has decided on this call counts, whatever has come to be allowed since.
    if decision.verdict == "allow" and not me.run.approvals.was_decided(me.path, call.id):
        return entry, subject
    if decision.verdict == "deny":
        return ToolResult(call.id, call.name, _denial(decision), "refused")
    preview = "" if me.run.approvals.was_asked(me.path, call.id) else await _preview(me, entry, subject)
    if isinstance(preview, ToolResult):
        return preview
    why = f"{decision.rule} ({decision.by})"
    # Files that govern agents ask every time, so nothing is promised for later.
    always = () if decision.by == "protected" or decision.by.startswith("hook: ") else grants_of(subject)
    asked = await me.run.approvals.ask(me.path, call.id, call.name, entry.arguments, why, preview, always)
    answer = await _decided(me, asked)
    if answer.decision != "allow":
        return ToolResult(call.id, call.name, f"refused by {answer.by}: {answer.why or 'no reason given'}", "refused")
    await _grant(me, answer.scope, asked.request.always)
    if answer.arguments is None:
        return entry, subject
    # A human may change what is done, and still nothing that is denied.
    if isinstance(problem := me.toolbox.check(attrs.evolve(call, arguments=answer.arguments)), Problem):
        return ToolResult(call.id, call.name, f"as {answer.by} changed it: {problem.text}", "error")
    subject = await me.permits.subject(tool, answer.arguments, me.workspace)
    edited = me.permits.judge(subject)
    if edited.verdict == "deny":
        text = f"as {answer.by} changed it, the call is denied by rule {edited.rule} ({edited.by})"
        return ToolResult(call.id, call.name, text, "refused")
    return attrs.evolve(entry, arguments=answer.arguments), subject


def _record(me: Agent, call: ToolCall, decision: Decision) -> None:
    me.run.append(
        PermissionDecided(actor=me.path, call_id=call.id, verdict=decision.verdict, rule=decision.rule, by=decision.by)
    )


def _denial(decision: Decision) -> str:
    if decision.by == "workspace":  # no rule, but where the path leads
        return f"refused: {decision.rule}"
    if decision.by.startswith("hook: "):
        return f"refused by the {decision.by}: {decision.rule}"
    return f"denied by rule {decision.rule} ({decision.by})"


async def _hooked(
    me: Agent, work: Round, entry: Ready, subject: Subject, decision: Decision
) -> tuple[Ready, Subject, Decision]:
    """The call, and the decision on it, as its hooks leave them: other arguments are decided on as if new."""
    call = entry.call

    def fit(arguments: JsonObject) -> JsonObject | str:
        fitted = me.toolbox.check(attrs.evolve(call, arguments=arguments))
        return fitted.text if isinstance(fitted, Problem) else fitted

    outcome = await me.user_hooks.before_tool(
        call, entry.arguments, work.hooked.get(call.id, ()), fit, again=call.id in work.started
    )
    if outcome.contexts:
        entry = attrs.evolve(entry, context=outcome.contexts)
    if outcome.arguments is not None:
        entry = attrs.evolve(entry, arguments=outcome.arguments)
        subject = await me.permits.subject(entry.tool, entry.arguments, me.workspace)
        decision = me.permits.judge(subject)
    return entry, subject, ruled(decision, outcome, yes=me.permits.yes)


async def _preview(me: Agent, entry: Ready, subject: Subject) -> str | ToolResult:
    """What a human is shown of a call, or its result where it cannot succeed: then nobody needs to be asked.

    The reason may quote what the call would read, so it goes to the model only where it may read that unasked.
    """
    call = entry.call
    ctx = tool_context(me, call, subject)
    found = await me.toolbox.preview(call, entry.arguments, ctx)
    if isinstance(found, str):
        return "\n".join(filter(None, (found, me.permits.explained(subject))))
    uses = subject.uses if isinstance(subject, PathSubject) else ()
    if all(me.permits.readable(use.path) for use in uses):
        return ToolResult(call.id, call.name, found.text, "error")
    return f"As things stand it would fail: {found.text}"


async def _decided(me: Agent, asked: Pending) -> ApprovalDecided:
    """A human's decision; with a time-out in the settings, silence is a no."""
    limit = me.run.settings.humans.timeout
    with me.activity.idle(asked.is_decided), trio.move_on_after(math.inf if limit is None else limit):
        return await asked.answer()
    if not asked.is_decided():
        why = f"nobody decided within {limit:g} s"
        await me.run.approvals.decide(asked.request.id, "deny", "time-out", why=why)
    return await asked.answer()


async def _grant(me: Agent, scope: str, grants: tuple[str, ...]) -> None:
    """Allow more than this call. A cancelled call may have kept it."""
    match scope:
        case "run":
            me.run.grants.add(grants)
        case "workspace":
            try:
                await trio.to_thread.run_sync(me.run.grants.keep, grants)
            except OSError as error:
                me.run.append(Warned(text=f"allowed for this run only, it could not be kept: {error.strerror}"))
        case _:
            pass


def _as_begun(me: Agent, work: Round, entry: Ready) -> Ready:
    """A call as it was begun before the process died: hooks or a human may have changed it."""
    outcome = recall(work.hooked.get(entry.call.id, ()), "before_tool")
    changed = changed_before(me, work, entry.call)
    return attrs.evolve(entry, arguments=entry.arguments if changed is None else changed, context=outcome.contexts)


async def _recovered(me: Agent, entry: Ready) -> ToolResult | None:
    """The end of a call that was started before the process died; None means: run it (again)."""
    call, tool = entry.call, entry.tool
    if tool.effects != "once":
        return None
    match await me.toolbox.outcome(call, entry.arguments):
        case False:
            return None
        case str() as outcome:
            return ToolResult(call.id, call.name, outcome)
        case _:
            return await _confirmed(me, entry)


async def _confirmed(me: Agent, entry: Ready) -> ToolResult | None:
    """What a human says of a call that may have taken effect, where one is to be asked; None means: run it again."""
    call, approvals = entry.call, me.run.approvals
    unknown = ToolResult(call.id, call.name, f"{UNKNOWN}{asked_within(me, call.id)}", "unknown")
    if not (me.run.settings.confirm_unknown or approvals.knows(me.path, call.id, "unclear")):
        return unknown
    asked = await approvals.ask(me.path, call.id, call.name, entry.arguments, UNCLEAR, about="unclear")
    with me.activity.idle(asked.is_decided):
        answer = await asked.answer()
    if answer.decision == "allow":
        return None
    return (
        attrs.evolve(unknown, content=f"{unknown.content}\n{answer.by} says: {answer.why}") if answer.why else unknown
    )


def _fitting(me: Agent, work: Round, result: ToolResult) -> ToolResult:
    """The result within its share of what the round may add: what others left of theirs is there for it."""
    waiting = max(1, len(work.calls) - len(work.results))
    share = max(LEAST_BYTES, (work.cap * 2 - NOTE_BYTES - work.used) // waiting - FRAME_BYTES)
    if byte_length(result.content) <= share:
        return result
    # Cut from the whole text, not from what is left of it, so that what the marker says of it stays true.
    whole = me.run.results.get(result.call_id) or result.content
    content = fitting(whole, share, lambda text: me.run.results.keep(result.call_id, text))
    return result if content is result.content else attrs.evolve(result, content=content)


def _weight(result: ToolResult) -> int:
    return byte_length(result.content) + FRAME_BYTES


def _finish(me: Agent, work: Round, result: ToolResult, seconds: float) -> None:
    result = _fitting(me, work, _veiled(me, result))
    work.results[result.call_id] = result
    work.used += _weight(result)
    work.seconds[result.call_id] = seconds
    me.run.approvals.withdraw(me.path, result.call_id)
    me.run.questions.withdraw(me.path, result.call_id)
    event = ToolFinished(
        actor=me.path,
        call_id=result.call_id,
        name=result.name,
        result=result.content,
        is_error=result.is_error,
        seconds=round(seconds, 6),
        kind=result.kind,
        data=work.data.get(result.call_id),
        images=images_to_json(result.images),
        full=me.run.results.name_of(result.call_id),
    )
    me.trail.finished(event, next((call.arguments for call in work.calls if call.id == result.call_id), None))
    me.run.append(event)
