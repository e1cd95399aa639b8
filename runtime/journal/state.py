"""What a run is at one point of its record: plain values that `replay.fold` keeps up to date."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs

from runtime.events import (
    ApprovalDecided,
    ApprovalRequested,
    BudgetReserved,
    CancelRequested,
    FileChanged,
    HookFinished,
    HookStarted,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    MessageSent,
    ModelRequested,
    ModelRetried,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
    RunForked,
    RunStarted,
    SkillLoaded,
    SteerReceived,
    ToolFinished,
)
from runtime.handover.trail import Trail
from runtime.messages import JsonObject, Message, Usage

ActorStatus: TypeAlias = Literal["running", "completed", "stopped", "failed", "cancelled"]
Phase: TypeAlias = Literal["running", "waiting", "held", "ended"]
Alert: TypeAlias = LoopNudged | LoopBlocked | LoopStopped


@attrs.frozen
class Held:
    """Who holds an actor, or a run, and since when."""

    by: str
    since: float


@attrs.define
class CallState:
    """One tool call of the round under way. `started` counts its tool.started events: 0 means it never ran.

    `message` is the report it has received and not given back yet, `unclear` the question what became of it. `hooked`
    are the hooks that have run for it.
    """

    call_id: str
    name: str
    arguments: JsonObject | None
    raw: str = ""
    verdict: str = ""
    started: int = 0
    started_at: float = 0.0
    approval: str = ""
    question: str = ""
    message: str = ""
    unclear: str = ""
    finished: ToolFinished | None = None
    hooked: list[HookFinished] = attrs.Factory(list[HookFinished])
    changed: dict[str, str | None] = attrs.Factory(dict[str, "str | None"])


@attrs.frozen
class PastCall:
    """A call with its result, for the loop guard."""

    name: str
    arguments: JsonObject
    result: str
    is_error: bool
    seconds: float


@attrs.frozen
class PastStep:
    """A reply with the results of its calls, for the loop guard; `at` in seconds since the epoch."""

    text: str
    calls: tuple[PastCall, ...]
    at: float


@attrs.frozen
class PastNote:
    """Something the loop guard was told between two replies."""

    event: Literal["user_message", "continuation", "compaction"]


@attrs.define
class ActorState:
    """One actor. `usage`, `cost_usd`, `steps` and `tool_calls` are its own, without its children's.

    `history` and `past` are empty in a state without histories. `cost_usd` is None once a price was unknown. `calls`
    holds the calls of the last reply until all have their result, and `missing` says how many have none; `prompt_model`
    is the one its prompt names. `steers` wait to enter the history. `background`: begun by a call that did not wait for
    it, and `sent`: its report is on its way to the parent. `stop`: why its end was decided (reason and detail),
    `wrapping_up`: the last turn has been asked for, `wrapped_up`: it has been given. `reopened`: it had ended, and more
    was wanted of it. `judged`: the loop guard has seen the last round. `result_cap`: what the round under way may add.
    `hooked`: hooks that need not run again before the next reply, `sent_back`: how often a hook has refused its end.
    `compactions`: how often the history was compacted (`summaries`: with one), `measured`: how many messages the last
    one left, and the request's tokens then. `context`: tokens of its last request with the reply, of `window`;
    `learned` is the window that a server's refusal has told, where that is smaller than was known. `compact`: who wants
    the history smaller, and it has not been tried yet. `rejected`: answers that did not hold and went back. `elapsed`
    is what its clock showed at its last request, `stood` the seconds since its start that it has not counted. `retry`:
    it sleeps before it tries again.
    """

    path: str
    agent: str
    number: int
    parent: str | None
    task: str
    model: str
    prompt_model: str
    limits: JsonObject
    prompt: tuple[str, ...]
    tools: tuple[JsonObject, ...]
    call_id: str | None
    definition: str
    started_at: float
    status: ActorStatus = "running"
    held: Held | None = None
    history: list[Message] = attrs.Factory(list[Message])
    past: list[PastStep | PastNote] = attrs.Factory(list[PastStep | PastNote])
    calls: dict[str, CallState] = attrs.Factory(dict[str, CallState])
    missing: int = 0
    steers: dict[str, SteerReceived] = attrs.Factory(dict[str, SteerReceived])
    reservations: dict[int, BudgetReserved] = attrs.Factory(dict[int, BudgetReserved])
    request: ModelRequested | None = None
    retry: ModelRetried | None = None
    turn: int = 0
    steps: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    elapsed: float = 0.0
    stood: float = 0.0
    children: list[str] = attrs.Factory(list[str])
    notes: tuple[JsonObject, ...] = ()
    seen: dict[str, str] = attrs.Factory(dict[str, str])
    trail: Trail = attrs.field(default=attrs.Factory(lambda self: Trail(self.number), takes_self=True))
    skills: dict[str, SkillLoaded] = attrs.Factory(dict[str, SkillLoaded])
    hooked: list[HookFinished] = attrs.Factory(list[HookFinished])
    hooking: list[HookStarted] = attrs.Factory(list[HookStarted])
    sent_back: int = 0
    cancel: CancelRequested | None = None
    background: bool = False
    sent: bool = False
    stop: tuple[str, str] | None = None
    wrapping_up: bool = False
    wrapped_up: bool = False
    reopened: bool = False
    judged: bool = True
    result_cap: int = 0
    window: int | None = None
    learned: int | None = None
    compactions: int = 0
    summaries: int = 0
    measured: tuple[int, int] | None = None
    context: int = 0
    compact: str = ""
    rejected: int = 0
    last_text: str = ""
    last_at: float = 0.0
    report: JsonObject | None = None

    def reopen(self, at: float) -> None:
        """More is wanted of an actor whose end was decided; since it had ended, its clock has stood."""
        if self.report is not None:
            self.stood += at - self.last_at
        self.status, self.report, self.stop = "running", None, None
        self.wrapping_up = self.wrapped_up = False
        self.rejected = 0
        self.reopened = True
        self.hooked = [event for event in self.hooked if event.outcome not in ("deny", "error")]

    @property
    def open_calls(self) -> tuple[CallState, ...]:
        """Calls of the last reply that have no result yet, in call order."""
        return tuple(call for call in self.calls.values() if call.finished is None)

    @property
    def between_steps(self) -> bool:
        """Whether nothing of its next step has begun: no request is out, and of the calls none was even looked at."""
        return self.request is None and not any(call.verdict or call.started for call in self.calls.values())

    @property
    def unclear_calls(self) -> tuple[CallState, ...]:
        """Calls that were started and have no result: they may or may not have taken effect."""
        return tuple(call for call in self.open_calls if call.started)


@attrs.define
class RunState:
    """A whole run. `seq` and `at` are those of the newest record folded in.

    With `histories` False, for those who only watch, messages and the guard's past are left out. `long_reports`
    are the whole texts of those that entered a history in part. `told` are the ids of all that peers have sent.
    """

    histories: bool = True
    seq: int = 0
    at: float = 0.0
    started: RunStarted | None = None
    started_at: float = 0.0
    finished: RunFinished | None = None
    root: str = ""
    actors: dict[str, ActorState] = attrs.Factory(dict[str, ActorState])
    requests: dict[str, ApprovalRequested] = attrs.Factory(dict[str, ApprovalRequested])
    decisions: dict[str, ApprovalDecided] = attrs.Factory(dict[str, ApprovalDecided])
    questions: dict[str, QuestionAsked] = attrs.Factory(dict[str, QuestionAsked])
    answers: dict[str, QuestionAnswered] = attrs.Factory(dict[str, QuestionAnswered])
    pending: dict[str, float] = attrs.Factory(dict[str, float])
    told: set[str] = attrs.Factory(set[str])
    undelivered: dict[str, MessageSent] = attrs.Factory(dict[str, MessageSent])
    changes: list[FileChanged] = attrs.Factory(list[FileChanged])
    originals: dict[str, str | None] = attrs.Factory(dict[str, "str | None"])
    kept: dict[str, str] = attrs.Factory(dict[str, str])
    long_reports: dict[str, str] = attrs.Factory(dict[str, str])
    imported: bool = False
    forked: RunForked | None = None
    void: set[str] = attrs.Factory(set[str])
    alerts: list[tuple[int, float, Alert]] = attrs.Factory(list[tuple[int, float, Alert]])
    warnings: list[str] = attrs.Factory(list[str])
    servers: dict[str, str] = attrs.Factory(dict[str, str])
    switched: dict[str, bool] = attrs.Factory(dict[str, bool])
    server_tools: dict[str, tuple[str, ...]] = attrs.Factory(dict[str, "tuple[str, ...]"])
    limits: JsonObject = attrs.Factory(dict[str, Any])
    waiting: bool = False
    held: Held | None = None
    cancel: CancelRequested | None = None
    by_call: dict[tuple[str | None, str | None], str] = attrs.Factory(dict[tuple[str | None, str | None], str])

    @property
    def phase(self) -> Phase:
        """What the record says the run does; whether its owner still lives it cannot say."""
        if self.finished is not None:
            return "ended"
        if self.waiting:
            return "waiting"
        root = self.actors.get(self.root)
        return "held" if self.held or (root is not None and root.held) else "running"

    @property
    def pending_approvals(self) -> tuple[ApprovalRequested, ...]:
        return tuple(request for id, request in self.requests.items() if id in self.pending)

    @property
    def pending_questions(self) -> tuple[QuestionAsked, ...]:
        return tuple(question for id in self.pending if (question := self.questions.get(id)) is not None)

    @property
    def asked(self) -> ApprovalRequested | QuestionAsked | None:
        """The oldest question that waits for a human."""
        id = next(iter(self.pending), None)
        return None if id is None else self.requests.get(id) or self.questions.get(id)

    @property
    def usage(self) -> Usage:
        """What all actors have used."""
        return sum((actor.usage for actor in self.actors.values()), Usage())

    @property
    def cost_usd(self) -> float | None:
        """What all actors have cost, None where a price was unknown."""
        costs = [actor.cost_usd for actor in self.actors.values()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def steps(self) -> int:
        return sum(actor.steps for actor in self.actors.values())

    def clock(self, actor: ActorState, now: float) -> float:
        """Seconds on an actor's clock, as the record tells: no time without a process, none in which all waited."""
        until = now if actor.status == "running" else actor.last_at
        if self.waiting:
            until = min(until, self.at)
        return max(0.0, until - actor.started_at - actor.stood)

    @property
    def seconds(self) -> float:
        """What the root's clock shows at the newest record: the time of the whole run."""
        root = self.actors.get(self.root)
        return self.clock(root, self.at) if root is not None else 0.0

    def child_of(self, parent: str | None, call_id: str | None) -> ActorState | None:
        """The newest actor that this call of `parent` began, ended or not; the root for (None, None)."""
        path = self.by_call.get((parent, call_id))
        return None if path is None else self.actors[path]

    def background_of(self, path: str) -> tuple[ActorState, ...]:
        """Background children of an actor that have not sent their report: at work, or ended just before they could.

        One at work whose own call has no result yet is left out: that call takes it up.
        """
        actor = self.actors[path]
        children = (self.actors[child] for child in actor.children)
        beginning = {call.call_id for call in actor.open_calls}
        return tuple(
            child
            for child in children
            if not child.sent and (child.background if child.report is not None else child.call_id not in beginning)
        )

    def subtree(self, path: str) -> tuple[ActorState, ...]:
        """An actor and all below it, parents first."""
        actor = self.actors[path]
        return (actor, *(each for child in actor.children for each in self.subtree(child)))
