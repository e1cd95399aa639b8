"""Commands to a live run, carried out: decisions, steering messages, cancel, hold, limits."""

from __future__ import annotations

import attrs

from .agent import Agent
from .app import LiveRun
from .errors import JournalError, UsageError, did_you_mean
from .events import CancelRequested, LimitsChanged
from .journal.interface import AlreadyRecorded
from .messages import JsonObject
from .resume import let_all_go_on
from .watch.commands import (
    Answer,
    Approve,
    Cancel,
    ChangeLimits,
    Command,
    Compact,
    Continue,
    Deny,
    Hold,
    Say,
    Status,
)


@attrs.define(eq=False)
class Steering:
    """The Commands of one live run."""

    live: LiveRun

    async def run(self, command: Command) -> JsonObject:
        """Carry a command out, durably before it takes effect. Raises UsageError, JournalError.

        A record that cannot be written ends the run, also when all its actors wait and write nothing themselves.
        """
        try:
            return await self._run(command)
        except JournalError as error:
            self.live.run.fail(error)
            raise

    async def _run(self, command: Command) -> JsonObject:
        run = self.live.run
        match command:
            case Approve() | Deny():
                await self._decide(command)
            case Answer():
                given = await self.live.questions.answer(command.id, command.text, command.by or "you")
                return {"answer": given.answer}
            case Say():
                agent = self._agent(command.actor)
                id = f"s{run.journal.last_seq + 1}"  # the place of its event: no later process gives it again
                agent.steer(id, command.text, command.by or "you", command.interrupt)
                await run.journal.barrier()
                return {"id": id, "actor": agent.path}
            case Cancel():
                agent = self._agent(command.actor)
                run.append(CancelRequested(actor=agent.path, by=command.by))
                await run.journal.barrier()
                agent.cancel(command.by or "you")
                return {"actor": agent.path}
            case Compact():
                agent = self._agent(command.actor)
                agent.compactor.ask_for(command.by or "you")
                await run.journal.barrier()
                return {"actor": agent.path}
            case Hold():
                for agent in self._agents(command.actor):
                    agent.hold(command.by or "you")
                await run.journal.barrier()
            case Continue():
                for agent in self._agents(command.actor):
                    agent.go_on(command.by or "you")
                if command.actor is None:
                    let_all_go_on(run, command.by or "you")
                await run.journal.barrier()
            case ChangeLimits():
                return await self._change_limits(command)
            case Status():
                return {"run": run.id, "live": sorted(run.live), "waiting": run.waiting}
        return {}

    async def _decide(self, command: Approve | Deny) -> None:
        approvals = self.live.approvals
        by = command.by or "you"
        try:
            match command:
                case Approve():
                    await approvals.decide(command.id, "allow", by, scope=command.scope, arguments=command.arguments)
                case Deny():
                    await approvals.decide(command.id, "deny", by, why=command.why)
        except AlreadyRecorded as late:
            raise UsageError(str(late)) from late

    async def _change_limits(self, command: ChangeLimits) -> JsonObject:
        run = self.live.run
        agent = self._agent(command.actor)
        limits = run.gate.ledger.change_limits(agent.path, command.limits, command.by or "you")
        agent.limits = limits
        run.append(LimitsChanged(actor=agent.path, limits=limits.as_json(), by=command.by))
        await run.journal.barrier()
        if agent.path in run.live:
            run.deadlines.change(agent.path, limits.timeout)
        run.gate.changed()
        return {"actor": agent.path, "limits": limits.as_json()}

    def _agents(self, actor: str | None) -> list[Agent]:
        return list(self.live.run.live.values()) if actor is None else [self._agent(actor)]

    def _agent(self, actor: str | None) -> Agent:
        live = self.live.run.live
        if not live:
            raise UsageError("too late: the run has ended")
        if actor is None:
            return next(iter(live.values()))
        found = live.get(actor)
        if found is None:
            raise UsageError(f"no live actor '{actor}'{did_you_mean(actor, live)}; live: {', '.join(live)}")
        return found
