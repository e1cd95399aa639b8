"""Questions to a human: on record, answered once, by whoever is first; clocks stand still meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.choice import chosen
from runtime.errors import UsageError
from runtime.events import ActorFinished, ApprovalRequested, QuestionAnswered, QuestionAsked, RunWaiting
from runtime.journal import MemoryJournal
from runtime.limits.limits import Limits
from runtime.questions import Questions
from runtime.steering import Steering
from runtime.watch.commands import Answer

ASKING = """
    lead:
      - calls: [{name: ask_user, arguments: {question: "  which one? ", options: [red, blue]}}]
      - done
"""


async def test_an_answer_is_the_result_of_the_call(stage: Any) -> None:
    """The question and the answer are on record, the run waits in between, and no permission is needed."""
    stage.cast("ask_user")
    stage.script(ASKING)
    async with stage.opened() as live:
        asked = await stage.pending(live)
        assert (asked.id, asked.text, asked.options) == ("q1", "which one?", ("red", "blue"))
        await stage.until(lambda: live.run.waiting)
        steering = Steering(live)
        assert "blue" == (await steering.run(Answer(id="q1", text="2", by="ann")))["answer"]
        with pytest.raises(UsageError, match="q1 was answered before, by ann"):
            await steering.run(Answer(id="q1", text="1"))
        report = await live.report()
    assert report is not None
    assert report.status == "completed"
    assert stage.results == ["blue"]
    (given_,) = stage.of(QuestionAnswered)
    assert (given_.answer, given_.by, given_.actor) == ("blue", "ann", "lead")
    assert [event.on for event in stage.of(RunWaiting)] == [("q1",)]
    assert stage.of(ApprovalRequested) == []


async def test_two_questions_wait_side_by_side(stage: Any) -> None:
    """Both are open at once and answered in any order; an empty answer is none."""
    stage.cast("ask_user")
    stage.script("""
        lead:
          - calls:
              - {name: ask_user, arguments: {question: "one?"}}
              - {name: ask_user, arguments: {question: "two?"}}
          - done
    """)
    async with stage.opened() as live:
        await stage.until(lambda: len(live.questions.pending) == 2)
        by_text = {question.text: question.id for question in live.questions.pending}
        with pytest.raises(UsageError, match="is empty"):
            await live.questions.answer(by_text["one?"], "  ", "you")
        await live.questions.answer(by_text["two?"], "second", "you")
        await live.questions.answer(by_text["one?"], "first", "you")
        await live.report()
    assert set(stage.results) == {"first", "second"}


async def test_with_nobody_there_the_run_is_left_to_wait(stage: Any) -> None:
    """Headless, the process ends with the question on record; one that takes over does not ask again."""
    stage.cast("ask_user")
    stage.script(ASKING)
    stage.headless = True
    assert await stage.run() is None
    assert stage.of(ActorFinished) == []
    stage.journal = MemoryJournal(stage.journal.records, contents=stage.journal.contents)
    stage.journal.append(QuestionAnswered(actor="lead", id="q1", answer="red", by="later"))
    report = await stage.run(resume=True)
    assert report is not None
    assert report.status == "completed"
    assert len(stage.of(QuestionAsked)) == 1
    assert stage.results == ["red"]


async def test_with_nobody_there_the_settings_may_answer(stage: Any) -> None:
    """An answer in the settings is taken instead of waiting, and on record as theirs."""
    stage.cast("ask_user")
    stage.script(ASKING)
    stage.headless = True
    (stage.workspace / "elenco.yaml").write_text("approvals: {answer: choose yourself}\n")
    report = await stage.run()
    assert report is not None
    assert report.status == "completed"
    assert stage.results == ["choose yourself"]
    assert [event.by for event in stage.of(QuestionAnswered)] == ["the settings"]


async def test_nobody_answers_in_time(stage: Any, autojump_clock: MockClock) -> None:
    """After the time-out the agent goes on without an answer, or with the one from the settings."""
    stage.cast("ask_user")
    stage.script(ASKING)
    (stage.workspace / "elenco.yaml").write_text("approvals: {timeout: 3600}\n")
    await stage.run_long()
    assert stage.results == ["nobody answered within 3600 s; go on as you think best, and say what you assumed"]
    stage.journal = MemoryJournal()
    (stage.workspace / "elenco.yaml").write_text("approvals: {timeout: 3600, answer: red}\n")
    await stage.run_long()
    assert stage.results == ["red"]
    assert [event.by for event in stage.of(QuestionAnswered)] == ["time-out"]


async def test_the_clock_stands_still_while_a_human_thinks(stage: Any, autojump_clock: MockClock) -> None:
    """An hour's thought does not use up a run's minute."""
    stage.cast("ask_user")
    stage.script(ASKING)
    stage.limits = Limits(timeout=60)
    async with stage.opened() as live:
        asked = await stage.pending(live)
        await trio.sleep(3600)
        await live.questions.answer(asked.id, "red", "you")
        report = await live.report()
    assert report is not None
    assert report.status == "completed"


async def test_a_question_ends_with_its_actor(stage: Any) -> None:
    """A cancelled run has no open question left, and a late answer is refused."""
    stage.cast("ask_user")
    stage.script(ASKING)
    async with stage.opened() as live:
        await stage.pending(live)
        live.cancel()
        report = await live.report()
        assert report is not None
        assert report.status == "cancelled"
        assert live.run.waits_for == ()
        with pytest.raises(UsageError, match="waits for no answer"):
            await live.questions.answer("q1", "red", "you")


@given(st.text(max_size=8), st.lists(st.text(min_size=1, max_size=5), max_size=4))
def test_an_answer_is_an_option_or_itself(text: str, options: list[str]) -> None:
    """A number names an option, an option names itself in any case, anything else stands as it is."""
    found = chosen(text, options)
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and 1 <= int(plain) <= len(options):
        assert found == options[int(plain) - 1]
    else:
        assert found == plain or found.casefold() == plain.casefold()


async def test_two_answers_at_once_have_one_winner() -> None:
    """Of two who answer the same question, one is told that it was too late."""
    journal = MemoryJournal()
    questions = Questions(journal, lambda: None)
    entry = await questions.ask("lead", "c1", "who?")
    late: list[str] = []

    async def answer(text: str) -> None:
        try:
            await questions.answer("q1", text, text)
        except UsageError as error:
            late.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer, "a")
        nursery.start_soon(answer, "b")
    assert len(late) == 1
    assert (await entry.answer()).answer in ("a", "b")
    assert await questions.ask("lead", "c1", "who?") is entry
