"""Agents at work side by side tell each other things: nobody waits, nothing is heard twice, every run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.definitions import Permissions
from runtime.events import LoopStopped, MessageReceived, MessageSent, ToolFinished
from runtime.journal import MemoryJournal
from runtime.messages import UserMessage
from runtime.policy.subjects import AgentSubject

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage

BOTH = "{call: {name: start_scribe, arguments: {task: write}}}, {call: {name: start_scout, arguments: {task: look}}}"
TELL = "{call: {name: message_scribe, arguments: {text: the gate is shut}}}"


def cast(stage: Stage) -> None:
    """A lead that starts a scout and a scribe; the scout may talk to scribes."""
    stage.agent("lead", subagents=["scout", "scribe"])
    stage.agent("scout", talks_to=["scribe"])
    stage.agent("scribe", tools=["look"])


def stage_script(scribe: str, scout: str = f"scout: [{TELL}, told]") -> str:
    return f"lead: [{BOTH}, {{text: they work, stall: 1}}, one has ended, all done]\n{scout}\n{scribe}\n"


def heard(stage: Stage, path: str) -> list[str]:
    return [
        message.text
        for message in stage.state.actors[path].history
        if isinstance(message, UserMessage) and message.text.startswith("Message from lead/")
    ]


async def test_a_message_is_read_before_the_receivers_next_step(stage: Stage, autojump_clock: MockClock) -> None:
    """The scout tells the scribe, which is at work; the scribe's next request has it, and the scout goes on."""
    cast(stage)
    stage.script(
        stage_script("scribe: [{call: {name: look, arguments: {at: x}}, stall: 5}, {text: written, stall: 5}]")
    )
    report = await stage.run()
    assert "completed" == report.status, report
    assert ["delivered to scribe-1"] == [each.result for each in stage.results("lead/scout-1")]
    assert ["Message from lead/scout-1:\nthe gate is shut"] == heard(stage, "lead/scribe-1")
    (sent,) = [event for event in stage.of(MessageSent) if event.kind == "message"]
    assert ("lead/scout-1", "lead/scribe-1") == (sent.actor, sent.to)
    assert {} == stage.state.undelivered


