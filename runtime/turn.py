"""One model call of one actor: reserve, make it durable, stream, settle; try again where that can help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from .events import (
    BudgetOverrun,
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    Warned,
)
from .limits.budget import Ask, Granted, Purpose, Refused
from .messages import AssistantMessage, Opaque, Part, Reasoning, Text, ToolCall, Usage, assign_call_ids
from .model import Delta, ModelRequest, ProviderError, Reply
from .providers.retry import GiveUp, Retry, decide
from .record import calls_to_json, parts_to_json, usage_to_json
from .stop import Stop
from .switching import take_model

if TYPE_CHECKING:
    from .agent import Agent
    from .models import ModelRef

BYTES_PER_TOKEN = 2
"""As the estimate counts what the provider has not seen yet."""


class StreamCut(Exception):
    """The loop guard cut a stream that repeats itself."""


@attrs.define(eq=False)
class Shown:
    """What of the running attempt has been streamed so far."""

    text: list[str] = attrs.Factory(list[str])
    size: int = 0
    any: bool = False


@attrs.frozen
class Aside:
    """A call beside the conversation, such as a summary: not shown, no step, and its reply enters nothing."""

    model: ModelRef
    request: ModelRequest
    ask: Ask


async def call_model(me: Agent, purpose: Purpose = "turn", aside: Aside | None = None) -> AssistantMessage | Stop:
    """One reply, or why there can be none. Raises ProviderError when no attempt helped, JournalError.

    A cancelled call settles its reservation by what was streamed (estimated) and leaves the history as it was.
    """
    run = me.run
    attempt = 0
    while True:
        if aside is None:
            take_model(me)
        model = me.model if aside is None else aside.model
        request = me.request(purpose, attempt) if aside is None else attrs.evolve(aside.request, attempt=attempt)
        grant = await run.gate.reserve(me.path, me.ask(request, purpose) if aside is None else aside.ask)
        if isinstance(grant, Refused):
            if aside is None:
                run.append(BudgetRefused(actor=me.path, limit=grant.limit, scope=grant.scope, message=grant.message))
            return Stop(grant.limit, grant.message)
        if aside is None:
            me.result_cap, me.room = grant.result_cap, grant.result_cap * BYTES_PER_TOKEN
        if grant.output_cap != request.max_output_tokens:
            request = attrs.evolve(request, max_output_tokens=grant.output_cap)
        run.append(
            BudgetReserved(
                actor=me.path,
                id=grant.id,
                input=grant.input_tokens,
                output_cap=grant.output_cap,
                cost_usd=grant.cost_usd,
                purpose=purpose,
                result_cap=grant.result_cap,
            )
        )
        run.append(
            ModelRequested(
                actor=me.path,
                turn=me.turn,
                model=model.full_name,
                purpose=purpose,
                attempt=attempt,
                output_cap=grant.output_cap,
                estimate=grant.input_tokens,
                elapsed=run.deadlines.elapsed(me.path),
            )
        )
        try:
            await run.journal.barrier()
        except BaseException:
            settle(me, model, grant, Usage(), None, replied=False)  # nothing has been sent
            raise
        try:
            return await _attempt(me, model, request, grant, purpose)
        except ProviderError as error:
            verdict = decide(error, attempt, run.chance.random(), run.deadlines.left(me.path))
            match verdict:
                case Retry(wait=wait):
                    run.append(
                        ModelRetried(
                            actor=me.path,
                            turn=me.turn,
                            kind=error.kind,
                            wait=wait,
                            message=error.message,
                            attempt=attempt,
                            limit=verdict.limit,
                        )
                    )
                    await trio.sleep(wait)
                    attempt += 1
                case GiveUp(why=why):
                    if error.retryable and error.kind != "connect":
                        error.message = f"{error.message} (given up: {why})"
                    run.append(
                        ModelFailed(
                            actor=me.path,
                            turn=me.turn,
                            kind=error.kind,
                            message=error.message,
                            status=error.status,
                        )
                    )
                    raise


async def _attempt(
    me: Agent, model: ModelRef, request: ModelRequest, grant: Granted, purpose: Purpose
) -> AssistantMessage | Stop:
    run = me.run
    shown = Shown()
    chant = me.alerts.chant_guard()

    def emit(deltas: Sequence[Delta]) -> None:
        shown.any = True
        if purpose != "summary":
            run.stream.publish_deltas(me.path, deltas)
        for delta in deltas:
            shown.size += len(delta.text)
            if delta.kind == "text":
                shown.text.append(delta.text)
                if chant is not None and (verdict := chant.feed(delta.text)) is not None:
                    raise StreamCut(verdict.why)

    started = trio.current_time()
    try:
        reply = await model.provider.complete(request, emit)
    except StreamCut as cut:
        settle(me, model, grant, _guess(grant, shown), None, replied=True)
        run.append(ModelWithdrawn(actor=me.path, turn=me.turn, why=str(cut)))
        if purpose != "summary" and not me.standing.said:
            me.cut_text = "".join(shown.text)
        return Stop("loop", str(cut))
    except ProviderError as error:
        partial = error.partial
        usage = partial.usage if partial is not None else None
        if usage is None and error.kind in _NEVER_BILLED and not shown.any:
            usage = Usage()
        else:
            usage = used(grant, shown, partial, whole=False)
        settle(me, model, grant, usage, partial.cost_usd if partial is not None else None, replied=False)
        if shown.any:
            run.append(ModelWithdrawn(actor=me.path, turn=me.turn, why=error.message))
        _keep_words(me, purpose, shown)
        raise
    except BaseException:
        settle(me, model, grant, _guess(grant, shown), None, replied=False)
        _keep_words(me, purpose, shown)
        raise
    return _accept(me, model, reply, grant, purpose, trio.current_time() - started, shown)


def _keep_words(me: Agent, purpose: Purpose, shown: Shown) -> None:
    """What was said before it broke off is the actor's partial answer, until a whole reply comes."""
    if purpose != "summary" and len(text := "".join(shown.text)) > len(me.cut_text):
        me.cut_text = text


