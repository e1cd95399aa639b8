"""What the actors of one run share, and nothing else: journal, stream, ledger, clocks, models, workspace."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from .approvals import Approvals
from .cast import Cast
from .config import Humans
from .continuation import Continuation
from .deadlines import Deadlines
from .errors import JournalError
from .events import Event, RunWaiting
from .gate import Gate
from .grants import Grants
from .holds import Holds
from .hooks.settings import Hook
from .instructions import Instructions
from .journal.interface import Journal
from .journal.overview import Vitals
from .limits.loops import GuardSettings
from .mcps.fleet import Fleet
from .memory.facts import Facts
from .memory.store import FactStore, memory_file
from .messages import JsonObject
from .models import Models
from .policy.decision import Ceiling
from .policy.paths import Workspace
from .policy.rules import Permissions
from .questions import Questions
from .reaper import Reaper
from .sandbox.box import Sandbox
from .secrecy import Veil
from .skills.places import Shelf
from .tools import Tool, ToolBox
from .tools.results import ResultStore
from .watch.stream import LogStream

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import RunState
    from .sampling import Peer


@attrs.frozen
class RunSettings:
    """What a run was started with: the model for agents whose file names none, and how far nobody may go.

    `hooks` are those of all actors, in their order. `summary_model` writes the summaries where it is not the actor's
    own; a run that `compacts` does nothing else. Of a run that goes on: `refresh` takes changed definitions,
    `confirm_unknown` asks a human what became of calls that may have taken effect. `output_schema` is what the root's
    answer must fit, whatever its file says.
    """

    model: str
    ceiling: Ceiling
    rules: Permissions = Permissions()
    yes: bool = False
    headless: bool = False
    date: str = ""
    humans: Humans = Humans()
    refresh: bool = False
    confirm_unknown: bool = False
    summary_model: str | None = None
    compacts: bool = False
    output_schema: JsonObject | None = None
    hooks: tuple[Hook, ...] = ()


@attrs.define(eq=False)
class Run:
    """One run. `live` holds the actors that have not ended, by path; `recovered` what an earlier process left.

    `taken_up` are the paths of those among them that work again. `shelf` holds the skills there are; `trusted` says
    whether those of the workspace may pre-approve calls. `state` is the folder that runs and lessons are kept in,
    `facts` the memory there; both are None where nothing is kept on disk.
    """

    id: str
    journal: Journal
    stream: LogStream
    gate: Gate
    deadlines: Deadlines
    models: Models
    cast: Cast
    workspace: Workspace
    tools: Mapping[str, Tool]
    settings: RunSettings
    chance: random.Random
    reaper: Reaper = attrs.Factory(Reaper)
    sandbox: Sandbox = attrs.field(init=False)
    mcps: Fleet = attrs.Factory(Fleet)
    grants: Grants = attrs.Factory(Grants)
    holds: Holds = attrs.Factory(Holds)
    veil: Veil = attrs.Factory(Veil)
    shelf: Shelf = Shelf()
    trusted: bool = False
    state: Path | None = None
    instructions: Instructions | None = None
    originals: dict[str, str | None] = attrs.Factory(dict[str, "str | None"])
    told: set[str] = attrs.Factory(set[str])
    toolboxes: dict[str, ToolBox] = attrs.Factory(dict[str, ToolBox])
    guards: dict[str, GuardSettings] = attrs.Factory(dict[str, GuardSettings])
    live: dict[str, Agent] = attrs.Factory(dict[str, "Agent"])
    numbers: int = 0
    recovered: RunState | None = None
    earlier: Continuation | None = None
    taken_up: set[str] = attrs.Factory(set[str])
    suspending: bool = False
    failure: JournalError | None = None
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    results: ResultStore = attrs.field(init=False)
    approvals: Approvals = attrs.field(init=False)
    questions: Questions = attrs.field(init=False)
    facts: Facts | None = attrs.field(init=False, default=None)
    waiting: bool = False

    def __attrs_post_init__(self) -> None:
        self.sandbox = Sandbox(self.reaper, self.workspace.root)
        self.results = ResultStore(contents=self.journal.contents)
        self.approvals = Approvals(self.journal, self.check_waiting)
        self.questions = Questions(self.journal, self.check_waiting)
        self.stream.vitals = self.vitals
        if self.state is not None:
            self.facts = Facts(FactStore(memory_file(self.state)), self.workspace.root, self.id, self.veil.text)

    def append(self, event: Event) -> None:
        """Record an event. Raises JournalError once a commit has failed."""
        self.journal.append(event)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The ids of all approvals and questions that no human has answered yet."""
        requests, questions = self.approvals.pending, self.questions.pending
        return (*(request.id for request in requests), *(question.id for question in questions))

    def peer(self, actor: str, call_id: str) -> Peer | None:
        """Who is behind a live actor's call, for a party that asks back."""
        from .sampling import Peer

        agent = self.live.get(actor)
        return None if agent is None else Peer(agent, call_id)

    def follow(self, earlier: Continuation) -> None:
        """Begin where the root of an earlier run ended."""
        self.earlier = earlier
        self.numbers = earlier.number
        self.results.restore(earlier.results)

    def check_waiting(self) -> None:
        """Note whether every live actor waits for a human; with nobody there to ask, the process may end.

        To be called whenever an actor stops or begins to work, and when a question is asked or decided.
        """
        pending = self.waits_for
        waited = self.waiting
        alive = self.live.values()
        self.waiting = bool(pending) and bool(alive) and not any(agent.activity.works for agent in alive)
        if not self.waiting or self.suspending:
            return
        if not waited:
            self.append(RunWaiting(on=pending))
        if self.settings.headless:
            self.suspend()

    def vitals(self) -> dict[str, Vitals]:
        """What the record does not tell of the live actors."""
        clocks, ledger = self.deadlines, self.gate.ledger
        return {path: Vitals(clocks.elapsed(path), not clocks.idle(path), ledger.short_of(path)) for path in self.live}

    def suspend(self) -> None:
        """End this process's part of the run and leave it as it stands, to be resumed."""
        self.suspending = True
        self.scope.cancel()

    def fail(self, error: JournalError) -> None:
        """End the run because its record cannot be written."""
        self.failure = self.failure or error
        self.scope.cancel()


def digest(content: bytes | None) -> str | None:
    """The name of a content: its SHA-256, None for no content."""
    return None if content is None else hashlib.sha256(content).hexdigest()
