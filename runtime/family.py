"""One actor's children: hired through its tools, asked once for the same thing, counted by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from .errors import NotHired
from .handover.attachment import Attachment
from .hooks.actor import recall
from .messages import JsonObject, ToolCall
from .policy.subjects import AgentSubject, Subject
from .record import report_from_json
from .report import Assignment
from .tools import Output, ToolError
from .tools.delegate import PREFIX, delegate, output, tool_name

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import ActorState
    from .round import Round

Hire: TypeAlias = Callable[[str, "Agent", str], "Agent"]


@attrs.define(eq=False)
class Asked:
    """An ask that is at work; `result` is set before `ended`, and stays None if the ask was cancelled.

    `ended` is there once somebody waits for it.
    """

    path: str
    result: Output | None = None
    ended: trio.Event | None = None


class Family:
    """The children of `parent`. `names` counts how many of each agent there have been."""

    def __init__(self, parent: Agent, hire: Hire) -> None:
        self._parent = parent
        self._hire = hire
        self._asks: dict[tuple[str, ...], Asked] = {}
        self._names: dict[str, int] = {}

    def next_path(self, agent: str) -> str:
        number = self._names[agent] = self._names.get(agent, 0) + 1
        return f"{self._parent.path}/{agent}-{number}"

    def recall(self, paths: list[str]) -> None:
        """Children of an earlier process keep their numbers."""
        for path in paths:
            agent, _, number = path.rpartition("/")[2].rpartition("-")
            self._names[agent] = max(self._names.get(agent, 0), int(number))

    async def prepare(self, agent: str) -> None:
        """Have the MCP servers at hand that a child's file names. A cancelled call leaves them being connected to."""
        if agent in (run := self._parent.run).cast.members:
            await run.mcps.ready(run.cast.get(agent).mcps)

    def refit(self) -> None:
        """Give the parent itself the tools its servers have now."""
        from .hiring import refit

        refit(self._parent)

    def hire(self, agent: str, call_id: str) -> Agent:
        """A child with its place in the ledger. Raises ToolError where depth or width forbid it."""
        try:
            return self._hire(agent, self._parent, call_id)
        except NotHired as refused:
            raise ToolError(str(refused)) from refused

    async def ask(self, agent: str, task: str, call_id: str, attach: Sequence[str] = ()) -> Output:
        """The report of a new child, or of the one that is at work on the very same task.

        Raises ToolError. A cancelled ask ends the child it began; whoever joined it asks anew.
        """
        if (ended := self._recorded(call_id)) is not None and ended.report is not None:
            return output(ended.path, report_from_json(ended.report))
        key = _key(agent, task, attach)
        owner = self._owner(key, call_id)
        if (ended := self._recorded(owner)) is not None and ended.report is not None:
            return _joined(output(ended.path, report_from_json(ended.report)))
        await self.prepare(agent)
        attached = await self.attached(agent, attach, owner)
        while (asked := self._asks.get(key)) is not None:
            if asked.ended is None:
                asked.ended = trio.Event()
            with self._parent.activity.awaiting(asked.path):
                await asked.ended.wait()
            if asked.result is not None:
                return _joined(asked.result)
        child = self.hire(agent, owner)
        asked = self._asks[key] = Asked(child.path)
        try:
            asked.result = await delegate(self._parent, child, Assignment(task, owner, attached))
            return asked.result
        finally:
            del self._asks[key]
            if asked.ended is not None:
                asked.ended.set()

    async def attached(self, agent: str, names: Sequence[str], call_id: str) -> tuple[Attachment, ...]:
        """What a call attaches for a child; nothing where the child has begun before and has it already.

        Raises ToolError. A cancelled call leaves at most kept texts behind.
        """
        recovered = self._parent.run.recovered
        if not names or (recovered is not None and recovered.child_of(self._parent.path, call_id) is not None):
            return ()
        from .handover.gather import gather

        return await gather(self._parent, self._parent.run.cast.get(agent), names, call_id)

    def _owner(self, key: tuple[str, ...], call_id: str) -> str:
        """The call whose child on record works for this ask: its own, or an equal one's of the same reply, which it had
        joined in an earlier process or would join. Calls of a reply begin in any order."""
        run, work = self._parent.run, self._parent.work
        if run.recovered is None or work is None or run.recovered.child_of(self._parent.path, call_id) is not None:
            return call_id
        tool = tool_name(PREFIX, key[0])
        for call in work.calls if call_id in work.started else work.open:
            child = run.recovered.child_of(self._parent.path, call.id)
            if call.name != tool or child is None:
                continue
            changed = changed_before(self._parent, work, call)
            arguments = call.arguments if changed is None else changed
            if arguments is not None and key_of(key[0], arguments) == key:
                return call.id
        return call_id

    def ended_before(self, call_id: str) -> str | None:
        """The short name of a child this call began in an earlier process, where it has ended too."""
        child = self._recorded(call_id)
        return None if child is None else child.path.rpartition("/")[2]

    def _recorded(self, call_id: str) -> ActorState | None:
        recovered = self._parent.run.recovered
        child = recovered.child_of(self._parent.path, call_id) if recovered is not None else None
        return child if child is not None and child.report is not None else None

    def subject(self, agent: str, tool: str) -> Callable[[JsonObject], Subject]:
        """What a call of a delegating tool is about, for the permission rules."""
        subject = AgentSubject(tool, agent)
        return lambda _: subject


def changed_before(me: Agent, work: Round, call: ToolCall) -> JsonObject | None:
    """What hooks or a human put in place of a call's arguments when an earlier process began it; None: nothing."""
    if (edited := me.run.approvals.edited(me.path, call.id)) is not None:
        return edited
    return recall(work.hooked.get(call.id, ()), "before_tool").arguments


def key_of(agent: str, arguments: JsonObject) -> tuple[str, ...]:
    """What makes two asks the same."""
    return _key(agent, str(arguments.get("task")), arguments.get("attach") or ())


def _key(agent: str, task: str, attach: Sequence[str]) -> tuple[str, ...]:
    return (agent, " ".join(task.split()), *attach)


def _joined(report: Output) -> Output:
    return attrs.evolve(report, text=f"(The same ask was already at work; its report:)\n{report.text}")
