"""Decisions only a human can make: by id, once, in any order, over restarts; and who waits is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from runtime.errors import UsageError
from runtime.events import ApprovalDecided, ApprovalRequested, RunWaiting, ToolStarted
from runtime.steering import Steering
from runtime.watch.commands import Approve, Deny, Say

if TYPE_CHECKING:
    from trio.testing import MockClock

    from runtime.app import LiveRun
    from tests.agent.conftest import Stage


class Doings:
    """What a tool that asks first has done."""

    def __init__(self, stage: Stage) -> None:
        self.done: list[str] = []

        @stage.tool(effects="once")
        async def act(key: str) -> str:
            """Do it."""
            self.done.append(key)
            return f"did {key}"


async def asked(live: LiveRun, count: int) -> None:
    """Everybody has come as far as they can, and so many questions are open."""
    await trio.sleep(1)
    assert count == len(live.approvals.pending)


async def test_a_call_runs_when_it_is_allowed_and_not_when_it_is_denied(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """An allowed call runs as it is, or as a human changed it; a denied one gives the model the reason."""
    doings = Doings(stage)
    stage.agent("lead", tools=["act"])
    calls = [f"{{call: {{name: act, arguments: {{key: {key}}}}}}}" for key in "abc"]
    stage.script(f"lead: [{', '.join(calls)}, done]")
    async with stage.opened() as live:
        steering = Steering(live)
        await asked(live, 1)
        await steering.run(Approve(id="a1", by="ada"))
        await asked(live, 1)
        await steering.run(Deny(id="a2", why="not today", by="ada"))
        await asked(live, 1)
        await steering.run(Approve(id="a3", arguments={"key": "other"}, by="ada"))
        await live.report()
    assert ["a", "other"] == doings.done
    assert ["did a", "refused by ada: not today", "did other"] == [each.result for each in stage.results("lead")]


async def test_parallel_questions_are_answered_in_any_order(stage: Stage, autojump_clock: MockClock) -> None:
    """Two children ask at once; each answer goes to its own call, whichever comes first (R60)."""
    doings = Doings(stage)
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["act"])
    stage.script("""\
        lead:
          - calls: [{name: delegate_to_aide, arguments: {task: one}}, {name: delegate_to_aide, arguments: {task: two}}]
          - done
        aide-1: [{call: {name: act, arguments: {key: first}}}, ok]
        aide-2: [{call: {name: act, arguments: {key: second}}}, ok]
        """)
    async with stage.opened() as live:
        await asked(live, 2)
        by_actor = {request.actor: request.id for request in live.approvals.pending}
        await Steering(live).run(Approve(id=by_actor["lead/aide-2"], by="ada"))
        await trio.sleep(10)
        assert ["second"] == doings.done
        await Steering(live).run(Approve(id=by_actor["lead/aide-1"], by="ada"))
        await live.report()
    assert ["second", "first"] == doings.done


async def test_the_first_decision_counts(stage: Stage, autojump_clock: MockClock) -> None:
    """Two people decide at once: one of them is told that it is too late, and the call runs once (R59)."""
    doings = Doings(stage)
    stage.agent("lead", tools=["act"])
    stage.script("lead: [{call: {name: act, arguments: {key: a}}}, done]")
    refused: list[str] = []
    async with stage.opened() as live:
        await asked(live, 1)

        async def decide(by: str) -> None:
            try:
                await Steering(live).run(Approve(id="a1", by=by))
            except UsageError as late:
                refused.append(str(late))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(decide, "ada")
            nursery.start_soon(decide, "bob")
        await live.report()
    assert ["a"] == doings.done
    (first,) = stage.of(ApprovalDecided)
    assert [f"a1 was decided before: allow, by {first.by}"] == refused


async def test_an_interrupted_call_leaves_no_question_open(stage: Stage, autojump_clock: MockClock) -> None:
    """When a call that waits for a human is interrupted, nobody is asked any more, and a late yes is refused (R60)."""
    doings = Doings(stage)
    stage.agent("lead", tools=["act"])
    stage.script("lead: [{call: {name: act, arguments: {key: a}}}, {text: leaving it, stall: 5}]")
    async with stage.opened() as live:
        await asked(live, 1)
        await Steering(live).run(Say(text="leave it", interrupt=True, by="ada"))
        await trio.sleep(1)
        assert () == live.approvals.pending
        with pytest.raises(UsageError, match="a1 waits for no decision"):
            await Steering(live).run(Approve(id="a1", by="bob"))
        await live.report()
    assert [] == doings.done
    assert {} == stage.state.pending


async def test_a_run_waits_only_while_nobody_works(stage: Stage, autojump_clock: MockClock) -> None:
    """`run.waiting` comes when the last one to work has stopped, and again for the next question."""
    Doings(stage)

    @stage.tool(effects="none", private=True)
    async def nap(seconds: int) -> str:
        """Wait."""
        await trio.sleep(seconds)
        return "rested"

    stage.agent("lead", subagents=["aide"], tools=["nap"])
    stage.agent("aide", tools=["act"])
    stage.script("""\
        lead: [{calls: [{name: delegate_to_aide, arguments: {task: go}}, {name: nap, arguments: {seconds: 50}}]}, done]
        aide: [{call: {name: act, arguments: {key: a}}}, {call: {name: act, arguments: {key: b}}}, ok]
        """)
    async with stage.opened() as live:
        await asked(live, 1)
        await trio.sleep(10)
        assert not live.run.waiting
        assert [] == stage.of(RunWaiting)
        await trio.sleep(60)
        assert live.run.waiting
        await Steering(live).run(Approve(id="a1", by="ada"))
        assert not live.run.waiting
        await asked(live, 1)
        await trio.sleep(1)
        assert live.run.waiting
        await Steering(live).run(Approve(id="a2", by="ada"))
        await live.report()
        assert not live.run.waiting
    assert [("a1",), ("a2",)] == [event.on for event in stage.of(RunWaiting)]


async def test_a_run_with_nobody_to_ask_is_put_away_and_goes_on_later(stage: Stage, autojump_clock: MockClock) -> None:
    """Without a human the run is suspended when all wait; decided meanwhile, it goes on where it stood, once."""
    doings = Doings(stage)
    stage.headless = True
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["act"])
    stage.script("""\
        lead: [{call: {name: start_aide, arguments: {task: go}}}, waiting for it, done]
        aide: [{call: {name: act, arguments: {key: a}}}, acted]
        """)
    async with stage.opened() as live:
        assert await live.report() is None
    assert "waiting" == stage.state.phase
    stage.left()
    stage.journal.append(ApprovalDecided(actor="lead/aide-1", id="a1", decision="allow", by="ada"))
    await stage.journal.barrier()
    report = await stage.resume()
    assert ("completed", "done") == (report.status, report.text)
    assert ["a"] == doings.done
    assert 1 == len(stage.of(ApprovalRequested))


async def test_clocks_stand_while_a_human_is_waited_for(stage: Stage, autojump_clock: MockClock) -> None:
    """However long a human takes, no deadline passes meanwhile."""
    doings = Doings(stage)
    stage.agent("lead", subagents=["aide"], timeout=60)
    stage.agent("aide", tools=["act"], timeout=30)
    stage.script("""\
        lead: [{call: {name: delegate_to_aide, arguments: {task: go}}}, {text: done, stall: 20}]
        aide: [{call: {name: act, arguments: {key: a}}}, {text: acted, stall: 20}]
        """)
    async with stage.opened() as live:
        await asked(live, 1)
        await trio.sleep(3 * 24 * 3600)
        await Steering(live).run(Approve(id="a1", by="ada"))
        report = await live.report()
    assert report is not None
    assert ("completed", "done") == (report.status, report.text)
    assert ["a"] == doings.done


async def test_a_call_begun_and_not_recorded_is_not_run_again(stage: Stage) -> None:
    """A tool that may run once and was running when the process died is reported as unclear, never run again."""
    doings = Doings(stage)
    stage.yes = True
    stage.agent("lead", tools=["act"])
    stage.script("lead: [{call: {name: act, arguments: {key: a}}}, done]")
    await stage.killed(when=lambda: bool(doings.done), until=ToolStarted)
    report = await stage.resume()
    assert ("completed", "done") == (report.status, report.text)
    assert ["a"] == doings.done
    result = stage.results("lead")[0]
    assert "unknown" == result.kind
    assert "it may have taken effect" in result.result


async def test_a_check_looks_at_what_a_human_made_of_the_call(stage: Stage, autojump_clock: MockClock) -> None:
    """After a restart a tool's own check gets the arguments the call ran with, not those the model had given."""
    done: list[str] = []

    async def check(arguments: dict[str, str]) -> str | bool:
        await trio.lowlevel.checkpoint()
        return f"paid {arguments['key']}" if arguments["key"] in done else False

    @stage.tool(effects="once", check=check)
    async def pay(key: str) -> str:
        """Pay."""
        done.append(key)
        await trio.sleep(100)
        return "paid"

    stage.agent("lead", tools=["pay"])
    stage.script("lead: [{call: {name: pay, arguments: {key: much}}}, done]")
    async with stage.opened() as live:
        await asked(live, 1)
        await Steering(live).run(Approve(id="a1", arguments={"key": "little"}, by="ada"))
        await trio.sleep(5)
        resumption = stage.left()
    async with stage.opened(resumption) as live:
        await live.report()
    assert ["little"] == done
    assert "paid little" == stage.results("lead")[0].result
