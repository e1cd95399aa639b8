"""Parents and children: what a child may use, what it leaves behind, and what its trouble does to its parent."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import trio

from runtime.agent import Agent
from runtime.app import LiveRun
from runtime.definitions import Permissions
from runtime.events import ActorFinished, ActorStarted, ApprovalRequested, LoopStopped, ModelRequested
from runtime.journal import MemoryJournal
from runtime.limits.limits import Limits
from runtime.messages import UserMessage
from runtime.steering import Steering
from runtime.watch.commands import Approve

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage

DELEGATE = "{call: {name: delegate_to_aide, arguments: {task: dig}}}"


async def test_a_child_in_a_loop_is_stopped_and_its_parent_told(stage: Stage) -> None:
    """The guard works in a child: its parent's result names the call that went round and how often (R1)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["look"])
    stage.script(f"""\
        lead: [{DELEGATE}, noted]
        aide: [{{call: {{name: look, arguments: {{at: wall}}}}, repeat: 80}}]
        """)
    report = await stage.run()
    assert ("completed", "noted") == (report.status, report.text)
    result = stage.results("lead")[0].result
    assert result.startswith('aide-1 was stopped (loop): look "wall": asked for again although it is refused')
    assert "same call, same result, 6 times" in result
    assert ["lead/aide-1"] == [event.actor for event in stage.of(LoopStopped)]
    assert len(stage.results("lead/aide-1")) <= 8


async def test_a_call_cut_off_by_the_output_limit_is_not_run(stage: Stage) -> None:
    """Arguments that end at the output limit are refused with that reason, and never run with half of them (R14)."""
    stage.agent("lead", tools=["write"])
    written: list[str] = []

    @stage.tool(effects="once")
    async def write(path: str, content: str = "") -> str:
        """Write."""
        written.append(path + content)
        return "written"

    stage.yes = True
    stage.script("""\
        lead:
          - {calls: [{name: write, raw: '{"path":"a","content":"xx'}], finish: length}
          - in pieces then
        """)
    report = await stage.run()
    assert [] == written
    assert "completed" == report.status
    assert "cut off" in stage.results("lead")[0].result or "cannot be read" in stage.results("lead")[0].result


async def test_a_childs_tokens_count_against_its_parents_budget(stage: Stage) -> None:
    """A child cannot begin what its parent's budget does not allow, and its parent is told whose limit it was (R17)."""
    stage.agent("lead", subagents=["aide"], max_output_tokens=300)
    stage.agent("aide", tools=["look"], max_output_tokens=300)
    stage.limits = Limits(token_budget=6_000)
    stage.script(f"""\
        lead: [{DELEGATE}, alone then]
        aide: [{{text: never asked, usage: {{input: 9000, output: 500}}}}]
        """)
    report = await stage.run()
    assert ("completed", "alone then") == (report.status, report.text)
    result = stage.results("lead")[0].result
    assert result.startswith("aide-1 was stopped (token_budget): token_budget:")
    assert "of 6,000" in result
    assert [0, 2] == [event.report["steps"] for event in stage.of(ActorFinished)]


async def test_steps_of_the_whole_tree_are_bounded(stage: Stage) -> None:
    """A child that would go on for long stops where the tree's steps end, though its own limit is far (R18)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["look"], max_steps=50)
    stage.limits = Limits(total_steps=5)
    looks = ", ".join(f"{{call: {{name: look, arguments: {{at: place {number}}}}}}}" for number in range(40))
    stage.script(f"lead: [{DELEGATE}, it was too much]\naide: [{looks}]")
    report = await stage.run()
    assert sum(actor.steps for actor in stage.state.actors.values()) <= 5
    assert "aide-1 was stopped (total_steps)" in stage.results("lead")[0].result
    assert "it was too much" == report.text


async def test_a_cost_limit_that_trips_in_a_child_ends_both(stage: Stage) -> None:
    """A cost that passes the cap inside a child gives the parent a result, and the run a report (R19)."""
    stage.agent("lead", subagents=["aide"], max_output_tokens=300)
    stage.agent("aide", tools=["look"], max_output_tokens=300)
    stage.limits = Limits(cost_budget=0.10)
    stage.script(f"""\
        lead: [{DELEGATE}, never asked]
        aide: [{{call: {{name: look, arguments: {{at: x}}}}, cost: 0.25}}, never asked]
        """)
    report = await stage.run()
    assert ("stopped", "cost_budget", 0.25) == (report.status, report.reason, report.cost_usd)
    assert "aide-1 was stopped (cost_budget)" in stage.results("lead")[0].result
    assert "ended" == stage.state.phase


@pytest.mark.parametrize("tool", ["delegate_to_aide", "start_aide"])
async def test_depth_is_bounded_on_every_way(stage: Stage, tool: str) -> None:
    """A child at the greatest depth is refused one of its own, as a tool result, however it asks (R21)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", subagents=["aide"])
    stage.limits = Limits(max_depth=1)
    stage.script(f"""\
        lead: [{{call: {{name: delegate_to_aide, arguments: {{task: dig}}}}}}, done]
        aide: [{{call: {{name: {tool}, arguments: {{task: dig deeper}}}}}}, alone then]
        """)
    report = await stage.run()
    assert ("completed", "done") == (report.status, report.text)
    refused = stage.results("lead/aide-1")[0]
    assert refused.is_error
    assert "no child can be started" in refused.result
    assert "max_depth 1 of lead" in refused.result
    assert 2 == len(stage.of(ActorStarted))


