"""People around a live run: they answer late or never, talk, interrupt, hold, cancel, and change the limits."""

from __future__ import annotations

from random import Random

import trio

from runtime.app import LiveRun
from runtime.errors import JournalError, UsageError
from runtime.events import ApprovalRequested, QuestionAsked, RunWaiting
from runtime.steering import Steering
from runtime.watch.commands import Answer, Approve, Cancel, ChangeLimits, Command, Continue, Deny, Hold, Say

from .schedule import Unrest
from .world import Deed, World

HOUR = 3600.0


class People:
    """Those who attend one life of a run; `told` are the ids of steering messages that were accepted."""

    def __init__(self, world: World, live: LiveRun, unrest: Unrest, nursery: trio.Nursery) -> None:
        self.world = world
        self.live = live
        self.steering = Steering(live)
        self.told: dict[str, str] = {}
        self.seqs: list[int] = []
        self._unrest = unrest
        self._nursery = nursery
        self._life = live.run.journal.last_seq

    async def attend(self) -> None:
        """Watch the stream and act, until cancelled."""
        for deed in self.world.deeds:
            moment = trio.Event()
            self._unrest.at(self._unrest.steps + deed.at, moment.set)
            self._nursery.start_soon(self._do, deed, moment)
        if self._life:
            self._nursery.start_soon(self._let_go_on)
        for request in self.live.approvals.pending:
            self._nursery.start_soon(self._decide, request)
        for question in self.live.questions.pending:
            self._nursery.start_soon(self._say_what, question)
        async with self.live.stream.subscribe(1) as reader:
            while batch := await reader.batch():
                for record in batch:
                    if not record.event.kept:
                        continue
                    self.seqs.append(record.seq)
                    match record.event:
                        case ApprovalRequested() as request if record.seq > self._life:
                            self._nursery.start_soon(self._decide, request)
                        case QuestionAsked() as question if record.seq > self._life:
                            self._nursery.start_soon(self._say_what, question)
                        case RunWaiting() if record.seq > self._life:
                            self._nursery.start_soon(self._lose_patience)
                        case _:
                            pass

    async def _let_go_on(self) -> None:
        """What was held when the last process ended is held still."""
        await trio.sleep(1.0)
        await self._tell(Continue(by="ada"))

    async def _decide(self, request: ApprovalRequested) -> None:
        random = self.world.chance("answer", request.actor, request.call_id)
        if random.random() < self.world.silence:
            return
        await self._pause(random)
        await self._answer(request, random)
        if random.random() < 0.2:
            await self._answer(request, random)  # somebody else, too late

    async def _say_what(self, question: QuestionAsked) -> None:
        random = self.world.chance("answer", question.actor, question.call_id)
        if random.random() >= self.world.silence:
            await self._pause(random)
            await self._tell(Answer(id=question.id, text=random.choice(("1", "NO", "ask me later")), by="ada"))

    async def _answer(self, request: ApprovalRequested, random: Random) -> None:
        chance = random.random()
        if chance < 0.25:
            command: Command = Deny(id=request.id, why="no" if chance < 0.1 else "", by="ada")
        elif chance < 0.4 and "key" in request.arguments:
            command = Approve(id=request.id, arguments={"key": request.arguments["key"] + "-edited"}, by="ada")
        else:
            command = Approve(id=request.id, by="bob")
        await self._tell(command)

    async def _pause(self, random: Random) -> None:
        soon, late = [0.0, 0.01, 2.0], [HOUR, 30 * HOUR]
        delays = {"soon": soon, "late": late, "mixed": soon + late}[self.world.answers]
        await trio.sleep(random.choice(delays))

    async def _lose_patience(self) -> None:
        """Everybody waits for an answer that may never come: after a while somebody ends it, one way or another."""
        await trio.sleep(100 * HOUR)
        if self.live.run.waiting:
            random = self.world.chance("patience", self.live.run.journal.last_seq)
            waits: list[Command] = [
                Deny(id=request.id, why="nobody", by="eve") for request in self.live.approvals.pending
            ]
            asks: list[Command] = [
                Answer(id=question.id, text="whatever", by="eve") for question in self.live.questions.pending
            ]
            for command in (*waits, *asks):
                if random.random() < 0.5:
                    await self._tell(command)
                else:
                    await self._tell(Cancel(by="eve"))
                    return

    async def _do(self, deed: Deed, moment: trio.Event) -> None:
        await moment.wait()
        actors = list(self.live.run.live)
        actor = actors[int(deed.pick * len(actors))] if actors else None
        match deed.kind:
            case "say" | "interrupt":
                said = Say(text=f"think of {deed.at}", actor=actor, interrupt=deed.kind == "interrupt", by="ada")
                answer = await self._tell(said)
                if answer is not None:
                    self.told[answer["id"]] = answer["actor"]
            case "cancel":
                await self._tell(Cancel(actor=actor, by="ada"))
            case "cancel run":
                if deed.pick < 0.5:
                    self.live.cancel("ada")
                else:
                    await self._tell(Cancel(by="ada"))
            case "hold":
                whom = actor if deed.pick < 0.6 else None
                await self._tell(Hold(actor=whom, by="ada"))
                await trio.sleep((0.0, 5.0, 3 * HOUR)[int(deed.pick * 3)])
                await self._tell(Continue(by="ada"))
            case "limits":
                name, change = (
                    ("max_steps", "+2"),
                    ("token_budget", "+5000"),
                    ("timeout", "+100"),
                    ("max_steps", "2"),
                    ("max_children", "1"),
                    ("max_concurrent_calls", "1"),
                )[int(deed.pick * 6)]
                await self._tell(ChangeLimits(limits={name: change}, actor=actor, by="ada"))

    async def _tell(self, command: Command) -> dict[str, str] | None:
        try:
            return dict(await self.steering.run(command))
        except (UsageError, JournalError):
            return None
