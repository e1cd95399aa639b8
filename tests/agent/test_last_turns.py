"""The last turn: kept back, asked for with tools off, and made room for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import trio

from runtime.errors import JournalError
from runtime.events import ActorFinished, BudgetReserved, ContextCompacted, ModelFinished, NoteAdded
from runtime.journal import MemoryJournal
from runtime.limits.limits import Limits

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage

LOOKING = "{call: {name: look, arguments: {at: x}}, usage: {input: 100, output: 20}}"


async def test_the_last_step_is_kept_for_the_answer(stage: Stage) -> None:
    """Before max_steps is reached, the last step is used for an answer, and the limit is held exactly."""
    stage.agent("lead", tools=["look"], max_steps=3)
    stage.script(f"lead: [{LOOKING}, {LOOKING}, all I know]")
    report = await stage.run()
    assert ("stopped", "max_steps", "all I know", 3) == (report.status, report.reason, report.text, report.steps)
    assert ["turn", "turn", "wrap_up"] == [event.purpose for event in stage.of(ModelFinished)]
    assert "max_steps: 2 of 3 (agents/lead.md)" in stage.of(NoteAdded)[0].text


async def test_calls_in_the_last_turn_are_dropped(stage: Stage) -> None:
    """Calls that come although tools are off are not in the history and are never run."""
    stage.agent("lead", tools=["look"], max_steps=2)
    stage.script(f"lead: [{LOOKING}, {{text: my best, call: {{name: look, arguments: {{at: y}}}}}}]")
    report = await stage.run()
    assert "my best" == report.text
    assert ["saw x"] == [result.result for result in stage.results("lead")]


async def test_a_spent_token_budget_still_has_its_last_turn(stage: Stage) -> None:
    """When the next call would not fit the token budget, the last one still does, and the budget is kept."""
    stage.agent("lead", tools=["page"], max_output_tokens=256)
    stage.limits = Limits(token_budget=9_000)

    @stage.tool(effects="none", private=True)
    async def page(number: int) -> str:
        """Read a page."""
        return f"page {number} " + "with words " * 100

    pages = ", ".join(f"{{call: {{name: page, arguments: {{number: {number}}}}}}}" for number in range(12))
    stage.script(f"lead: [{pages}]")
    report = await stage.run()
    assert ("stopped", "token_budget") == (report.status, report.reason)
    assert "wrap_up" == stage.of(ModelFinished)[-1].purpose
    assert report.usage.total <= 9_000


async def test_a_deadline_leaves_time_for_the_last_turn(stage: Stage, autojump_clock: MockClock) -> None:
    """A tool that hangs is cut off before the deadline, and the model is asked for what there is."""
    stage.agent("lead", tools=["hang"], timeout=100)

    @stage.tool(effects="none", private=True, timeout=None)
    async def hang() -> str:
        """Wait for ever."""
        await trio.sleep_forever()
        return "never"

    stage.script("lead: [{call: {name: hang, arguments: {}}}, in a word]")
    report = await stage.run()
    assert ("stopped", "deadline", "in a word") == (report.status, report.reason, report.text)
    assert "the time is used up (100 s)" == report.detail
    assert "interrupted" == stage.results("lead")[0].kind
    assert 90 <= trio.current_time() <= 91


async def test_a_last_turn_that_hangs_is_cut_at_the_deadline(stage: Stage, autojump_clock: MockClock) -> None:
    """A last turn has until the deadline and no longer."""
    stage.agent("lead", timeout=100)
    stage.script("lead: [{text: never, stall: 1000000}]")
    report = await stage.run()
    assert ("stopped", "deadline", "") == (report.status, report.reason, report.text)
    assert trio.current_time() < 101


async def test_what_was_streamed_when_the_time_was_up_is_the_partial_answer(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """Words that were seen and paid for are in the report, however the call was ended."""
    stage.agent("lead", tools=["look"], timeout=100)
    words = " ".join(f"word{number}" for number in range(5000))
    stage.script(f"lead: [{{text: before, call: {{name: look, arguments: {{}}}}}}, {{text: {words}, pace: 2}}]")
    report = await stage.run()
    assert ("stopped", "deadline") == (report.status, report.reason)
    assert report.text.startswith("word0 word1 word2")
    assert len(report.text) < len(words)


async def test_results_share_what_a_round_may_add(stage: Stage) -> None:
    """Results over the round's cap are shortened, each with a handle under which the rest can be read."""
    stage.agent("lead", tools=["flood"])

    @stage.tool(effects="none", private=True, max_result_chars=1_000_000)
    async def flood(at: int) -> str:
        """Say very much."""
        return "\n".join(f"{at} {number}" for number in range(30_000))

    stage.script("""\
        lead:
          - calls: [{name: flood, arguments: {at: 1}}, {name: flood, arguments: {at: 2}}]
          - {call: {name: read_result, arguments: {handle: a0t0c1, start: 100000, chars: 20}}}
          - done
        """)
    await stage.run()
    first, second, read = stage.results("lead")
    assert sum(len(result.result) for result in (first, second)) < 48_000
    for result in (first, second):
        assert re.search(rf'left out; read_result\(handle="{result.call_id}", start=\d+\) shows them', result.result)
    assert read.result.startswith("2 ") or "\n2 " in read.result