async def test_a_message_that_comes_with_the_last_reply_is_still_answered(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """Words that arrive while the receiver gives what would be its answer get it another step."""
    cast(stage)
    stage.script(stage_script("scribe: [{text: an answer, stall: 5}, a better answer]"))
    await stage.run()
    scribe = stage.state.actors["lead/scribe-1"]
    assert "a better answer" == (scribe.report or {})["text"]


async def test_nobody_at_work_is_told_to_the_sender(stage: Stage, autojump_clock: MockClock) -> None:
    """One that has ended, or was never begun, cannot be told anything: the call fails and says so."""
    stage.agent("lead", talks_to=["scribe"], subagents=["scribe"])
    stage.agent("scribe")
    delegate = "{call: {name: delegate_to_scribe, arguments: {task: write}}}"
    stage.script(f"lead: [{TELL}, {delegate}, {TELL}, done]\nscribe: [written]")
    await stage.run()
    first, _, last = stage.results("lead")
    assert "no scribe is at work beside you: nothing was sent" == first.result == last.result
    assert [] == stage.of(MessageSent)


async def test_of_several_one_can_be_named(stage: Stage, autojump_clock: MockClock) -> None:
    """Without a name all of them are told; a name nobody has is answered with those there are."""
    stage.agent("lead", subagents=["scribe"], talks_to=["scribe"])
    stage.agent("scribe", tools=["look"])
    start = ", ".join(f"{{name: start_scribe, arguments: {{task: part {number}}}}}" for number in (1, 2))
    tell = "{{call: {{name: message_scribe, arguments: {{text: {}, to: {}}}}}}}"
    stage.script(f"""\
        lead:
          - {{calls: [{start}]}}
          - {tell.format("one", "scribe-2")}
          - {tell.format("whole", "lead/scribe-1")}
          - {tell.format("wrong", "scribe-3")}
          - {{call: {{name: message_scribe, arguments: {{text: all}}}}}}
          - done
          - done
          - done
        scribe: [{{call: {{name: look, arguments: {{at: x}}}}, stall: 50}}, written]
        """)
    await stage.run()
    told = [each.result for each in stage.results("lead")][2:]
    assert ["delivered to scribe-2", "delivered to scribe-1"] == told[:2]
    assert told[2].startswith("no 'scribe-3' is at work; did you mean 'scribe-1' or 'scribe-2'?")
    assert "delivered to scribe-1, scribe-2" == told[3]
    got = {path: [e.text for e in stage.of(MessageReceived) if e.actor == path] for path in stage.state.actors}
    assert (["whole", "all"], ["one", "all"]) == (got["lead/scribe-1"], got["lead/scribe-2"])


async def test_more_words_than_the_receiver_has_room_for_are_cut_and_kept(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """A flood does not end who is told it: what its step has room for enters, with a handle to read the rest by."""
    stage.agent("lead", subagents=["scout", "scribe"])
    stage.agent("scout", talks_to=["scribe"])
    stage.agent("scribe", tools=["look"], token_budget=3000)
    flood = "the gate is shut " * 400
    look = "{call: {name: look, arguments: {at: x}}, stall: 5}"
    stage.script(
        stage_script(f"scribe: [{look}, written]", f"scout: [{TELL.replace('the gate is shut', flood)}, told]")
    )
    await stage.run()
    assert ["completed"] * 3 == [actor.status for actor in stage.state.actors.values()]
    (got,) = heard(stage, "lead/scribe-1")
    assert len(got) < 1200
    assert "read_result" in got
    (whole,) = stage.state.long_reports.values()
    assert flood.strip() == whole.strip()


async def test_blank_words_and_oneself_are_no_message(stage: Stage, autojump_clock: MockClock) -> None:
    """Blank text is refused, and who may talk to its own kind does not talk to itself."""
    stage.agent("lead", talks_to=["lead"])
    stage.script("""\
        lead:
          - {call: {name: message_lead, arguments: {text: "  "}}}
          - {call: {name: message_lead, arguments: {text: hello}}}
          - done
        """)
    await stage.run()
    blank, oneself = stage.results("lead")
    assert "the text is empty: nothing was sent" == blank.result
    assert "no lead is at work beside you: nothing was sent" == oneself.result


async def test_a_rule_about_an_agent_is_one_about_messages_to_it(stage: Stage, autojump_clock: MockClock) -> None:
    """`deny: [agent(scribe)]` leaves the scout without a word to it; the call is about the agent."""
    stage.agent("lead", subagents=["scout", "scribe"])
    stage.agent("scout", talks_to=["scribe"], permissions=Permissions(deny=("agent(scribe)",)))
    stage.agent("scribe", tools=["look"])
    stage.script(
        stage_script("scribe: [{call: {name: look, arguments: {at: x}}, stall: 5}, {text: written, stall: 5}]")
    )
    async with stage.opened() as live:
        await live.report()
    (refused,) = stage.results("lead/scout-1")
    assert (True, "refused") == (refused.is_error, refused.kind)
    assert AgentSubject("message_scribe", "scribe").agent == "scribe"
    assert [] == heard(stage, "lead/scribe-1")


@pytest.mark.parametrize("when", ["sent", "heard"])
async def test_a_crash_repeats_no_message(stage: Stage, autojump_clock: MockClock, when: str) -> None:
    """A process that dies between the message and its call's result, or after it was heard, has it heard once."""
    cast(stage)
    looks = ", ".join(f"{{call: {{name: look, arguments: {{at: p{number}}}}}}}" for number in range(12))
    stage.script(
        stage_script(f"scribe: [{looks}, {{text: written, stall: 5}}]", f"scout: [{TELL}, {{text: told, stall: 20}}]")
    )

    def so_far() -> bool:
        return bool(stage.of(MessageSent if when == "sent" else MessageReceived))

    await stage.killed(when=so_far, until=MessageSent if when == "sent" else MessageReceived)
    assert ("lead/scout-1" in {e.actor for e in stage.of(ToolFinished)}) == (when == "heard")
    await stage.resume()
    assert ["Message from lead/scout-1:\nthe gate is shut"] == heard(stage, "lead/scribe-1")
    assert 1 == sum(event.kind == "message" for event in stage.of(MessageSent))


@pytest.mark.parametrize("on_record", [False, True])
async def test_a_receiver_not_yet_taken_up_is_reached_after_a_crash(
    stage: Stage, autojump_clock: MockClock, *, on_record: bool
) -> None:
    """A call made again before its receiver, three levels down, is at work again reaches it, once, and says so."""
    stage.agent("lead", subagents=["scout", "chief"])
    stage.agent("scout", talks_to=["scribe"])
    stage.agent("chief", subagents=["editor"])
    stage.agent("editor", subagents=["scribe"])
    stage.agent("scribe", tools=["look"])
    both = "{calls: [{name: start_chief, arguments: {task: write}}, {name: start_scout, arguments: {task: look}}]}"
    below = "{{call: {{name: delegate_to_{}, arguments: {{task: write}}}}}}"
    stage.script(f"""\
        lead: [{both}, one, two, three, four, five]
        chief: [{below.format("editor")}, edited]
        editor: [{below.format("scribe")}, handed on]
        scout: [{TELL[:-1]}, stall: 2}}, told]
        scribe: [{{call: {{name: look, arguments: {{at: x}}}}, stall: 5}}, {{text: written, stall: 5}}]
        """)
    await stage.run()
    (sent,) = (r.seq for r in stage.journal.records if isinstance(r.event, MessageSent) and r.event.kind == "message")
    stage.journal = MemoryJournal(stage.journal.records[: sent if on_record else sent - 1])
    await stage.resume()
    assert ["delivered to scribe-1"] == [each.result for each in stage.results("lead/scout-1")]
    got = [event for event in stage.of(MessageReceived) if event.text == "the gate is shut"]
    assert ["lead/chief-1/editor-1/scribe-1"] == [event.actor for event in got]


async def test_two_of_one_short_name_are_told_apart(stage: Stage, autojump_clock: MockClock) -> None:
    """A short name that several have is no address: the whole paths are given back to choose from."""
    stage.agent("lead", subagents=["chief"], talks_to=["scribe"])
    stage.agent("chief", subagents=["scribe"])
    stage.agent("scribe", tools=["look"])
    start = ", ".join(f"{{name: start_chief, arguments: {{task: part {number}}}}}" for number in (1, 2))
    stage.script(f"""\
        lead:
          - {{calls: [{start}]}}
          - {{call: {{name: message_scribe, arguments: {{text: hello, to: scribe-1}}}}, stall: 2}}
          - done
          - done
          - done
        chief: [{{call: {{name: delegate_to_scribe, arguments: {{task: write}}}}}}, edited]
        scribe: [{{call: {{name: look, arguments: {{at: x}}}}, stall: 50}}, written]
        """)
    await stage.run()
    said = stage.results("lead")[2].result
    assert said.startswith("several are called scribe-1: lead/chief-1/scribe-1, lead/chief-2/scribe-1; give one of")


async def test_two_that_greet_each_other_for_ever_are_stopped(stage: Stage, autojump_clock: MockClock) -> None:
    """Peers' words are no human's: they void no count of the loop guard, which ends who only repeats itself."""
    stage.agent("lead", subagents=["scout", "scribe"])
    stage.agent("scout", talks_to=["scribe"], max_steps=60)
    stage.agent("scribe", talks_to=["scout"], max_steps=60)
    lead = f"lead: [{BOTH}, one more, and another, all done]"
    hello = "[{{call: {{name: message_{}, arguments: {{text: hello}}}}, stall: 1, repeat: 99}}]"
    stage.script(f"{lead}\nscout: {hello.format('scribe')}\nscribe: {hello.format('scout')}")
    report = await stage.run()
    assert "completed" == report.status, report
    assert {"lead/scout-1", "lead/scribe-1"} & {event.actor for event in stage.of(LoopStopped)}
    assert all((stage.state.actors[path].report or {})["steps"] < 60 for path in ("lead/scout-1", "lead/scribe-1"))
