"""Every fact of a run, as frozen values: what the journal keeps and the log stream shows.

Kept events get a `seq`, rising by one within a run, when the journal takes them. Live-only events (deltas, tool
output) are never stored. Unknown types from a newer version decode to `Unknown`, are kept and skipped.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import attrs

from .messages import JsonObject


@attrs.frozen(kw_only=True)
class Event:
    """The root of all events; `actor` is a path such as coordinator/researcher-1, empty for the run itself."""

    type: ClassVar[str] = ""
    kept: ClassVar[bool] = True
    actor: str = ""


# --- the run -----------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class RunStarted(Event):
    type: ClassVar[str] = "run.started"
    task: str
    agent: str
    model: str
    limits: JsonObject
    workspace: str = ""
    options: JsonObject = attrs.field(factory=dict[str, Any])
    continues: str | None = None


@attrs.frozen(kw_only=True)
class RunWaiting(Event):
    """Every live actor has ended or waits for a human; `on` lists the ids of approvals and questions."""

    type: ClassVar[str] = "run.waiting"
    on: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RunResumed(Event):
    type: ClassVar[str] = "run.resumed"
    pid: int = 0
    why: str = ""


@attrs.frozen(kw_only=True)
class LimitsChanged(Event):
    type: ClassVar[str] = "limits.changed"
    limits: JsonObject
    by: str = ""


@attrs.frozen(kw_only=True)
class RunForked(Event):
    """What stands before is a copy of the run `of`, up to its event `at`."""

    type: ClassVar[str] = "run.forked"
    of: str
    at: int


@attrs.frozen(kw_only=True)
class RunImported(Event):
    """What stands before was read from a file; `of` is what the run was called there."""

    type: ClassVar[str] = "run.imported"
    of: str


@attrs.frozen(kw_only=True)
class RunFinished(Event):
    type: ClassVar[str] = "run.finished"
    report: JsonObject


# --- actors ------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ActorStarted(Event):
    """`number` counts actors in a run from 0; `prompt` and `tools` are what resume uses again.

    `attached` is what its parent gave it beside the task (runtime.handover turns both into its first message).
    A root that continues an earlier run begins with that run's `history`, after its `turn` replies, and finds long
    results of then under `results`; so many messages of it were so many tokens (`measured`). `window` is the
    model's, in tokens, where it is known.
    """

    type: ClassVar[str] = "actor.started"
    agent: str
    number: int
    parent: str | None
    task: str
    model: str
    limits: JsonObject
    prompt: tuple[str, ...]
    tools: tuple[JsonObject, ...]
    call_id: str | None = None
    definition: str = ""
    attached: tuple[JsonObject, ...] = ()
    history: tuple[JsonObject, ...] = ()
    turn: int = 0
    results: JsonObject = attrs.field(factory=dict[str, Any])
    measured: tuple[int, int] | None = None
    window: int | None = None


@attrs.frozen(kw_only=True)
class ActorHeld(Event):
    type: ClassVar[str] = "actor.held"
    by: str = ""


@attrs.frozen(kw_only=True)
class ActorContinued(Event):
    type: ClassVar[str] = "actor.continued"
    by: str = ""


@attrs.frozen(kw_only=True)
class ActorRestarted(Event):
    type: ClassVar[str] = "actor.restarted"
    why: str


@attrs.frozen(kw_only=True)
class ActorFinished(Event):
    """`elapsed` is what its clock showed, in seconds; 0 in records that do not tell."""

    type: ClassVar[str] = "actor.finished"
    report: JsonObject
    elapsed: float = 0.0


@attrs.frozen(kw_only=True)
class ModelChanged(Event):
    """From its next request on the actor's model is `model`, not `before`; without an actor: that of the run, for those
    whose files name none. `window` is the model's, in tokens."""

    type: ClassVar[str] = "model.changed"
    model: str
    before: str = ""
    by: str = ""
    window: int | None = None


