"""Words from outside while an agent works: when they enter, what they interrupt, and what comes too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from runtime.conversation import checked
from runtime.errors import UsageError
from runtime.events import ActorContinued, ActorHeld, ModelRequested, SteerReceived, ToolStarted
from runtime.messages import AssistantMessage, ToolResults, UserMessage
from runtime.model import Delta
from runtime.steering import Steering
from runtime.watch.commands import Approve, Cancel, ChangeLimits, Command, Continue, Hold, Say, Status

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage


def naps(stage: Stage) -> None:
    """A tool that takes its time."""

    @stage.tool(effects="none", private=True)
    async def nap(seconds: int) -> str:
        """Wait."""
        await trio.sleep(seconds)
        return f"slept {seconds}"


async def test_words_enter_after_all_results_of_the_round(stage: Stage, autojump_clock: MockClock) -> None:
    """A message sent in the middle of a round enters when each of its calls has a result, before the next request."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("""\
        lead:
          - calls: [{name: nap, arguments: {seconds: 10}}, {name: nap, arguments: {seconds: 20}}]
          - as you say
        """)
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Say(text="only docs/", by="ada"))
        await live.report()
    kinds = [type(message) for message in stage.state.actors["lead"].history]
    assert [UserMessage, AssistantMessage, ToolResults, UserMessage, AssistantMessage] == kinds
    assert UserMessage("only docs/", "steer") == stage.state.actors["lead"].history[3]
    assert [False, True] == [event.entered for event in stage.of(SteerReceived)]


async def test_an_answer_waits_for_words_that_came_before_it(stage: Stage, autojump_clock: MockClock) -> None:
    """A message that comes while the last reply is under way is still answered before the run ends."""
    stage.agent("lead")
    stage.script("lead: [{text: finished, stall: 10}, and that as well]")
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Say(text="one more thing", by="ada"))
        report = await live.report()
    assert report is not None
    assert ("completed", "and that as well") == (report.status, report.text)


async def test_an_interruption_gives_typed_results(stage: Stage, autojump_clock: MockClock) -> None:
    """`say --interrupt` ends the running calls with a result that says so; what had ended keeps its own."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("""\
        lead:
          - calls: [{name: nap, arguments: {seconds: 1}}, {name: nap, arguments: {seconds: 900}}]
          - at once
        """)
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Say(text="stop that", interrupt=True, by="ada"))
        report = await live.report()
    assert report is not None
    assert "at once" == report.text
    assert trio.current_time() < 6
    kinds = {result.call_id: (result.kind, result.result) for result in stage.results("lead")}
    assert ("ok", "slept 1") == kinds["a0t0c0"]
    assert ("interrupted", "interrupted by a message from ada") == kinds["a0t0c1"]


async def test_words_to_who_has_ended_are_refused(stage: Stage, autojump_clock: MockClock) -> None:
    """A message to an actor that has ended, or gives its last answer, is refused: it would never be read."""
    stage.agent("lead", tools=["look"], max_steps=1)
    stage.script("lead: [{text: that is all, stall: 10}]")
    async with stage.opened() as live:
        await trio.sleep(5)
        with pytest.raises(UsageError, match="too late: lead gives its last answer"):
            await Steering(live).run(Say(text="wait", by="ada"))
        await live.report()
        with pytest.raises(UsageError, match="too late: the run has ended"):
            await Steering(live).run(Say(text="wait", by="ada"))
    assert [] == stage.of(SteerReceived)


async def test_one_actor_is_cancelled_and_the_rest_goes_on(stage: Stage, autojump_clock: MockClock) -> None:
    """Cancelling a child ends it and all below it; its parent gets a result and goes on."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", subagents=["mate"])
    stage.agent("mate")
    stage.script("""\
        lead: [{call: {name: delegate_to_aide, arguments: {task: dig}}}, without it]
        aide: [{text: I begin, call: {name: delegate_to_mate, arguments: {task: dig}}}, never]
        mate: [{text: never, stall: 1000}]
        """)
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Cancel(actor="lead/aide-1", by="ada"))
        report = await live.report()
    assert report is not None
    assert ("completed", "without it") == (report.status, report.text)
    assert trio.current_time() < 6
    result = stage.results("lead")[0]
    assert result.result.startswith("aide-1 cancelled: cancelled by ada")
    assert "I begin" in result.result
    statuses = {path: actor.status for path, actor in stage.state.actors.items()}
    assert {"lead": "completed", "lead/aide-1": "cancelled", "lead/aide-1/mate-1": "cancelled"} == statuses


