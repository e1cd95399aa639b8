"""The cheap steps of a compaction, one by one, and the parts that a summary is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from runtime.context.compaction import (
    cut_before,
    folded,
    handles,
    is_border,
    shortened,
    size,
    unmeasured,
    without_old_reasoning,
)
from runtime.context.filling import filling
from runtime.context.summary import digest, note, records, skill_note, split, transcript, with_words_cut
from runtime.context.window import Window, window_in
from runtime.messages import (
    AssistantMessage,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
)

LONG = "\n".join(f"row {number} of a long text" for number in range(200))


def calls(*parts: Part, wire: str = "anthropic-messages", usage: Usage | None = None) -> AssistantMessage:
    return AssistantMessage(parts, "tool_calls", usage, "lab/m", wire)


def result(call_id: str, content: str, name: str = "read_file") -> ToolResults:
    return ToolResults((ToolResult(call_id, name, content),))


def reading(number: int, path: str, first: int, last: int, text: str = LONG) -> tuple[Message, ...]:
    call = ToolCall(f"a0t{number}c0", "read_file", {"path": path})
    return calls(call), result(call.id, f"{path}: lines {first}-{last} of 900\n{text}")


def whole(given: ToolResult) -> str:
    return given.content


def content(messages: Sequence[Message], call_id: str) -> str:
    found = [each for message in messages if isinstance(message, ToolResults) for each in message.results]
    return next(each.content for each in found if each.call_id == call_id)


def test_old_results_become_head_tail_and_handle_only_as_far_as_needed() -> None:
    """The oldest long results are shortened first, until enough is saved; their whole text is kept by call id."""
    history = (UserMessage("task"), *reading(0, "a", 1, 200), *reading(1, "b", 1, 200), *reading(2, "c", 1, 200))
    step = shortened(history, 5, 3000, whole)
    assert step.said == "1 result shortened"
    assert dict(step.whole) == {"a0t0c0": content(history, "a0t0c0")}
    text = content(step.messages, "a0t0c0")
    assert text.startswith("a: lines 1-200 of 900\nrow 0")
    assert text.endswith("row 199 of a long text")
    assert 'read_result(handle="a0t0c0"' in text
    assert content(step.messages, "a0t1c0") == content(history, "a0t1c0")
    assert shortened(history, 5, 90_000, whole).said == "2 results shortened"
    assert handles(history, 5) == ("a0t0c0", "a0t1c0")


def test_a_skills_text_and_short_results_are_not_shortened() -> None:
    """What use_skill has shown stays whole, and so does what is short anyway."""
    skill, short = ToolCall("a0t0c0", "use_skill", {"name": "care"}), ToolCall("a0t1c0", "look", {})
    history = (
        UserMessage("task"),
        *(calls(skill), result(skill.id, LONG, "use_skill")),
        *(calls(short), result(short.id, "little", "look")),
        UserMessage("and"),
    )
    assert shortened(history, 5, 90_000, whole).said == ""


def test_an_older_reading_gives_way_to_a_newer_one_that_covers_it() -> None:
    """Readings of one file are folded into the newest where that shows all of their lines, and only before the cut."""
    history = (
        UserMessage("task"),
        *reading(0, "a", 1, 200),
        *reading(1, "a", 50, 300),
        *reading(2, "b", 1, 200),
        *reading(3, "a", 1, 200),
    )
    step = folded(history, 7, whole)
    assert step.said == "1 older reading folded into the newest"
    text = content(step.messages, "a0t0c0")
    assert text.startswith("[a: lines 1-200 of 900: read again later, see there;")
    assert 'read_result(handle="a0t0c0")' in text
    assert content(step.messages, "a0t1c0") == content(history, "a0t1c0"), "its lines 201 to 300 are nowhere else"
    assert content(step.messages, "a0t3c0") == content(history, "a0t3c0")
    again = (*history, *reading(4, "a", 1, 400))
    assert folded(again, 9, whole).said == "3 older readings folded into the newest"


def test_a_failed_reading_covers_nothing() -> None:
    """A reading that ended in an error stands for no other, even of the same file."""
    call = ToolCall("a0t1c0", "read_file", {"path": "a"})
    failed = ToolResults((ToolResult(call.id, "read_file", "a: lines 1-200 of 900", "error"),))
    history = (UserMessage("task"), *reading(0, "a", 1, 200), calls(call), failed, UserMessage("and"))
    assert folded(history, 4, whole).said == ""


THINKING: tuple[Part, ...] = (
    Reasoning("why", {"type": "thinking", "thinking": "why", "signature": "S"}),
    Opaque({"type": "redacted_thinking", "data": "D"}),
)


def test_thinking_of_a_turn_under_way_stays_on_the_anthropic_wire() -> None:
    """R45: while a turn's tools run its thinking goes back; behind a person's words it may be dropped, whole."""
    call = ToolCall("a0t0c0", "look", {})
    old = calls(*THINKING, Text("said"), call)
    round_ = (old, result(call.id, "seen", "look"))
    under_way = (UserMessage("task"), *round_)
    assert without_old_reasoning(under_way, 3).said == ""
    settled = (*under_way, AssistantMessage((Text("done"),), wire="anthropic-messages"), UserMessage("next"))
    step = without_old_reasoning(settled, 4)
    assert step.said == "1 reply without its reasoning"
    assert step.messages[1] == calls(Text("said"), call)
    assert step.messages[2:] == settled[2:]


def test_on_the_responses_wire_what_is_tied_to_reasoning_loses_its_id_with_it() -> None:
    """An item that names its id is refused without its reasoning: both go, the words and the call stay."""
    item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    call = ToolCall("a0t0c0", "look", {}, extra={"id": "fc_1"})
    old = calls(Reasoning("why", item), Text("said", {"id": "msg_1", "phase": "c"}), call, wire="openai-responses")
    step = without_old_reasoning((UserMessage("task"), old, result(call.id, "seen", "look")), 3)
    kept = step.messages[1]
    assert isinstance(kept, AssistantMessage)
    assert kept.parts == (Text("said", {"phase": "c"}), ToolCall("a0t0c0", "look", {}))


def test_a_cut_never_parts_what_belongs_together() -> None:
    """R46: no cut stands before results, between a paused or cut reply and what continues it, or at the beginning."""
    call = ToolCall("a0t0c0", "look", {})
    history = (
        UserMessage("task"),
        calls(call),
        result(call.id, "seen", "look"),
        AssistantMessage((Text("one, tw"),), "length"),
        UserMessage("go on", "note"),
        AssistantMessage((Text("o"),), "pause"),
        AssistantMessage((Text(", three"),)),
        UserMessage("and"),
    )
    assert [at for at in range(len(history)) if is_border(history, at)] == [1, 3, 7]


def test_the_cut_moves_back_to_what_fits_and_never_behind_the_newest_reply() -> None:
    """As many whole rounds as fit into the room stay untouched, and always the newest one."""
    history = (UserMessage("task"), *reading(0, "a", 1, 9), *reading(1, "b", 1, 9), *reading(2, "c", 1, 9))
    assert cut_before(history, 0) == 5
    assert cut_before(history, size(history[3:])) == 3
    assert cut_before(history, 10 * size(history)) == 1
    assert cut_before((UserMessage("task"),), 99) == 0


def test_usage_that_counted_another_history_is_taken_off() -> None:
    """After a compaction no message carries a count that no longer holds."""
    history = (UserMessage("task"), calls(Text("x"), usage=Usage(5, 5)), UserMessage("and"))
    after = unmeasured(history)
    assert [each.usage for each in after if isinstance(each, AssistantMessage)] == [None]
    assert after[0] is history[0]


# --- what a summary is made of -----------------------------------------------------------------------------------


def test_the_first_task_and_a_persons_words_stay_beside_the_summary() -> None:
    """What a person said stays word for word; replies, results and notes go; skills shown again are not summed up."""
    call, skill = ToolCall("a0t0c0", "look", {}), ToolCall("a0t1c0", "use_skill", {"name": "care"})
    history: tuple[Message, ...] = (
        UserMessage("task"),
        calls(call),
        result(call.id, "seen", "look"),
        UserMessage("only in docs", "steer"),
        UserMessage("a note of ours", "note"),
        *skill_note("Read twice."),
        calls(skill),
        result(skill.id, "Read twice.", "use_skill"),
        UserMessage("and"),
    )
    parts = split(history, 6)
    assert [each.text for each in parts.first] == ["task", "only in docs"]
    assert parts.gone == (history[1], history[2], history[4])
    assert parts.shows == {"care"}
    assert "Read twice." not in transcript(history[6:8])


def test_words_that_take_too_much_room_are_cut_with_a_handle() -> None:
    """The longest of a person's words are shortened, visibly; the first task and short ones are not."""
    words = (UserMessage("task " * 900), UserMessage("short", "steer"), UserMessage("long " * 900, "steer"))
    cut, kept = with_words_cut(words, 1000, "a0k1")
    assert cut[:2] == words[:2]
    assert 'read_result(handle="a0k1u2"' in cut[2].text
    assert kept == {"a0k1u2": words[2].text}
    assert cut[2].kind == "steer"