@pytest.mark.parametrize("tool", ["delegate_to_aide", "start_aide"])
async def test_width_is_bounded_on_every_way(stage: Stage, tool: str, autojump_clock: MockClock) -> None:
    """No more children than allowed are alive at once, and none beyond the total, however they are asked for (R22)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.limits = Limits(max_children=2, max_total_children=3)
    calls = ", ".join(f"{{name: {tool}, arguments: {{task: part {number}}}}}" for number in range(4))
    later = f"{{calls: [{calls}]}}, {{text: hm, stall: 50}}, hm, hm"
    stage.script(
        f"lead: [{{calls: [{calls}]}}, {{text: wait, stall: 50}}, wait, {later}]\naide: [{{text: ok, stall: 5}}]"
    )
    await stage.run()
    texts = [result.result for result in stage.results("lead") if result.is_error]
    assert 2 == sum("lead has 2 at work (max_children 2" in text for text in texts)
    alive = most = 0
    for event in stage.of(ActorStarted, ActorFinished):
        alive += 1 if isinstance(event, ActorStarted) else -1
        most = max(most, alive)
    assert 3 == most
    assert len(stage.of(ActorStarted)) <= 4


async def test_a_second_call_starts_empty_and_the_first_memory_is_freed(stage: Stage) -> None:
    """Every call works with a new child that knows only its task; what the one before held is given back."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["look"])
    stage.script(f"""\
        lead: [{DELEGATE}, {DELEGATE}, done]
        aide-1: [{{call: {{name: look, arguments: {{at: x}}}}}}, {{text: first}}]
        aide-2: [second]
        """)
    agents: list[weakref.ref[Agent]] = []
    async with stage.opened() as live:
        begin = Agent.begin

        def noted(self: Agent, assignment: Any) -> None:
            agents.append(weakref.ref(self))
            begin(self, assignment)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Agent, "begin", noted)
            await live.report()
    state = stage.state
    assert [UserMessage("dig")] == state.actors["lead/aide-2"].history[:1]
    assert 2 == len(state.actors["lead/aide-2"].history)
    gc.collect()
    children = [agent for agent in (ref() for ref in agents) if agent is not None and agent.parent is not None]
    assert [] == children


async def test_a_child_asks_its_model_before_the_next_is_hired(stage: Stage) -> None:
    """Children of one reply begin in the order of the calls, and none waits for the hiring of all."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    calls = ", ".join(f"{{name: delegate_to_aide, arguments: {{task: part {number}}}}}" for number in range(3))
    stage.script(f"lead: [{{calls: [{calls}]}}, done]\naide: [found]")
    await stage.run()
    begun = [(event.type, event.actor) for event in stage.of(ActorStarted, ModelRequested) if event.actor != "lead"]
    kinds = (ActorStarted.type, ModelRequested.type)
    assert begun == [(kind, f"lead/aide-{number}") for number in (1, 2, 3) for kind in kinds]


async def test_a_child_that_hangs_hangs_nobody(stage: Stage, autojump_clock: MockClock) -> None:
    """A child that never comes back ends at its own deadline; the results of its siblings are there all the same."""
    stage.agent("lead", subagents=["aide", "mate"])
    stage.agent("aide", timeout=60)
    stage.agent("mate")
    stage.script("""\
        lead:
          - calls: [{name: delegate_to_aide, arguments: {task: hang}}, {name: delegate_to_mate, arguments: {task: go}}]
          - both heard
        aide: [{text: never, stall: 1000000}]
        mate: [quick]
        """)
    report = await stage.run()
    assert ("completed", "both heard") == (report.status, report.text)
    by_call = {result.call_id: result.result for result in stage.results("lead")}
    assert by_call["a0t0c0"].startswith("aide-1 was stopped (deadline): the time is used up (60 s)")
    assert "quick" == by_call["a0t0c1"]
    assert trio.current_time() <= 61


async def test_a_child_that_crashes_is_an_error_result(stage: Stage) -> None:
    """A fault inside a child becomes its parent's tool result; the run goes on."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"lead: [{DELEGATE}, without it then]\naide: [unused]")
    model = stage.model
    assert model is not None
    complete = model.complete

    async def faulty(request: Any, emit: Any) -> Any:
        if request.agent == "aide":
            raise ZeroDivisionError("in the child")
        return await complete(request, emit)

    model.complete = faulty  # type: ignore[method-assign]  # pyright: ignore[reportAttributeAccessIssue]
    report = await stage.run()
    assert ("completed", "without it then") == (report.status, report.text)
    assert "crashed: in the child" in stage.results("lead")[0].result
    assert "failed" == stage.state.actors["lead/aide-1"].status


