"""The history's invariant, by examples and against any sequence of moves."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime.conversation import CallModel, Conversation, Finish, HistoryError, RunTools, checked
from runtime.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    assign_call_ids,
)


def call(id: str) -> ToolCall:
    return ToolCall(id, "read_file", {"path": "a"})


def started() -> Conversation:
    return Conversation().add(UserMessage("find it"))


def test_a_conversation_begins_with_a_task() -> None:
    """A conversation begins with a task."""
    with pytest.raises(HistoryError, match="begins with a task"):
        Conversation().add(AssistantMessage((Text("hello"),)))
    with pytest.raises(HistoryError, match="begins with a task"):
        Conversation().next_step()


def test_calls_must_be_answered_at_once_all_and_in_their_order() -> None:
    """Calls must be answered at once, all, and in their order."""
    asked = started().add(AssistantMessage((call("a"), call("b")), "tool_calls"))
    assert RunTools((call("a"), call("b"))) == asked.next_step()
    results = (ToolResult("a", "read_file", "1"), ToolResult("b", "read_file", "2"))
    for wrong in (results[:1], results[::-1], (*results, ToolResult("c", "x", "3"))):
        with pytest.raises(HistoryError):
            asked.add(ToolResults(wrong))
    with pytest.raises(HistoryError, match="no results yet"):
        asked.add(UserMessage("are you there?"))
    assert CallModel() == asked.add(ToolResults(results)).next_step()


def test_an_interrupted_round_is_closed_with_typed_results_for_what_is_missing() -> None:
    """An interrupted round is closed with typed results for what is missing."""
    asked = started().add(AssistantMessage((call("a"), call("b")), "tool_calls"))
    done = ToolResult("a", "read_file", "1")
    closed = asked.settle({"a": done}, "interrupted: the deadline")
    assert (
        ToolResults((done, ToolResult("b", "read_file", "interrupted: the deadline", "interrupted")))
        == (closed.messages[-1])
    )
    assert closed == closed.settle({}, "nothing open")


def test_a_steering_message_waits_for_the_results_and_puts_off_the_end() -> None:
    """A steering message waits for the results and puts off the end."""
    asked = started().add(AssistantMessage((call("a"),), "tool_calls"))
    steered = asked.queue(UserMessage("look in b too", "steer"))
    assert steered == steered.take_queued()
    answered = steered.add(ToolResults((ToolResult("a", "read_file", "1"),)))
    assert UserMessage("look in b too", "steer") == answered.take_queued().messages[-1]
    final = answered.add(AssistantMessage((Text("done"),)))
    assert CallModel() == final.next_step()
    assert CallModel() == final.take_queued().next_step()
    assert isinstance(final.take_queued().add(AssistantMessage((Text("now done"),))).next_step(), Finish)


def test_a_cut_off_reply_is_continued_never_finished() -> None:
    """A cut-off reply is continued, never finished."""
    for finish in ("length", "pause"):
        cut = started().add(AssistantMessage((Text("half a"),), finish))
        assert CallModel(finish) == cut.next_step()


def test_a_call_id_used_twice_is_found_when_a_history_is_restored() -> None:
    """A call id used twice is found when a history is restored."""
    round_one: list[Message] = [
        UserMessage("t"),
        AssistantMessage((call("a"),), "tool_calls"),
        ToolResults((ToolResult("a", "read_file", "1"),)),
    ]
    assert tuple(round_one) == checked(round_one)
    with pytest.raises(HistoryError, match="used twice"):
        checked(round_one + round_one[1:])


def test_ids_of_ours_are_unique_whatever_the_provider_sends() -> None:
    """Ids of ours are unique whatever the provider sends (faults R43)."""
    reply = AssistantMessage((call(""), Text("and"), call("call_0"), call("call_0")), "tool_calls")
    assert ["a0t3c0", "a0t3c1", "a0t3c2"] == [found.id for found in assign_call_ids(reply, "a0t3").calls]


class History(RuleBasedStateMachine):
    """Any mix of moves against the naive reading of the rule: walk the list and pair calls with results."""

    def __init__(self) -> None:
        super().__init__()
        self.conversation = started()
        self.turn = 0

    @rule(count=st.integers(0, 3), finish=st.sampled_from(["stop", "length", "pause", "tool_calls"]))
    def model_replies(self, count: int, finish: str) -> None:
        calls = tuple(call(f"{self.turn}-{index}") for index in range(count))
        reply = AssistantMessage((Text("x"), *calls), "tool_calls" if calls else "stop")
        self.turn += 1
        before = self.conversation
        try:
            self.conversation = self.conversation.add(reply)
        except HistoryError:
            assert before.open_calls

    @rule(drop=st.integers(0, 2))
    def results_come_in(self, drop: int) -> None:
        calls = self.conversation.open_calls
        results = tuple(ToolResult(each.id, each.name, "ok") for each in calls)[drop:]
        try:
            self.conversation = self.conversation.add(ToolResults(results))
        except HistoryError:
            assert drop or not calls

    @rule()
    def human_steers(self) -> None:
        self.conversation = self.conversation.queue(UserMessage("steer", "steer")).take_queued()

    @precondition(lambda self: bool(self.conversation.open_calls))
    @rule()
    def round_is_interrupted(self) -> None:
        self.conversation = self.conversation.settle({}, "interrupted")
        assert not self.conversation.open_calls

    @invariant()
    def every_call_but_those_of_the_last_reply_has_its_result_right_behind(self) -> None:
        messages = self.conversation.messages
        for index, message in enumerate(messages):
            if isinstance(message, AssistantMessage) and message.calls and index + 1 < len(messages):
                after = messages[index + 1]
                assert isinstance(after, ToolResults)
                assert [each.id for each in message.calls] == [each.call_id for each in after.results]
            if isinstance(message, ToolResults):
                assert isinstance(messages[index - 1], AssistantMessage)
        assert messages == checked(messages)


TestHistory = History.TestCase