# --- model calls -------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ModelRequested(Event):
    """`turn` counts this actor's replies from 0; `purpose` is turn, wrap_up, summary or repair.

    `elapsed` is what the actor's own clock showed, in seconds: a resumed run goes on from there.
    """

    type: ClassVar[str] = "model.requested"
    turn: int
    model: str
    purpose: str = "turn"
    attempt: int = 0
    output_cap: int = 0
    estimate: int = 0
    elapsed: float = 0.0


@attrs.frozen(kw_only=True)
class ModelDelta(Event):
    """`index` tells parallel calls apart; `reset` means: forget this turn's pieces, this is all of it so far."""

    type: ClassVar[str] = "model.delta"
    kept: ClassVar[bool] = False
    kind: str
    text: str
    index: int = 0
    reset: bool = False


@attrs.frozen(kw_only=True)
class ModelFinished(Event):
    """`parts` is the reply in full (runtime.record turns it back into a message); the rest is for readers."""

    type: ClassVar[str] = "model.finished"
    turn: int
    text: str
    reasoning: str
    tool_calls: tuple[JsonObject, ...]
    finish: str
    usage: JsonObject
    cost_usd: float | None
    seconds: float
    model: str = ""
    wire: str = ""
    purpose: str = "turn"
    parts: tuple[JsonObject, ...] | None = None


@attrs.frozen(kw_only=True)
class ModelRetried(Event):
    """An attempt failed and another follows after `wait` seconds; what the failed one spent is settled."""

    type: ClassVar[str] = "model.retried"
    turn: int
    kind: str
    wait: float
    message: str = ""
    attempt: int = 0
    limit: int = 0


@attrs.frozen(kw_only=True)
class ModelFailed(Event):
    """An attempt failed for good."""

    type: ClassVar[str] = "model.failed"
    turn: int
    kind: str
    message: str
    status: int | None = None


@attrs.frozen(kw_only=True)
class ModelWithdrawn(Event):
    """What was shown of this turn does not count: the attempt failed, was cut off, or its answer did not hold."""

    type: ClassVar[str] = "model.withdrawn"
    turn: int
    why: str


# --- tool calls --------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ToolRequested(Event):
    type: ClassVar[str] = "tool.requested"
    call_id: str
    name: str
    arguments: JsonObject | None
    arguments_error: str | None = None


@attrs.frozen(kw_only=True)
class PermissionDecided(Event):
    """`verdict` is allow, ask or deny; `rule` the rule that decided, `by` whose it is."""

    type: ClassVar[str] = "permission.decided"
    call_id: str
    verdict: str
    rule: str
    by: str


@attrs.frozen(kw_only=True)
class ApprovalRequested(Event):
    """`preview` shows what would happen; `always` is what the scopes run and workspace allow from then on.

    `about` is call: may it run; or unclear: it may have taken effect already, may it run again.
    """

    type: ClassVar[str] = "approval.requested"
    id: str
    call_id: str
    name: str
    arguments: JsonObject
    why: str
    preview: str = ""
    always: tuple[str, ...] = ()
    about: str = "call"


@attrs.frozen(kw_only=True)
class ApprovalDecided(Event):
    """`decision` is allow or deny; `scope` once, run or workspace; `arguments` are the edited ones, if edited."""

    type: ClassVar[str] = "approval.decided"
    id: str
    decision: str
    by: str
    why: str = ""
    scope: str = "once"
    arguments: JsonObject | None = None


@attrs.frozen(kw_only=True)
class QuestionAsked(Event):
    """A question to a human.

    A call that asks on behalf of another party, as an MCP server, may ask often: its parts are `c0.1`, `c0.2`.
    """

    type: ClassVar[str] = "question.asked"
    id: str
    call_id: str
    text: str
    options: tuple[str, ...] = ()

    @property
    def within(self) -> str:
        """The id of the call it belongs to."""
        return self.call_id.partition(".")[0]


