"""The loop guard at work in one actor: what it says becomes an event, a note to the model, or the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs
import trio

from .events import LoopBlocked, LoopNudged, LoopStopped
from .history import History
from .journal.state import PastNote, PastStep
from .limits.loops import (
    Block,
    CallSeen,
    ChantGuard,
    Event,
    Flags,
    Guard,
    GuardSettings,
    Nudge,
    Ok,
    Refusal,
    StepSeen,
    note,
)
from .limits.loops import Stop as GuardStop
from .messages import AssistantMessage, JsonObject, ToolCall, UserMessage
from .round import Round
from .run import Run
from .stop import Stop
from .tools import ToolBox

Alert: TypeAlias = LoopNudged | LoopBlocked | LoopStopped


class Alerts:
    """One actor's guard; with the guard off, everything is all right."""

    def __init__(self, run: Run, path: str, settings: GuardSettings, toolbox: ToolBox) -> None:
        self._run = run
        self._path = path
        self._guard = None if settings.off else Guard(settings)
        self.toolbox = toolbox

    def chant_guard(self) -> ChantGuard | None:
        """A fresh guard over one stream."""
        return ChantGuard() if self._guard is not None else None

    def precheck(self, name: str, arguments: JsonObject) -> Refusal | None:
        return self._guard.precheck(name, arguments) if self._guard is not None else None

    def tell(self, event: Event) -> None:
        """Something happened between two replies."""
        if self._guard is not None:
            self._guard.note(event)

    def observe(self, reply: AssistantMessage, work: Round | None, history: History) -> Stop | None:
        """Judge a reply with the results of its calls. A note for the model goes into the last result, or a message."""
        if self._guard is None:
            return None
        calls = () if work is None else tuple(self._seen(call, work) for call in work.calls)
        verdict = self._guard.observe(StepSeen(text=reply.text, calls=calls, at=trio.current_time()))
        match verdict:
            case Ok():
                return None
            case GuardStop(why=why):
                self._run.append(self._alert(LoopStopped, verdict, {}))
                return Stop("loop", why)
            case Nudge():
                self._run.append(self._alert(LoopNudged, verdict, _advise(note(verdict), work, history)))
            case Block():
                self._run.append(self._alert(LoopBlocked, verdict, _advise(note(verdict), work, history)))
        return None

    def remember(self, past: Sequence[PastStep | PastNote]) -> None:
        """Show the guard again what it saw in an earlier process, so that it goes on where it stood."""
        guard = self._guard
        if guard is None:
            return
        begin = next((each.at for each in past if isinstance(each, PastStep)), 0.0)
        for entry in past:
            match entry:
                case PastNote(event=event):
                    guard.note(event)
                case PastStep(text=text, calls=calls, at=at):
                    seen = (
                        CallSeen(
                            call.name, call.arguments, call.result, call.is_error, call.seconds, self._flags(call.name)
                        )
                        for call in calls
                    )
                    guard.observe(StepSeen(text=text, calls=tuple(seen), at=at - begin))
        guard.note("resume")

    def _seen(self, call: ToolCall, work: Round) -> CallSeen:
        result = work.results[call.id]
        return CallSeen(
            call.name,
            call.arguments if call.arguments is not None else {"raw": call.raw},
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

    def _alert(self, kind: type[Alert], verdict: Nudge | Block | GuardStop, advice: dict[str, str]) -> Alert:
        seen = verdict.evidence
        return kind(actor=self._path, why=verdict.why, calls=seen.calls, kind=seen.kind, times=seen.times, **advice)


def _advise(text: str, work: Round | None, history: History) -> dict[str, str]:
    if work is None:
        history.add(UserMessage(text, "note"))
        return {"note": text}
    last = work.results[work.calls[-1].id]
    work.results[last.call_id] = attrs.evolve(last, content=f"{last.content}\n\n{text}")
    return {"call_id": last.call_id, "note": text}