async def test_the_same_ask_joins_the_one_at_work(stage: Stage) -> None:
    """The same task to the same child, asked twice at once, is done once and answered twice."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script("""\
        lead:
          - calls:
              - {name: delegate_to_aide, arguments: {task: dig}}
              - {name: delegate_to_aide, arguments: {task: " dig "}}
          - done
        aide: [found]
        """)
    await stage.run()
    assert 2 == len(stage.of(ActorStarted))
    texts = sorted(result.result for result in stage.results("lead"))
    assert "(The same ask was already at work; its report:)\nfound" == texts[0]
    assert "found" == texts[1]


async def test_any_number_of_the_same_ask_join(stage: Stage) -> None:
    """Whoever asks third or later joins like the second."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    calls = ", ".join(["{name: delegate_to_aide, arguments: {task: dig}}"] * 5)
    stage.script(f"lead: [{{calls: [{calls}]}}, done]\naide: [found]")
    await stage.run()
    assert 2 == len(stage.of(ActorStarted))
    assert 5 * ["ok"] == [result.kind for result in stage.results("lead")]
    assert 4 == sum("already at work" in result.result for result in stage.results("lead"))


async def test_an_ask_that_a_human_changed_is_not_the_same_after_a_crash(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """What counts is what a call was allowed to ask: each call gets a child of its own, with its own task."""
    calls = ", ".join(["{name: delegate_to_aide, arguments: {task: dig}}"] * 2)
    stage.script(f"lead: [{{calls: [{calls}]}}, done]\naide: [{{text: found, stall: 5}}]")
    stage.agent("lead", subagents=["aide"], permissions=Permissions(ask=("delegate_to_aide",)))
    stage.agent("aide")
    tasks = {"a1": "bury", "a2": "dig"}

    async def decide(live: LiveRun) -> None:
        await trio.sleep(1)
        for request in live.approvals.pending:
            await Steering(live).run(Approve(id=request.id, arguments={"task": tasks[request.id]}, by="ada"))
        await trio.sleep(1)

    async with trio.open_nursery() as nursery, stage.opened() as live:
        await decide(live)
        begun = [each.seq for each in stage.journal.records if isinstance(each.event, ActorStarted)]
        stage.journal = MemoryJournal(stage.journal.records[: begun[1]])
        nursery.cancel_scope.cancel()
    async with stage.opened(stage.left()) as live:
        await decide(live)
        await live.report()
    assert {event.call_id: event.task for event in stage.of(ActorStarted) if event.parent} == {
        event.call_id: tasks[event.id] for event in stage.of(ApprovalRequested)
    }


@pytest.mark.parametrize("ended", [False, True])
async def test_the_same_ask_joins_the_one_at_work_after_a_crash(stage: Stage, ended: bool) -> None:
    """A call that had joined another is answered by that one's child in the next process too, in whatever order."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script("""\
        lead:
          - calls:
              - {name: delegate_to_aide, arguments: {task: dig}}
              - {name: delegate_to_aide, arguments: {task: " dig "}}
          - done
        aide: [found]
        """)
    last = ActorFinished if ended else ModelRequested
    for _ in range(12):  # calls of a reply begin in any order
        stage.journal = MemoryJournal()
        await stage.killed(when=lambda: len([e for e in stage.of(last) if e.actor != "lead"]) > 0, until=last)
        assert (await stage.resume()).text == "done"
        assert 2 == len(stage.of(ActorStarted))
        texts = sorted(result.result for result in stage.results("lead"))
        assert ["(The same ask was already at work; its report:)\nfound", "found"] == texts
        assert [actor.status for actor in stage.state.actors.values()] == ["completed", "completed"]