_NEVER_BILLED = frozenset({"connect", "auth", "rate_limit", "overloaded", "context_length", "http"})


def _accept(
    me: Agent, model: ModelRef, reply: Reply, grant: Granted, purpose: Purpose, seconds: float, shown: Shown
) -> AssistantMessage:
    usage = used(grant, shown, reply, whole=True)
    cost = settle(me, model, grant, usage, reply.cost_usd, replied=True)
    if reply.left_out and not me.left_out:
        me.left_out = reply.left_out
        text = f"{me.path}: {reply.left_out} opaque parts of earlier replies do not go to {me.model.full_name}"
        me.run.append(Warned(actor=me.path, text=text))
    counted = None if usage.estimated else usage  # a guess is no part of the message, here or on replay
    message = assign_call_ids(
        AssistantMessage(runnable(reply, purpose), reply.finish, counted, model.full_name, reply.wire),
        f"a{me.number}t{me.turn}",
    )
    if purpose == "wrap_up":
        message = attrs.evolve(message, finish="stop")
    me.run.append(
        ModelFinished(
            actor=me.path,
            turn=me.turn,
            text=message.text,
            reasoning=message.reasoning,
            tool_calls=calls_to_json(message),
            finish=message.finish,
            usage=usage_to_json(usage),
            cost_usd=cost,
            seconds=round(seconds, 6),
            model=message.model,
            wire=message.wire,
            purpose=purpose,
            parts=parts_to_json(message),
        )
    )
    if purpose != "summary":
        me.turn += 1
    return message


def runnable(reply: Reply, purpose: Purpose) -> tuple[Part, ...]:
    """The parts of a reply that may enter the history: no call in a last turn, or where the provider took the reply
    back, and none that the output limit may have cut."""
    if purpose in ("wrap_up", "summary") or reply.finish in ("content_filter", "refusal", "context_window"):
        return tuple(part for part in reply.parts if not isinstance(part, ToolCall))
    if reply.finish != "length":
        return reply.parts
    last = max((at for at, part in enumerate(reply.parts) if isinstance(part, ToolCall)), default=-1)
    return tuple(
        attrs.evolve(part, arguments=None, arguments_error=CUT_CALL)
        # No arguments at all read as none wanted, but from a reply that was cut nobody can tell.
        if isinstance(part, ToolCall) and (part.arguments is None or (at == last and not part.raw.strip()))
        else part
        for at, part in enumerate(reply.parts)
    )


CUT_CALL = "the reply reached its output limit before the call was complete; ask for less in one call"


def settle(
    me: Agent, model: ModelRef, grant: Granted, usage: Usage, billed: float | None, *, replied: bool
) -> float | None:
    run = me.run
    if billed is None and (price := model.price_for(usage.input)) is not None:
        billed = price.cost(usage)
    settled = run.gate.settle(grant.id, usage, billed, replied=replied)
    run.append(
        BudgetSettled(
            actor=me.path, id=grant.id, usage=usage_to_json(usage), cost_usd=settled.cost_usd, replied=replied
        )
    )
    for overrun in settled.overruns:
        run.append(BudgetOverrun(actor=me.path, limit=overrun.limit, scope=overrun.scope, by=overrun.by))
    return settled.cost_usd


def used(grant: Granted, shown: Shown, reply: Reply | None, *, whole: bool) -> Usage:
    """What a call spent: as reported, and guessed where nothing was, or where the stream broke before the last word."""
    if reply is not None:  # not every reply is streamed
        shown.size = max(shown.size, sum(map(_length, reply.parts)))
    guess = _guess(grant, shown)
    reported = reply.usage if reply is not None else None
    if reported is not None and not reported.total and not grant.input_tokens:
        return reported  # the provider counts nothing, neither before nor after
    if reported is None or not reported.total:
        return guess
    output = reported.output if whole and reported.output else max(reported.output, guess.output)
    given = reported.input or guess.input
    if (given, output) == (reported.input, reported.output):
        return reported
    return attrs.evolve(reported, input=given, output=output, estimated=True)


def _length(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return len(part.text)
        case ToolCall():
            return len(part.name) + len(part.raw)
        case Opaque():
            return 0


def _guess(grant: Granted, shown: Shown) -> Usage:
    """What a call without a reported usage spent, by the reservation's own measure."""
    return Usage(input=grant.input_tokens, output=min(grant.output_cap, (shown.size + 1) // 2), estimated=True)
