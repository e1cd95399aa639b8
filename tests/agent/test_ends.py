"""How an agent's work ends, whatever ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from runtime.conversation import checked
from runtime.errors import ElencoError, JournalError
from runtime.events import ActorFinished, ModelFailed, RunFinished, Warned
from runtime.journal import MemoryJournal

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage


async def test_an_answer_completes_the_run(stage: Stage) -> None:
    """An answer without calls completes the run."""
    stage.agent("lead")
    stage.script("lead: [the answer]")
    report = await stage.run()
    assert ("completed", "the answer", 1) == (report.status, report.text, report.steps)
    assert "ended" == stage.state.phase


async def test_a_provider_that_fails_fails_the_run_and_keeps_what_was_said(stage: Stage) -> None:
    """A final provider error gives a failed report with the newest words of the model, not a fault of ours."""
    stage.agent("lead", tools=["look"])
    stage.script("""\
        lead:
          - {text: so far so good, call: {name: look, arguments: {at: x}}}
          - {fail: {kind: provider, message: the server broke}}
        """)
    report = await stage.run()
    assert ("failed", "so far so good") == (report.status, report.text)
    assert report.detail.startswith("the server broke")
    assert 1 == len(stage.of(ModelFailed))
    assert [] == stage.of(Warned)


async def test_a_transient_error_is_tried_again(stage: Stage, autojump_clock: MockClock) -> None:
    """An error that may heal is tried again and takes no step."""
    stage.agent("lead", max_steps=2)
    stage.script("""\
        lead:
          - {fail: {kind: overloaded, retryable: true, times: 2}}
          - there now
        """)
    report = await stage.run()
    assert ("completed", "there now", 1) == (report.status, report.text, report.steps)


async def test_an_empty_reply_is_asked_about_once(stage: Stage) -> None:
    """An empty reply gets one more chance; the second one fails the run."""
    stage.agent("lead")
    stage.script("lead: [{text: '', finish: stop}, better]")
    assert "better" == (await stage.run()).text

    stage.journal = MemoryJournal()
    stage.script("lead: [{text: '', finish: stop, repeat: 2}]")
    report = await stage.run()
    assert ("failed", "the model gave an empty answer twice") == (report.status, report.detail)


async def test_an_answer_cut_at_its_length_is_continued_without_a_seam(stage: Stage) -> None:
    """An answer that was cut off is continued, and its pieces are joined as they are."""
    stage.agent("lead")
    stage.script("lead: [{text: 'one, tw', finish: length}, {text: 'o, thr', finish: length}, 'ee']")
    report = await stage.run()
    assert ("completed", "one, two, three") == (report.status, report.text)


async def test_an_answer_that_never_gets_done_is_stopped(stage: Stage) -> None:
    """An answer that is cut off again and again ends with what there is."""
    stage.agent("lead")
    stage.script("""\
        lead: [{text: 'a', finish: length}, {text: 'b', finish: length}, {text: 'c', finish: length},
               {text: 'd', finish: length}, {text: 'e', finish: length}, {text: 'f', finish: length}, never asked for]
        """)
    report = await stage.run()
    assert ("stopped", "length", "abcdef") == (report.status, report.reason, report.text)


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "context_window"])
async def test_a_provider_that_ends_the_answer_is_reported(stage: Stage, reason: str) -> None:
    """A filter, a refusal and a full window end the run with that reason and what was said."""
    stage.agent("lead")
    stage.script(f"lead: [{{text: 'I would rather', finish: {reason}}}]")
    report = await stage.run()
    assert ("stopped", reason, "I would rather") == (report.status, report.reason, report.text)


async def test_a_paused_reply_is_asked_to_go_on(stage: Stage) -> None:
    """A reply the server paused goes on with the next one, as one answer."""
    stage.agent("lead")
    stage.script("lead: [{text: 'first half, ', finish: pause}, second half]")
    assert "first half, second half" == (await stage.run()).text


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_record_that_cannot_be_written_ends_the_run(stage: Stage, number: int) -> None:
    """When a commit fails the run stops with that error, and nothing is written after it."""
    stage.agent("lead", tools=["look"])
    stage.journal = MemoryJournal(fail_barrier=number)
    stage.script("lead: [{call: {name: look, arguments: {at: x}}}, done]")
    with pytest.raises(JournalError, match=f"barrier {number} failed"):
        await stage.run()
    assert [] == [event for event in stage.of(RunFinished) if number < 3]


async def test_a_fault_of_ours_ends_the_run_with_its_traceback_on_record(stage: Stage) -> None:
    """An exception nobody foresaw ends the run as failed, settled, with one line for the person."""
    stage.agent("lead")
    stage.script("lead: [unused]")
    assert stage.model is not None

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("who divides?")

    stage.model.complete = broken  # type: ignore[method-assign, assignment]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ElencoError, match="ZeroDivisionError: who divides"):
        await stage.run()
    state = stage.state
    assert {} == state.actors["lead"].reservations
    assert "failed" == state.actors["lead"].status
    assert ["failed"] == [event.report["status"] for event in stage.of(RunFinished)]
    assert "who divides?" in stage.of(Warned)[0].text


async def test_a_cancelled_run_ends_with_a_report(stage: Stage, autojump_clock: MockClock) -> None:
    """A run that is cancelled ends at once, with who did it and a valid history."""
    stage.agent("lead", tools=["look"])
    stage.script("lead: [{text: thinking, call: {name: look, arguments: {at: x}}}, {text: late, stall: 100}]")
    async with stage.opened() as live:
        await trio.sleep(50)
        live.cancel("ada")
        report = await live.report()
    assert report is not None
    assert ("cancelled", "thinking", "cancelled by ada") == (report.status, report.text, report.detail)
    checked(stage.state.actors["lead"].history)


async def test_a_run_cancelled_before_it_has_begun_ends_too(stage: Stage) -> None:
    """A cancel that comes before the first step is not lost."""
    stage.agent("lead")
    stage.script("lead: [never]")
    async with stage.opened() as live:
        live.cancel("ada")
        report = await live.report()
    assert report is not None
    assert "cancelled" == report.status
    assert ["cancelled"] == [event.report["status"] for event in stage.of(ActorFinished)]
