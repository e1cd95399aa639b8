"""Commands to a live run, carried out: decisions, steering messages, cancel, hold, limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import attrs

from .agent import Agent
from .app import LiveRun
from .errors import JournalError, UsageError, did_you_mean
from .events import ActorContinued, ActorHeld, CancelRequested, LimitsChanged, McpSwitched
from .holds import RUN
from .journal.interface import AlreadyRecorded
from .messages import JsonObject
from .switching import switch_model
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
    SetModel,
    Status,
    SwitchServer,
)
from .watch.recorded import check_expected


@attrs.define(eq=False)
class Steering:
    """The Commands of one live run."""

    live: LiveRun

    async def run(self, command: Command) -> JsonObject:
        """Carry a command out, durably before it is answered. Raises UsageError, JournalError.

        A record that cannot be written ends the run, also when all its actors wait and write nothing themselves.
        """
        try:
            return await _ACTIONS[type(command)](self, command)
        except AlreadyRecorded as late:
            raise UsageError(str(late)) from late
        except JournalError as error:
            self.live.run.fail(error)
            raise

    async def approve(self, command: Approve) -> JsonObject:
        await self.live.approvals.decide(
            command.id, "allow", _by(command), scope=command.scope, arguments=command.arguments
        )
        return await self._done()

    async def deny(self, command: Deny) -> JsonObject:
        await self.live.approvals.decide(command.id, "deny", _by(command), why=command.why)
        return await self._done()

    async def answer(self, command: Answer) -> JsonObject:
        given = await self.live.questions.answer(command.id, command.text, _by(command))
        return await self._done(answer=given.answer)

    async def say(self, command: Say) -> JsonObject:
        agent = await self._agent(command.actor)
        id = f"s{self.live.run.journal.last_seq + 1}"  # the place of its event: no later process gives it again
        agent.steer(id, command.text, _by(command), command.interrupt)
        return await self._done(id=id, actor=agent.path)

    async def cancel(self, command: Cancel) -> JsonObject:
        if command.actor is None and not self.live.begun:
            self.live.cancel(_by(command))
            return await self._done(actor="")
        agent = await self._agent(command.actor)
        if by := agent.standing.cancelled_by:
            raise UsageError(f"{agent.path} is being cancelled already, by {by}")
        self.live.run.append(CancelRequested(actor=agent.path, by=command.by))
        agent.standing.cancelled_by = _by(command)
        try:
            return await self._done(actor=agent.path)
        finally:
            agent.cancel(_by(command))

    async def compact(self, command: Compact) -> JsonObject:
        agent = await self._agent(command.actor)
        agent.compactor.ask_for(_by(command))
        return await self._done(actor=agent.path)

    async def hold(self, command: Hold) -> JsonObject:
        run = self.live.run
        path = await self._held(command.actor)
        run.holds.hold(path, _by(command))
        run.append(ActorHeld(actor=path, by=_by(command)))
        return await self._done(actor=path)

    async def go_on(self, command: Continue) -> JsonObject:
        run = self.live.run
        path = await self._held(command.actor)
        for each in run.holds.release(path):
            run.append(ActorContinued(actor=each, by=_by(command)))
        return await self._done(actor=path)

    async def change_limits(self, command: ChangeLimits) -> JsonObject:
        run = self.live.run
        agent = await self._agent(command.actor)
        check_expected(run.gate.ledger.limits(agent.path), command.expect, agent.path)
        self._refuse_unpriced(agent, command.limits)
        limits = run.gate.ledger.change_limits(agent.path, command.limits, _by(command))
        agent.limits = limits
        run.append(LimitsChanged(actor=agent.path, limits=limits.as_json(), by=command.by))
        done = await self._done(actor=agent.path, limits=limits.as_json())
        if agent.path in run.live:
            run.deadlines.change(agent.path, limits.timeout)
        run.gate.changed()
        return done

    async def switch(self, command: SwitchServer) -> JsonObject:
        run, server = self.live.run, command.server
        await self._agent(None)
        if server not in run.mcps.entries:
            known = ", ".join(run.mcps.entries) or "none"
            raise UsageError(
                f"no agent of this run names the MCP server '{server}'{did_you_mean(server, run.mcps.entries)}; "
                f"there are: {known}"
            )
        if run.mcps.stands(server) == command.on:
            raise UsageError(f"{server} is {'enabled' if command.on else 'disabled'} already")
        run.append(McpSwitched(server=server, on=command.on, by=_by(command)))
        done = await self._done(server=server, on=command.on)
        await run.mcps.switch(server, on=command.on)
        return done

    async def set_model(self, command: SetModel) -> JsonObject:
        one = await self._agent(command.actor) if command.actor is not None else None
        changed = switch_model(self.live.run, command.model, one, _by(command))
        return await self._done(model=command.model, actors=changed)

    async def status(self, command: Status) -> JsonObject:
        del command
        return {"run": self.live.id, **await self.live.stream.overview()}

    async def _done(self, **result: Any) -> JsonObject:
        """The result, once all that was recorded is durable."""
        journal = self.live.run.journal
        seq = journal.last_seq
        await journal.barrier()
        return {"seq": seq, **result}

    async def _held(self, actor: str | None) -> str:
        """Under which path a live actor, or the whole run for None, is held."""
        agent = await self._agent(actor)
        return RUN if actor is None else agent.path

    async def _agent(self, actor: str | None) -> Agent:
        """The live actor of that path, the root for None. Raises UsageError saying why there is none."""
        run = self.live.run
        found = next(iter(run.live.values()), None) if actor is None else run.live.get(actor)
        if found is not None:
            return found
        if not self.live.begun:
            raise UsageError("the run is only just starting: try again in a moment")
        if not run.live:
            raise UsageError("too late: the run has ended")
        known = await self.live.stream.overview()
        statuses = {each["path"]: each["status"] for each in known["actors"]}
        if statuses.get(str(actor), "running") != "running":
            raise UsageError(f"too late: {actor} has ended ({statuses[str(actor)]})")
        raise UsageError(f"no live actor '{actor}'{did_you_mean(str(actor), run.live)}; live: {', '.join(run.live)}")

    def _refuse_unpriced(self, agent: Agent, limits: Mapping[str, object]) -> None:
        if "cost_budget" not in limits:
            return
        for path, each in self.live.run.live.items():
            if (path + "/").startswith(agent.path + "/") and each.model.price is None:
                raise UsageError(f"cost_budget cannot be kept: no price is known for {each.model.full_name}")


def _by(
    command: Approve
    | Deny
    | Answer
    | Say
    | Cancel
    | Hold
    | Continue
    | Compact
    | ChangeLimits
    | SetModel
    | SwitchServer,
) -> str:
    return command.by or "you"


_Action: TypeAlias = Callable[[Steering, Any], Awaitable[JsonObject]]

_ACTIONS: Mapping[type[Command], _Action] = {
    Approve: Steering.approve,
    Deny: Steering.deny,
    Answer: Steering.answer,
    Say: Steering.say,
    Cancel: Steering.cancel,
    Compact: Steering.compact,
    Hold: Steering.hold,
    Continue: Steering.go_on,
    ChangeLimits: Steering.change_limits,
    SwitchServer: Steering.switch,
    SetModel: Steering.set_model,
    Status: Steering.status,
}