@attrs.frozen(kw_only=True)
class QuestionAnswered(Event):
    type: ClassVar[str] = "question.answered"
    id: str
    answer: str
    by: str


@attrs.frozen(kw_only=True)
class ToolStarted(Event):
    type: ClassVar[str] = "tool.started"
    call_id: str
    name: str
    attempt: int = 0


@attrs.frozen(kw_only=True)
class ToolOutput(Event):
    type: ClassVar[str] = "tool.output"
    kept: ClassVar[bool] = False
    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ToolFinished(Event):
    """`kind` is ok, error, refused, interrupted or unknown (it may or may not have taken effect).

    `full` is the hash of the full text where `result` is a shortened one and the full one is kept.
    """

    type: ClassVar[str] = "tool.finished"
    call_id: str
    name: str
    result: str
    is_error: bool
    seconds: float
    kind: str = "ok"
    data: JsonObject | None = None
    images: tuple[JsonObject, ...] = ()
    full: str = ""


@attrs.frozen(kw_only=True)
class ToolRetried(Event):
    type: ClassVar[str] = "tool.retried"
    call_id: str
    name: str
    attempt: int
    wait: float
    message: str


@attrs.frozen(kw_only=True)
class FileChanging(Event):
    """A file is about to be changed; on record before it is, so that undo knows of changes nobody could report.

    `before` and `after` are hashes of its content, None where there is no file; what `before` names is kept. `mode` is
    what the file may be used for until then, as permission bits.
    """

    type: ClassVar[str] = "file.changing"
    call_id: str
    path: str
    before: str | None = None
    after: str | None = None
    mode: int | None = None


@attrs.frozen(kw_only=True)
class FilesRestored(Event):
    """A human took back what was changed after the event `to`; `paths` are the files that were not so already."""

    type: ClassVar[str] = "files.restored"
    to: int
    paths: tuple[str, ...] = ()
    by: str = ""


@attrs.frozen(kw_only=True)
class FileChanged(Event):
    """`before` is the content hash kept for undo, None for a new file."""

    type: ClassVar[str] = "file.changed"
    call_id: str
    path: str
    diff: str
    before: str | None = None
    after: str | None = None


@attrs.frozen(kw_only=True)
class NotesChanged(Event):
    type: ClassVar[str] = "notes.changed"
    notes: tuple[JsonObject, ...]


@attrs.frozen(kw_only=True)
class SkillLoaded(Event):
    """`text` is what the model was given, `digest` the hash of the skill's file, `allows` the rules it brings."""

    type: ClassVar[str] = "skill.loaded"
    name: str
    path: str = ""
    text: str = ""
    digest: str = ""
    allows: tuple[str, ...] = ()


# --- messages ----------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class MessageSent(Event):
    """Words for another actor of the run: the `report` of a background child, or a `message` of a peer."""

    type: ClassVar[str] = "message.sent"
    id: str
    to: str
    text: str
    kind: str = "report"


@attrs.frozen(kw_only=True)
class MessageReceived(Event):
    """A message reached its actor: it enters the history, or is the result of `call_id` that awaited it."""

    type: ClassVar[str] = "message.received"
    id: str
    sender: str
    text: str
    call_id: str = ""


@attrs.frozen(kw_only=True)
class SteerReceived(Event):
    """A human's steering message was taken in; `entered` marks the later moment it became part of the history."""

    type: ClassVar[str] = "steer.received"
    id: str
    text: str
    by: str = ""
    entered: bool = False
    interrupt: bool = False


SENT_BACK = "output"
"""Why a note stands in a history with which an answer went back that did not hold."""


@attrs.frozen(kw_only=True)
class NoteAdded(Event):
    """A message of the runtime's own entered the history (continue, an answer sent back, a wrap-up request).

    `stop` is the reason and detail for which the wrap-up was asked.
    """

    type: ClassVar[str] = "note.added"
    text: str
    why: str = ""
    stop: JsonObject | None = None