def test_a_digest_quotes_the_record_and_carries_over_the_one_before() -> None:
    """Without a model: goal, words, facts with their calls, files and failures, the newest first to stay."""
    first = (UserMessage("find the pump"), *reading(0, "a.txt", 1, 9, "the pump makes 42 bar"))
    bad = ToolCall("a0t1c0", "look", {"at": 7})
    failed = ToolResults((ToolResult(bad.id, "look", "no such page", "error"),))
    before = digest(split((*first, calls(bad), failed, UserMessage("and")), 5), 4000)
    assert "## Goal\nfind the pump" in before
    assert "the pump makes 42 bar [read_file" in before
    assert "a0t0c0]" in before
    assert "## Files touched\na.txt" in before
    assert "## Tried and failed\n- no such page [look" in before
    earlier = note(before, writer="by:", handles=["a0k1"])
    history = (UserMessage("find the pump"), earlier, *reading(2, "b.txt", 1, 9, "it hums"), UserMessage("and"))
    after = digest(split(history, 4), 4000)
    assert "the pump makes 42 bar" in after
    assert "it hums" in after
    assert "read_result(" not in after


def test_a_note_says_where_the_whole_record_is_and_how_the_todo_list_stands() -> None:
    """The message in the place of what is gone has summary, todo list and the handles of all records."""
    text = note(
        "## Goal\nx", writer="by lab/m:", handles=["a0k1", "a0k2", "a0k4"], todo=[{"text": "dig", "status": "open"}]
    ).text
    assert "- open: dig" in text
    assert 'read_result(handle="a0k4")' in text
    assert "older records: a0k1 to a0k2" in text
    assert records(["a0k10", "a0k2", "a0k1u3", "a1k1", "a0t1c0"], 0) == ["a0k2", "a0k10"]


