"""Children that work while their parent goes on: started by one call, their report delivered exactly once.

A report waits as a durable message to the parent. Either `await_agent` takes it as its result, or it enters the
parent's history as a message at its next step; the parent does not finish while a child of this kind still works.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import attrs
import trio

from actors import ActorFailed

from .events import MessageReceived, MessageSent
from .messages import UserMessage
from .record import message_of
from .report import Assignment
from .tools import Output, Tool, ToolContext, ToolError
from .tools.delegate import call_child, output, task_schema

if TYPE_CHECKING:
    from .agent import Agent
    from .definitions import Definition

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
        self._block = trio.open_nursery()
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> None:
        self._nursery = await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Whoever still works is cancelled: nobody is left to read the report."""
        self.cancel()
        return await self._block.__aexit__(kind, error, trace)

    def cancel(self) -> None:
        """End all children that still work."""
        for child in self.running:
            child.scope.cancel()

    @property
    def running(self) -> tuple[Child, ...]:
        return tuple(child for child in self._children.values() if not child.ended.is_set())

    def begin(self, agent: Agent, task: str, call_id: str) -> str:
        """Let a hired child work in the background; returns the name to await it by."""
        assert self._nursery is not None
        name = agent.path.rpartition("/")[2]
        child = self._children[name] = Child(agent.path)
        self._nursery.start_soon(self._work, child, agent, Assignment(task, call_id))
        return name

    def deliver(self, message: MessageSent) -> None:
        """A report that an earlier process recorded and did not deliver."""
        child = Child(message.actor, message)
        child.ended.set()
        self._children[message.actor.rpartition("/")[2]] = child

    def take_reports(self) -> list[UserMessage]:
        """Reports nobody awaits, as messages for the history; each is taken once, and recorded as received."""
        found: list[UserMessage] = []
        for name, child in list(self._children.items()):
            if child.message is not None and not child.claimed:
                found.append(message_of(self._receive(name, child)))
        return found

    async def wait_one(self) -> None:
        """Until one of the running children has ended. A cancelled wait changes nothing."""
        running = self.running
        if not running:
            return
        async with trio.open_nursery() as nursery:

            async def watch(child: Child) -> None:
                await child.ended.wait()
                nursery.cancel_scope.cancel()

            for child in running:
                nursery.start_soon(watch, child)

    async def take(self, name: str, call_id: str) -> Output:
        """The report of one child as the result of a call. Raises ToolError for a name that stands for none."""
        child = self._children.get(name)
        if child is None or child.claimed:
            known = ", ".join(each for each, one in self._children.items() if not one.claimed) or "none"
            raise ToolError(f"no background agent '{name}' has a report to give; there is: {known}")
        child.claimed = True
        try:
            with self._parent.activity.idle(child.path):
                await child.ended.wait()
        except trio.Cancelled:
            child.claimed = False
            raise
        received = self._receive(name, child, call_id)
        return Output(received.text, is_error=child.is_error)

    def _receive(self, name: str, child: Child, call_id: str = "") -> MessageReceived:
        message = child.message
        assert message is not None
        received = MessageReceived(
            actor=self._parent.path, id=message.id, sender=child.path, text=message.text, call_id=call_id
        )
        self._parent.run.append(received)
        del self._children[name]
        return received

    async def _work(self, child: Child, agent: Agent, assignment: Assignment) -> None:
        said: Output | None = None
        try:
            with child.scope:
                said = output(agent.path, await call_child(agent, assignment))
        except ActorFailed as failed:
            said = Output(f"{agent.path} crashed: {failed.cause}", is_error=True)
        finally:
            child.ended.set()
        if said is not None:
            child.is_error = said.is_error
            child.message = MessageSent(actor=agent.path, id=f"r{agent.number}", to=self._parent.path, text=said.text)
            self._parent.run.append(child.message)


def start_tool(parent: Agent, child: Definition) -> Tool:
    """The tool `start_<child>`: as delegation, but the parent goes on at once."""

    async def run(ctx: ToolContext, task: str) -> Output:
        agent = parent.family.hire(child.name, ctx.call_id)
        name = parent.background.begin(agent, task, ctx.call_id)
        await trio.lowlevel.checkpoint()
        return Output(f"{name} has started. Its report comes as a message, or with {AWAIT}(name='{name}').")

    return Tool(
        name=f"{START}{child.name}",
        description=f"Start {child.name} in the background and go on: {child.description}",
        parameters=task_schema(),
        run=run,
        effects="idempotent",
        progress=False,
        delegates=True,
        subject=parent.family.subject(child.name, f"{START}{child.name}"),
    )


def await_tool(parent: Agent) -> Tool:
    """The tool `await_agent`: wait for a background child's report."""

    async def run(ctx: ToolContext, name: str) -> Output:
        return await parent.background.take(name, ctx.call_id)

    return Tool(
        name=AWAIT,
        description="Wait for an agent that was started in the background; gives back its report, once.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "As start_… named it, such as researcher-1."}},
            "required": ["name"],
            "additionalProperties": False,
        },
        run=run,
        effects="idempotent",
        poll=True,
        progress=False,
        delegates=True,
        subject=parent.family.subject("", AWAIT),
    )