@attrs.frozen(kw_only=True)
class CancelRequested(Event):
    type: ClassVar[str] = "cancel.requested"
    by: str = ""


@attrs.frozen(kw_only=True)
class CompactionRequested(Event):
    """A person wants the history smaller; it is compacted before the next request, and `context.compacted` tells."""

    type: ClassVar[str] = "compaction.requested"
    by: str = ""


# --- limits and the guard ----------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class BudgetReserved(Event):
    type: ClassVar[str] = "budget.reserved"
    id: int
    input: int
    output_cap: int
    cost_usd: float | None = None
    purpose: str = "turn"
    result_cap: int = 0


@attrs.frozen(kw_only=True)
class BudgetSettled(Event):
    """A call ended; `replied` says whether it took a step."""

    type: ClassVar[str] = "budget.settled"
    id: int
    usage: JsonObject
    cost_usd: float | None = None
    replied: bool = True


@attrs.frozen(kw_only=True)
class BudgetRefused(Event):
    type: ClassVar[str] = "budget.refused"
    limit: str
    scope: str
    message: str = ""


@attrs.frozen(kw_only=True)
class BudgetOverrun(Event):
    type: ClassVar[str] = "budget.overrun"
    limit: str
    scope: str
    by: float


@attrs.frozen(kw_only=True)
class LoopNudged(Event):
    """`note` is what the model reads, at the end of the result of `call_id` (or as a user message if there is none)."""

    type: ClassVar[str] = "loop.nudged"
    why: str
    call_id: str = ""
    note: str = ""
    calls: tuple[str, ...] = ()
    kind: str = ""
    times: int = 0


@attrs.frozen(kw_only=True)
class LoopBlocked(Event):
    """As LoopNudged, and the same calls are refused from now on."""

    type: ClassVar[str] = "loop.blocked"
    why: str
    call_id: str = ""
    note: str = ""
    calls: tuple[str, ...] = ()
    kind: str = ""
    times: int = 0


@attrs.frozen(kw_only=True)
class LoopStopped(Event):
    type: ClassVar[str] = "loop.stopped"
    why: str
    calls: tuple[str, ...] = ()
    kind: str = ""
    times: int = 0


# --- context, hooks, servers -------------------------------------------------------------------------------------


SUMMARISED = "summarised"
"""How a step of a compaction begins in which a model has written a summary."""


@attrs.frozen(kw_only=True)
class ContextCompacted(Event):
    """The history was made smaller; `before` and `after` are the next request's tokens, `steps` what was done.

    `history` is the new one as a whole, None where nothing could be freed, `results` the hashes of texts it no longer
    shows, by handle. `number` counts the compactions that a full window (or a person: `by`) asked for; a history cut
    for a last turn has none. `window` is the model's, as far as it is known by now.
    """

    type: ClassVar[str] = "context.compacted"
    before: int
    after: int
    steps: tuple[str, ...] = ()
    history: tuple[JsonObject, ...] | None = None
    why: str = ""
    number: int = 0
    results: JsonObject = attrs.field(factory=dict[str, Any])
    by: str = ""
    window: int | None = None


@attrs.frozen(kw_only=True)
class PrefixChanged(Event):
    """What stands before the messages is another from now on: `prompt` and `tools`, where they were taken anew."""

    type: ClassVar[str] = "prefix.changed"
    why: str
    prompt: tuple[str, ...] | None = None
    tools: tuple[JsonObject, ...] | None = None


@attrs.frozen(kw_only=True)
class HookStarted(Event):
    """A hook that is to run once begins at a moment (`event`); on record before it does."""

    type: ClassVar[str] = "hook.started"
    hook: str
    event: str