async def test_a_cancelled_call_leaves_a_valid_history(stage: Stage, autojump_clock: MockClock) -> None:
    """A run that is cancelled while a tool sleeps has an interrupted result for it, so that it can go on (R50)."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("lead: [{call: {name: nap, arguments: {seconds: 900}}}, on we go]")
    async with stage.opened() as live:
        await trio.sleep(5)
        live.cancel("ada")
        await live.report()
    assert ["interrupted"] == [result.kind for result in stage.results("lead")]
    checked(stage.state.actors["lead"].history)
    report = await stage.resume()
    assert ("completed", "on we go") == (report.status, report.text)


async def test_a_held_run_stands_still_and_goes_on(stage: Stage, autojump_clock: MockClock) -> None:
    """A held actor stops before its next step, its clock with it, until it is let go."""
    naps(stage)
    stage.agent("lead", tools=["nap"], timeout=100)
    stage.script("lead: [{call: {name: nap, arguments: {seconds: 10}}}, rested]")
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Hold(by="ada"))
        await trio.sleep(5000)
        assert 1 == len(stage.of(ModelRequested))
        await Steering(live).run(Continue(by="ada"))
        report = await live.report()
    assert report is not None
    assert ("completed", "rested") == (report.status, report.text)
    assert (1, 1) == (len(stage.of(ActorHeld)), len(stage.of(ActorContinued)))


async def test_a_held_actor_can_be_cancelled(stage: Stage, autojump_clock: MockClock) -> None:
    """Holding somebody does not keep him from being cancelled."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("lead: [{call: {name: nap, arguments: {seconds: 10}}}, never]")
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Hold(by="ada"))
        await trio.sleep(100)
        await Steering(live).run(Cancel(by="ada"))
        report = await live.report()
        with pytest.raises(UsageError, match="too late: the run has ended"):
            await Steering(live).run(Continue(by="ada"))
    assert report is not None
    assert "cancelled" == report.status
    assert 1 == len(stage.of(ToolStarted))


