"""Children that work while their parent goes on: started by one call, their report delivered exactly once.

A report waits as a durable message to the parent. Either `await_agent` takes it as its result, or it enters the
parent's history as a message at its next step; the parent does not finish while a child of this kind still works.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING

import attrs
import trio

from actors import ActorFailed

from .errors import JournalError, first_of
from .events import MessageReceived, MessageSent
from .handover.attachment import Attachment
from .journal.nursery import serving
from .messages import UserMessage, size_of
from .record import message_of, report_from_json
from .report import Assignment
from .tools import Output, Tool, ToolContext, ToolError
from .tools.delegate import TASK_TOOL, call_child, output, tool_name
from .tools.results import fitting

if TYPE_CHECKING:
    from .agent import Agent
    from .definitions import Definition
    from .journal.state import ActorState, RunState

START = "start_"
AWAIT = "await_agent"


@attrs.define(eq=False)
class Child:
    """One background child; `message` is its report under way to the parent, None while it works."""

    path: str
    message: MessageSent | None = None
    is_error: bool = False
    ended: trio.Event = attrs.Factory(trio.Event)
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    claimed: bool = False


class Background:
    """The background children of one actor, by their short name."""

    def __init__(self, parent: Agent) -> None:
        self._parent = parent
        self._children: dict[str, Child] = {}
        self._needed = bool(parent.definition.subagents)
        self._block: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None
        self._news: trio.Event | None = None

    async def __aenter__(self) -> None:
        # Most agents have nobody to start.
        if self._needed:
            self._block = serving()
            self._nursery = await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Whoever still works is cancelled: nobody is left to read the report."""
        if self._block is None:
            return None
        try:
            return await self._block.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            fault = first_of(group, JournalError) or error
            if isinstance(fault, Exception):
                raise fault from None
            raise

    @property
    def running(self) -> tuple[Child, ...]:
        return tuple(child for child in self._children.values() if not child.ended.is_set())

    def begin(self, agent: Agent, task: str, call_id: str, attached: tuple[Attachment, ...] = ()) -> str:
        """Let a hired child work in the background; returns the name to await it by."""
        assert self._nursery is not None
        name = agent.path.rpartition("/")[2]
        child = self._children[name] = Child(agent.path)
        assignment = Assignment(task, call_id, attached)
        agent.begin(assignment)
        self._nursery.start_soon(self._work, child, agent, assignment)
        return name

    def recall(self, state: RunState) -> tuple[ActorState, ...]:
        """Take over what an earlier process left: reports that have not arrived; returns the children still at work."""
        for message in state.undelivered.values():
            if message.to == self._parent.path and message.kind == "report":
                self._deliver(message)
        left = state.background_of(self._parent.path)
        for child in left:
            if child.report is not None:
                said = output(child.path, report_from_json(child.report))
                self._deliver(self._send(child.path, child.number, said.text))
        at_work = tuple(child for child in left if child.report is None)
        self._needed = self._needed or bool(at_work)
        return at_work

    def take_up(self, child: ActorState) -> None:
        """Let a child of an earlier process go on; one that may not is reported as lost."""
        try:
            agent = self._parent.family.hire(child.agent, child.call_id or "")
        except ToolError as refused:
            text = f"{child.path} was interrupted and could not go on: {refused}"
            self._deliver(self._send(child.path, child.number, text))
        else:
            self.begin(agent, child.task, child.call_id or "")

    def take_reports(self, room: int) -> list[UserMessage]:
        """Reports nobody awaits, as messages for the history; each is taken once, and recorded as received.

        All together they have at most about `room` bytes; what is longer is shortened, with a handle to read the rest.
        """
        waiting = [name for name, child in self._children.items() if child.message is not None and not child.claimed]
        found: list[UserMessage] = []
        for place, name in enumerate(waiting):
            message = message_of(self._receive(name, room=room // (len(waiting) - place)))
            room -= size_of(message)
            found.append(message)
        return found

    async def wait_news(self) -> None:
        """Until a child has ended, or `stir` was called. A cancelled wait changes nothing."""
        running = [child.path for child in self.running]
        self._news = news = trio.Event()
        live = self._parent.run.live
        with self._parent.activity.idle(lambda: news.is_set() or any(path not in live for path in running)):
            await news.wait()

    def stir(self) -> None:
        """There is news for the parent."""
        if self._news is not None:
            self._news.set()

    async def stop(self) -> None:
        """End all children that still work; what they have by then is their report. A cancelled wait ends them too."""
        running = self.running
        for child in running:
            child.scope.cancel()
        for child in running:
            await child.ended.wait()

    async def take(self, name: str, call_id: str) -> Output:
        """The report of one child as the result of a call. Raises ToolError for a name that stands for none.

        After a cancelled call another one can still take it.
        """
        child = self._children.get(name)
        if child is None or child.claimed:
            known = ", ".join(each for each, one in self._children.items() if not one.claimed) or "none"
            raise ToolError(f"no background agent '{name}' has a report to give; there is: {known}")
        child.claimed = True
        try:
            with self._parent.activity.awaiting(child.path):
                await child.ended.wait()
        except trio.Cancelled:
            child.claimed = False
            raise
        received = self._receive(name, call_id)
        return Output(received.text, is_error=child.is_error)

    def _deliver(self, message: MessageSent) -> None:
        child = Child(message.actor, message)
        child.ended.set()
        self._children[message.actor.rpartition("/")[2]] = child

    def _receive(self, name: str, call_id: str = "", room: int | None = None) -> MessageReceived:
        child = self._children.pop(name)
        message = child.message
        assert message is not None
        run, text = self._parent.run, message.text
        self._parent.trail.open(message.id)
        if room is not None:
            text = fitting(text, room, lambda whole: run.results.keep(message.id, whole))
        received = MessageReceived(
            actor=self._parent.path, id=message.id, sender=child.path, text=text, call_id=call_id
        )
        run.append(received)
        return received

    async def _work(self, child: Child, agent: Agent, assignment: Assignment) -> None:
        said: Output | None = None
        try:
            with child.scope:
                said = output(agent.path, await call_child(agent, assignment))
            if said is None:
                said = Output(f"{agent.path} was cut off.\n\nIts partial work:\n{agent.words}", is_error=True)
        except ActorFailed as failed:
            said = Output(f"{agent.path} crashed: {failed.cause}", is_error=True)
        finally:
            if said is not None:
                child.is_error = said.is_error
                child.message = self._send(agent.path, agent.number, said.text)
            child.ended.set()
            self.stir()

    def _send(self, path: str, number: int, text: str) -> MessageSent:
        message = MessageSent(actor=path, id=f"r{number}", to=self._parent.path, text=text)
        self._parent.run.append(message)
        return message


def start_tool(parent: Agent, child: Definition) -> Tool:
    """The tool `start_<child>`: as delegation, but the parent goes on at once."""

    async def run(ctx: ToolContext, task: str, attach: Sequence[str] = ()) -> Output:
        name = parent.family.ended_before(ctx.call_id)
        if name is None:
            await parent.family.prepare(child.name)
            attached = await parent.family.attached(child.name, attach, ctx.call_id)
            agent = parent.family.hire(child.name, ctx.call_id)
            name = parent.background.begin(agent, task, ctx.call_id, attached)
        await trio.lowlevel.checkpoint()
        return Output(f"{name} has started. Its report comes as a message, or with {AWAIT}(name='{name}').")

    return Tool(
        name=tool_name(START, child.name),
        description=f"Start {child.name} in the background and go on: {child.description}",
        parameters=TASK_TOOL.parameters,
        like=TASK_TOOL,
        run=run,
        effects="idempotent",
        progress=False,
        delegates=True,
        subject=parent.family.subject(child.name, tool_name(START, child.name)),
    )


async def _nobody(ctx: ToolContext, name: str) -> Output:
    raise ToolError("this tool belongs to no agent")


_NAME_TOOL = Tool(
    name=AWAIT,
    description="An agent's report.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "As start_… named it, such as researcher-1."}},
        "required": ["name"],
        "additionalProperties": False,
    },
    run=_nobody,
)


def await_tool(parent: Agent) -> Tool:
    """The tool `await_agent`: wait for a background child's report."""

    async def run(ctx: ToolContext, name: str) -> Output:
        return await parent.background.take(name, ctx.call_id)

    return Tool(
        name=AWAIT,
        description="Wait for an agent that was started in the background; gives back its report, once.",
        parameters=_NAME_TOOL.parameters,
        like=_NAME_TOOL,
        run=run,
        effects="idempotent",
        poll=True,
        progress=False,
        delegates=True,
        subject=parent.family.subject("", AWAIT),
    )