@attrs.frozen(kw_only=True)
class HookFinished(Event):
    """A hook has run at a moment (`event`). `outcome` is none, allow, ask, deny or error; `message` says why.

    `arguments` are those the call has from then on, `context` what it added: to the result of the call `call_id`, or,
    where there is none, to the history as a message, with this very event.
    """

    type: ClassVar[str] = "hook.finished"
    hook: str
    event: str
    outcome: str
    seconds: float
    message: str = ""
    call_id: str = ""
    arguments: JsonObject | None = None
    context: str = ""


@attrs.frozen(kw_only=True)
class McpConnected(Event):
    type: ClassVar[str] = "mcp.connected"
    server: str
    tools: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class McpLost(Event):
    type: ClassVar[str] = "mcp.lost"
    server: str
    why: str


@attrs.frozen(kw_only=True)
class McpSwitched(Event):
    """A person has brought a server into the run, or taken it out."""

    type: ClassVar[str] = "mcp.switched"
    server: str
    on: bool
    by: str = ""


@attrs.frozen(kw_only=True)
class Warned(Event):
    """Something a person should know that stops nothing: a tool left out, an opaque part another model cannot take."""

    type: ClassVar[str] = "warning"
    text: str


# --- stream only -------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Gap(Event):
    """A slow reader missed `lost` live events; a snapshot follows."""

    type: ClassVar[str] = "gap"
    kept: ClassVar[bool] = False
    lost: int


@attrs.frozen(kw_only=True)
class Snapshot(Event):
    type: ClassVar[str] = "snapshot"
    kept: ClassVar[bool] = False
    state: JsonObject


@attrs.frozen(kw_only=True)
class Unknown(Event):
    """An event of a type this version does not know: shown and kept as it is."""

    type: ClassVar[str] = "unknown"
    name: str
    body: JsonObject


@attrs.frozen
class Record:
    """An event with its place in the run: `seq` counts kept events from 1, `at` is seconds since the epoch.

    For a live event `seq` is the last kept one before it and `n` counts live events since. `body` is the event's own
    fields as JSON text, where its journal has just made that.
    """

    seq: int
    at: float
    event: Event
    n: int = 0
    body: str | None = attrs.field(default=None, eq=False, repr=False)


TYPES: Mapping[str, type[Event]] = {
    cls.type: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, Event) and cls.type and cls is not Unknown
}

Body: TypeAlias = dict[str, Any]


def _encoder(cls: type[Event]) -> Callable[[Event], Body]:
    names = [field.name for field in attrs.fields(cls) if field.name != "actor"]

    def encode(event: Event) -> Body:
        return {name: getattr(event, name) for name in names}

    return encode


_ENCODERS = {cls: _encoder(cls) for cls in TYPES.values()}


def _tuples(cls: type[Event]) -> frozenset[str]:
    hints = typing.get_type_hints(cls)
    found: set[str] = set()
    for field in attrs.fields(cls):
        hint = hints[field.name]
        options = (hint, *typing.get_args(hint))
        if any(typing.get_origin(option) is tuple for option in options):
            found.add(field.name)
    return frozenset(found)


_FIELDS = {cls: frozenset(field.name for field in attrs.fields(cls)) for cls in TYPES.values()}
_TUPLES = {cls: _tuples(cls) for cls in TYPES.values()}


def body_of(event: Event) -> Body:
    """The event's own fields, without type and actor, ready for JSON."""
    if isinstance(event, Unknown):
        return dict(event.body)
    return _ENCODERS[type(event)](event)


def type_of(event: Event) -> str:
    return event.name if isinstance(event, Unknown) else event.type


def event_from(type_name: str, actor: str, body: Body) -> Event:
    """The event a stored row or a stream line stands for; fields of a newer version are left out."""
    cls = TYPES.get(type_name)
    if cls is None:
        return Unknown(actor=actor, name=type_name, body=body)
    fields = _FIELDS[cls]
    tuples = _TUPLES[cls]
    arguments = {
        name: tuple(value) if name in tuples and value.__class__ is list else value
        for name, value in body.items()
        if name in fields
    }
    return cls(actor=actor, **arguments)
