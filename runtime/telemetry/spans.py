"""What a run's events say as spans of the GenAI conventions: agents, model calls and tool calls; pure.

No text of a task, prompt, reply, argument or result is in them. Ids follow from the run and the place alone, so that a
run which goes on in another process goes on in the same trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from runtime.events import (
    ActorFinished,
    ActorStarted,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    Record,
    RunStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)

Value: TypeAlias = str | bool | int | float | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Value]

_PROVIDERS = {
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}


@attrs.frozen(kw_only=True)
class Span:
    """One finished piece of work; times in seconds since the epoch, `error` its class, "" where all went well.

    `client` is true of calls that go to another system. `first` is when a model's first piece came, in seconds after
    the request.
    """

    name: str
    trace: bytes
    id: bytes
    parent: bytes = b""
    start: float
    end: float
    client: bool = False
    error: str = ""
    message: str = ""
    attributes: Attributes
    first: float | None = None

    @property
    def operation(self) -> str:
        return str(self.attributes["gen_ai.operation.name"])

    @property
    def seconds(self) -> float:
        return max(0.0, self.end - self.start)


@attrs.define
class _Actor:
    started: ActorStarted
    at: float


@attrs.define
class _Call:
    at: float
    seq: int
    requested: ModelRequested
    first: float | None = None


class Spans:
    """The events of one run go in, in order from the first; spans come out as what they stand for ends."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._trace = b""
        self._actors: dict[str, _Actor] = {}
        self._model_calls: dict[str, _Call] = {}
        self._tool_calls: dict[tuple[str, str], float] = {}

    def take(self, record: Record) -> Span | None:
        """The span that ends with this event, if one does."""
        event, at = record.event, record.at
        match event:
            case RunStarted():
                self._trace = _digest(self._run, f"{at}")[:16]
            case ActorStarted():
                self._actors[event.actor] = _Actor(event, at)
            case ActorFinished():
                return self._agent(event, at)
            case ModelRequested():
                self._model_calls[event.actor] = _Call(at, record.seq, event)
            case ModelDelta() if (call := self._model_calls.get(event.actor)) is not None and call.first is None:
                call.first = max(0.0, at - call.at)
            case ModelFinished() | ModelRetried() | ModelFailed() | ModelWithdrawn():
                return self._model_call(event, at)
            case ToolRequested() | ToolStarted():
                self._tool_calls[event.actor, event.call_id] = at
            case ToolFinished():
                return self._tool_call(event, at)
            case _:
                pass
        return None

    def _agent(self, event: ActorFinished, at: float) -> Span | None:
        actor = self._actors.pop(event.actor, None)
        if actor is None:
            return None
        started, report = actor.started, event.report
        status = str(report.get("status", "failed"))
        error = {"failed": "failed", "cancelled": "cancelled"}.get(status, "")
        more: dict[str, Value] = {"elenco.status": status, "elenco.steps": int(report.get("steps", 0))}
        if report.get("reason"):
            more["elenco.reason"] = str(report["reason"])
        if report.get("cost_usd") is not None:
            more["elenco.cost_usd"] = float(report["cost_usd"])
        return self._span(
            started.actor,
            f"invoke_agent {started.agent}",
            "invoke_agent",
            (self._actor_id(event.actor), self._parent_of(started)),
            (actor.at, at),
            error=error,
            message=status if error else "",
            attributes={
                "gen_ai.agent.name": started.agent,
                **_model(started.model),
                **_usage(report.get("usage", {})),
                **more,
            },
        )

    def _model_call(self, event: ModelFinished | ModelRetried | ModelFailed | ModelWithdrawn, at: float) -> Span | None:
        call = self._model_calls.pop(event.actor, None)
        if call is None:
            return None
        requested = call.requested
        more: dict[str, Value] = {
            "gen_ai.request.stream": True,
            "gen_ai.request.max_tokens": requested.output_cap,
            "elenco.purpose": requested.purpose,
            "elenco.turn": requested.turn,
            "elenco.attempt": requested.attempt,
        }
        if call.first is not None:
            more["gen_ai.response.time_to_first_chunk"] = call.first
        error = message = ""
        match event:
            case ModelFinished():
                more |= {"gen_ai.response.finish_reasons": (event.finish,), **_usage(event.usage)}
                if event.model:
                    more["gen_ai.response.model"] = event.model.partition("/")[2] or event.model
                if event.cost_usd is not None:
                    more["elenco.cost_usd"] = event.cost_usd
            case ModelRetried() | ModelFailed():
                error = message = event.kind
            case ModelWithdrawn():
                error = message = "withdrawn"
        model = _model(requested.model)
        return self._span(
            event.actor,
            f"chat {model['gen_ai.request.model']}",
            "chat",
            (self._id("model", str(call.seq)), self._actor_id(event.actor)),
            (call.at, at),
            client=True,
            error=error,
            message=message,
            attributes={**model, **more},
            first=call.first,
        )

    def _tool_call(self, event: ToolFinished, at: float) -> Span:
        start = self._tool_calls.pop((event.actor, event.call_id), at)
        return self._span(
            event.actor,
            f"execute_tool {event.name}",
            "execute_tool",
            (self._tool_id(event.actor, event.call_id), self._actor_id(event.actor)),
            (start, at),
            error=event.kind if event.is_error else "",
            message=event.kind if event.is_error else "",
            attributes={
                "gen_ai.tool.name": event.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": event.call_id,
            },
        )

    def _span(
        self,
        actor: str,
        name: str,
        operation: str,
        ids: tuple[bytes, bytes],
        times: tuple[float, float],
        *,
        attributes: Attributes,
        client: bool = False,
        error: str = "",
        message: str = "",
        first: float | None = None,
    ) -> Span:
        common: dict[str, Value] = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._run,
            "gen_ai.agent.id": f"{self._run}/{actor}",
        }
        if error:
            common["error.type"] = error
        return Span(
            name=name,
            trace=self._trace,
            id=ids[0],
            parent=ids[1],
            start=times[0],
            end=times[1],
            client=client,
            error=error,
            message=message,
            attributes={**common, **attributes},
            first=first,
        )

    def _parent_of(self, started: ActorStarted) -> bytes:
        if started.parent is None:
            return b""
        if started.call_id is None:
            return self._actor_id(started.parent)
        return self._tool_id(started.parent, started.call_id)

    def _actor_id(self, path: str) -> bytes:
        return self._id("actor", path)

    def _tool_id(self, actor: str, call_id: str) -> bytes:
        return self._id("tool", actor, call_id)

    def _id(self, *words: str) -> bytes:
        return _digest(self._trace.hex(), *words)[:8]


def _model(full_name: str) -> dict[str, Value]:
    provider, _, name = full_name.partition("/")
    if not name:
        return {"gen_ai.provider.name": "_OTHER", "gen_ai.request.model": full_name}
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": name}


def _usage(usage: Mapping[str, Any]) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.usage.input_tokens": int(usage.get("input", 0)),
        "gen_ai.usage.output_tokens": int(usage.get("output", 0)),
    }
    for ours, theirs in (
        ("cached_input", "gen_ai.usage.cache_read.input_tokens"),
        ("cache_write", "gen_ai.usage.cache_creation.input_tokens"),
        ("reasoning", "gen_ai.usage.reasoning.output_tokens"),
    ):
        if usage.get(ours):
            found[theirs] = int(usage[ours])
    if usage.get("estimated"):
        found["elenco.usage.estimated"] = True
    return found


def _digest(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()