async def test_many_small_results_do_not_cost_the_last_turn(stage: Stage) -> None:
    """Results that together are more than was kept for them are cut, and the last turn takes place."""
    stage.agent("lead", tools=["look"], max_output_tokens=300)
    stage.limits = Limits(token_budget=3_000)
    calls = ", ".join(f"{{name: look, arguments: {{at: {'x' * 60}{number}}}}}" for number in range(9))
    stage.script(f"lead: [{{calls: [{calls}], usage: {{input: 300, output: 290}}, repeat: 2}}, nine things]")
    report = await stage.run()
    assert ("stopped", "token_budget", "nine things") == (report.status, report.reason, report.text)
    assert report.usage.total <= 3_000


async def test_a_long_message_does_not_cost_the_last_turn(stage: Stage, autojump_clock: MockClock) -> None:
    """A human's message larger than all that is left is cut for the last turn, on record and on replay."""
    stage.agent("lead", tools=["look"], max_output_tokens=300)
    stage.limits = Limits(token_budget=5_000)
    stage.script(f"lead: [{LOOKING}, {{text: too long for me, stall: 5}}]")
    async with stage.opened() as live:
        while not stage.of(BudgetReserved):
            await trio.lowlevel.checkpoint()
        live.run.live["lead"].steer("s1", "and another thing " * 2_000, "ada")
        report = await live.report()
    assert report is not None
    assert ("stopped", "token_budget", "too long for me") == (report.status, report.reason, report.text)
    assert 1 == len(stage.of(ContextCompacted))
    agent = live.run.live.get("lead")
    assert agent is None
    assert report.usage.total <= 5_000


async def test_a_childs_partial_work_comes_back_before_the_parents_deadline(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """A parent's deadline ends its child first, early enough for both to say what they have."""
    stage.agent("lead", subagents=["aide"], timeout=200)
    stage.agent("aide", tools=["look"])
    stage.script("""\
        lead: [{call: {name: delegate_to_aide, arguments: {task: dig}}}, {text: so it stands, stall: 1}]
        aide: [{text: half of it, call: {name: look, arguments: {at: x}}}, {text: the rest, stall: 100000}]
        """)
    report = await stage.run()
    result = stage.results("lead")[0]
    assert "aide-1 was stopped (deadline): the time of lead is used up (200 s)" in result.result
    assert "half of it" in result.result
    assert ("stopped", "deadline", "so it stands") == (report.status, report.reason, report.text)
    assert trio.current_time() <= 200


async def test_a_child_that_is_cut_off_leaves_its_words(stage: Stage, autojump_clock: MockClock) -> None:
    """A delegation that is interrupted gives the parent what the child had said by then."""
    stage.agent("lead", subagents=["aide"])
    stage.agent("aide", tools=["look"])
    stage.script("""\
        lead: [{call: {name: delegate_to_aide, arguments: {task: dig}}}, I see]
        aide: [{text: a first find, call: {name: look, arguments: {at: x}}}, {text: more, stall: 1000}]
        """)
    async with stage.opened() as live:
        await trio.sleep(10)
        live.run.live["lead"].steer("s1", "enough", "ada", interrupt=True)
        await live.report()
    result = stage.results("lead")[0]
    assert "interrupted" == result.kind
    assert result.result.endswith("Partial work of aide:\na first find")


class Stuck(MemoryJournal):
    """A disk that answers no more once an actor has ended."""

    async def barrier(self) -> None:
        if any(isinstance(record.event, ActorFinished) for record in self.records):
            await trio.sleep_forever()
        await super().barrier()


async def test_a_disk_that_no_longer_answers_holds_no_end_up(stage: Stage, autojump_clock: MockClock) -> None:
    """The end of a run is told as not recorded after a while, and the program goes on."""
    stage.agent("lead")
    stage.script("lead: [done]")
    stage.journal = Stuck()
    with pytest.raises(JournalError, match="could not be written within 10 s"):
        await stage.run()
    assert trio.current_time() < 30