# --- the window --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("the request exceeds the available context size (4096 tokens)", 4096),
        ("prompt is too long", None),
    ],
)
def test_a_refusal_often_names_the_window(message: str, size: int | None) -> None:
    """The window is read from the words of the servers that name it."""
    assert window_in(message) == size


def test_between_eighty_and_fifty_percent_nothing_is_due() -> None:
    """Compaction begins above 80 % and goes down to 50 %; a reply and the last answer have their room."""
    window = Window(8000)
    assert (window.is_full(6400), window.is_full(6401), window.target) == (False, True, 4000)
    assert window.holds(8000 - 256 - window.reserve)
    assert not window.holds(8000 - 255 - window.reserve)
    assert window.output_cap(8192, 6000) == 1500
    assert window.output_cap(8192, 100) == 2666
    assert window.output_cap(100, 7990) == 100
    assert window.output_cap(8192, 7990) == 256


def test_the_parts_of_a_window_add_up_to_what_was_counted() -> None:
    """Tokens are shared out by size, and rest on the provider's count with what came behind it."""
    call = ToolCall("a0t0c0", "look", {"at": 1})
    history: tuple[Message, ...] = (
        UserMessage("task"),
        note("## Goal", writer="by:", handles=[]),
        *skill_note("Read twice."),
        UserMessage("hurry", "steer"),
        calls(*THINKING, Text("said"), call, usage=Usage(900, 100)),
        result(call.id, LONG, "look"),
    )
    tools = [{"name": "look", "description": "Look.", "parameters": {"type": "object"}}]
    found = filling(["You work."], tools, history, window=10_000)
    assert found.counted
    assert found.used == 1000 + (size(history[-1:]) + 1) // 2
    assert abs(sum(share.tokens for share in found.shares) - found.used) <= len(found.shares)
    assert {share.name for share in found.shares} == {
        *("system prompt", "tool descriptions", "first task", "summary of what was compacted", "skills"),
        *("your messages", "reasoning", "answers of the model", "calls", "results of look"),
    }
    assert found.shares[0].name == "results of look"
    assert found.percent == round(found.used / 100)
    guessed = filling([], [], history[:1], window=None)
    assert (guessed.counted, guessed.percent) == (False, None)
    assert filling([], [], history[:2], window=None, measured=(1, 500)).used > 500