async def test_words_keep_their_name_over_a_restart(stage: Stage, autojump_clock: MockClock) -> None:
    """Messages of two processes of one run are never taken for each other, and a message not read yet is read then."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("lead: [{call: {name: nap, arguments: {seconds: 900}}}, {text: both, stall: 5}, both heard]")
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Say(text="first", by="ada"))
        resumption = stage.left()
    async with stage.opened(resumption) as live:
        await trio.sleep(2)
        await Steering(live).run(Say(text="second", by="bob"))
        report = await live.report()
    assert report is not None
    assert 1 == stage.state.actors["lead"].history.count(UserMessage("first", "steer"))
    assert 2 == len({event.id for event in stage.of(SteerReceived)})
    assert 2 == sum(event.entered for event in stage.of(SteerReceived))


async def test_a_held_run_holds_who_begins_later_too(stage: Stage, autojump_clock: MockClock) -> None:
    """Holding the run stops every actor before its next step, a child that begins meanwhile as well; clocks stand."""
    stage.agent("lead", tools=["write"], subagents=["aide"], timeout=100)
    stage.agent("aide")
    stage.yes = True

    @stage.tool(effects="idempotent")
    async def write() -> str:
        """Take 5 s."""
        await trio.sleep(5)
        return "written"

    stage.script("""\
        lead: [{calls: [{name: write}, {name: delegate_to_aide, arguments: {task: dig}}]}, both]
        aide: [dug]
        """)
    async with stage.opened() as live:
        await trio.sleep(1)
        await Steering(live).run(Hold(by="ada"))
        await trio.sleep(5000)
        assert ["lead"] == [event.actor for event in stage.of(ModelRequested)]
        stage.journal.flush()
        told = await Steering(live).run(Status())
        lead, aide = told["actors"]
        assert ("held", [{"kind": "hold", "id": "ada"}]) == (told["phase"], aide["waits_for"])
        assert [("stands", 5), ("stands", 0)] == [(each["clock"], each["elapsed"]) for each in (lead, aide)]
        await Steering(live).run(Continue(by="ada"))
        report = await live.report()
    assert report is not None
    assert ("completed", "both") == (report.status, report.text)


async def test_a_hold_survives_the_process(stage: Stage, autojump_clock: MockClock) -> None:
    """Whoever was held when a process died is held in the next one, until somebody lets him go on."""
    naps(stage)
    stage.agent("lead", tools=["nap"])
    stage.script("lead: [{call: {name: nap, arguments: {seconds: 10}}}, rested]")
    async with stage.opened() as live:
        await trio.sleep(5)
        await Steering(live).run(Hold(actor="lead", by="ada"))
        await trio.sleep(100)
        resumption = stage.left()
        live.cancel()
    async with stage.opened(resumption) as live:
        await trio.sleep(5000)
        assert 1 == len(stage.of(ModelRequested))
        with pytest.raises(UsageError, match="lead is held already, by ada"):
            await Steering(live).run(Hold(actor="lead", by="bob"))
        await Steering(live).run(Continue(actor="lead", by="bob"))
        report = await live.report()
    assert report is not None
    assert "rested" == report.text


async def test_a_command_that_changes_nothing_is_refused(stage: Stage, autojump_clock: MockClock) -> None:
    """Cancelled, held or let go twice, a limit that has changed meanwhile, an actor that ended: each is said."""
    naps(stage)
    stage.agent("lead", tools=["nap"], subagents=["aide"])
    stage.agent("aide")
    stage.script("""\
        lead:
          - call: {name: delegate_to_aide, arguments: {task: dig}}
          - call: {name: nap, arguments: {seconds: 900}}
        aide: [dug]
        """)
    async with stage.opened() as live:
        await trio.sleep(5)
        steering = Steering(live)
        refused: list[tuple[Command, str]] = [
            (Continue(), "the run is not held"),
            (Continue(actor="lead"), "lead is not held"),
            (Say(text="x", actor="lead/aide-1"), r"too late: lead/aide-1 has ended \(completed\)"),
            (Say(text="x", actor="laed"), "no live actor 'laed'; did you mean 'lead'.*; live: lead"),
            (ChangeLimits(limits={"max_steps": 5}, expect={"max_steps": 7}), "max_steps of lead is 90 by now, not 7"),
            (Approve(id="a1"), "a1 waits for no decision; open: none"),
        ]
        for command, why in refused:
            with pytest.raises(UsageError, match=why):
                await steering.run(command)
        answer = await steering.run(ChangeLimits(limits={"max_steps": "+5"}, expect={"max_steps": 90}, by="ada"))
        assert 95 == answer["limits"]["max_steps"]
        assert stage.journal.durable_seq == answer["seq"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(steering.run, Cancel(by="ada"))
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            with pytest.raises(UsageError, match=r"being cancelled already, by ada|too late"):
                await steering.run(Cancel(by="bob"))
        await live.report()


async def test_a_snapshot_holds_what_a_page_shows(stage: Stage, autojump_clock: MockClock) -> None:
    """What each actor waits for, its budgets, its own and inherited ones, its clock, and what is said just now."""
    stage.agent("lead", subagents=["aide", "mate"], timeout=100, token_budget=50_000)
    stage.agent("aide", tools=["erase"], max_steps=7)
    stage.agent("mate")

    @stage.tool(effects="once")
    async def erase() -> str:
        """Erase it."""
        return "gone"

    stage.script("""\
        lead:
          - calls:
              - {name: delegate_to_aide, arguments: {task: dig}}
              - {name: delegate_to_mate, arguments: {task: dig}}
        aide: [{call: {name: erase}, usage: {input: 40, output: 2}}]
        mate: [{text: never, stall: 1000}]
        """)
    async with stage.opened() as live:
        await trio.sleep(5)
        live.stream.publish_deltas("lead/mate-1", [Delta("text", "so far")])
        told = await Steering(live).run(Status())
        await Steering(live).run(Cancel(by="ada"))
    actors = {each["path"]: each for each in told["actors"]}
    assert [{"kind": "child", "id": "lead/aide-1"}, {"kind": "child", "id": "lead/mate-1"}] == actors["lead"][
        "waits_for"
    ]
    assert [{"kind": "approval", "id": "a1"}] == actors["lead/aide-1"]["waits_for"]
    assert [{"kind": "model", "id": "scripted/s"}] == actors["lead/mate-1"]["waits_for"]
    assert {"lead/mate-1": [{"kind": "text", "index": 0, "text": "so far"}]} == told["turns"]
    assert ["stands", "runs"] == [actors[path]["clock"] for path in ("lead/aide-1", "lead/mate-1")]
    assert 42 == actors["lead/aide-1"]["context"]["tokens"]
    budgets = {(each["scope"], each["limit"]): (each["used"], each["of"]) for each in actors["lead/aide-1"]["budgets"]}
    assert (1, 7) == budgets["lead/aide-1", "max_steps"]
    assert (5.0, 100) == budgets["lead", "timeout"]
    assert (2, 64) == budgets["lead", "max_total_children"]
    assert 50_000 == budgets["lead", "token_budget"][1]
    assert ("lead", "max_steps") not in budgets
    assert (2, 42) == (actors["lead"]["total"]["steps"], actors["lead/aide-1"]["total"]["usage"]["input"] + 2)
