"""Children in the background: their parent goes on, and hears of each of them exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from runtime.events import ActorFinished, MessageReceived, MessageSent, ToolFinished
from runtime.messages import UserMessage

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage

START = "{call: {name: start_aide, arguments: {task: dig}}}"
SENT = "Message from lead/aide-1:\ndug up"


def heard(stage: Stage) -> list[str]:
    """What entered the lead's history as a message about its child."""
    return [
        message.text
        for message in stage.state.actors["lead"].history
        if isinstance(message, UserMessage) and message.text.startswith("Message from")
    ]


async def test_a_report_comes_as_a_message_when_nobody_awaits_it(stage: Stage, autojump_clock: MockClock) -> None:
    """A parent that wants to finish waits for its child, reads its report as a message, and answers then."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"lead: [{START}, busy with something else, now I know]\naide: [{{text: dug up, stall: 500}}]")
    report = await stage.run()
    assert ("completed", "now I know") == (report.status, report.text)
    assert [SENT] == heard(stage)
    assert {} == stage.state.undelivered


async def test_an_awaited_report_is_the_calls_result(stage: Stage, autojump_clock: MockClock) -> None:
    """A report that is awaited is the result of that call, and is not delivered a second time."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"""\
        lead:
          - {START}
          - {{call: {{name: await_agent, arguments: {{name: aide-1}}}}}}
          - {{call: {{name: await_agent, arguments: {{name: aide-1}}}}}}
          - done
        aide: [{{text: dug up, stall: 500}}]
        """)
    await stage.run()
    first, second, third = stage.results("lead")
    assert first.result.startswith("aide-1 has started")
    assert "dug up" == second.result
    assert "no background agent 'aide-1' has a report to give; there is: none" == third.result
    assert [] == heard(stage)


async def test_a_report_not_yet_read_survives_the_process(stage: Stage, autojump_clock: MockClock) -> None:
    """A child that ended just before the process died is heard of after the restart, once (R56)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"lead: [{START}, {{text: now I know, stall: 0.5}}]\naide: [dug up]")
    await stage.killed(when=lambda: bool(stage.of(MessageSent)))
    assert [] == stage.of(MessageReceived)
    report = await stage.resume()
    assert ("completed", "now I know") == (report.status, report.text)
    assert [SENT] == heard(stage)


async def test_a_report_lost_between_end_and_message_is_sent_again(stage: Stage, autojump_clock: MockClock) -> None:
    """When the process dies after a child's end is on record and before its message is, the message is made up for."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"lead: [{START}, {{text: now I know, stall: 0.5}}]\naide: [dug up]")
    await stage.killed(when=lambda: bool(stage.of(MessageSent)), until=ActorFinished)
    assert [] == stage.of(MessageSent)
    report = await stage.resume()
    assert ("completed", "now I know") == (report.status, report.text)
    assert [SENT] == heard(stage)


async def test_a_child_at_work_goes_on_after_a_restart(stage: Stage, autojump_clock: MockClock) -> None:
    """A background child that was at work when the process died works on, and its parent hears of it once (R56)."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["look"])
    stage.script(f"""\
        lead: [{START}, {{text: busy, stall: 50}}, now I know]
        aide: [{{call: {{name: look, arguments: {{at: x}}}}}}, {{text: dug up, stall: 5}}]
        """)
    await stage.killed(when=lambda: any(event.actor == "lead/aide-1" for event in stage.of(ToolFinished)))
    assert "running" == stage.state.actors["lead/aide-1"].status
    report = await stage.resume()
    assert ("completed", "now I know") == (report.status, report.text)
    assert [SENT] == heard(stage)


async def test_a_parent_at_its_last_turn_hears_what_its_children_have(stage: Stage, autojump_clock: MockClock) -> None:
    """Children still at work when a limit ends their parent are cut off, and their words reach its last turn."""
    stage.agent("lead", tools=["nap"], subagents=["aide"], max_steps=2)
    stage.agent("aide", tools=["look"])
    stage.script("""\
        lead: [{calls: [{name: start_aide, arguments: {task: dig}}, {name: nap, arguments: {}}]}, so far this]
        aide: [{text: half a find, call: {name: look, arguments: {at: x}}}, {text: more, stall: 100000}]
        """)

    @stage.tool(effects="none", private=True)
    async def nap() -> str:
        """Wait a little."""
        await trio.sleep(5)
        return "rested"

    report = await stage.run()
    assert ("stopped", "so far this") == (report.status, report.text)
    assert ["Message from lead/aide-1:\nlead/aide-1 was cut off.\n\nIts partial work:\nhalf a find"] == heard(stage)


async def test_words_wake_a_parent_that_waits_for_its_children(stage: Stage, autojump_clock: MockClock) -> None:
    """A human's message to a parent that only waits is read at once, not when the child comes back."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide")
    stage.script(f"""\
        lead: [{START}, waiting, I heard you, now I know]
        aide: [{{text: dug up, stall: 500}}]
        """)
    async with stage.opened() as live:
        await trio.sleep(100)
        live.run.live["lead"].steer("s1", "still there?", "ada")
        await trio.sleep(1)
        assert "I heard you" == live.run.live["lead"].words
        report = await live.report()
    assert report is not None
    assert "now I know" == report.text
