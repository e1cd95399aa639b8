"""What a chat shows of events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.chat.figures import bars, status_line
from runtime.chat.screen.paint import painted
from runtime.chat.view import Called, Said, Spoke, Tail, Thought, Told, View
from runtime.events import (
    ActorFinished,
    ActorStarted,
    ApprovalRequested,
    BudgetReserved,
    BudgetSettled,
    Event,
    FileChanged,
    Gap,
    ModelDelta,
    ModelFinished,
    ModelRequested,
    ModelWithdrawn,
    Record,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolOutput,
    ToolRequested,
    ToolStarted,
)
from runtime.messages import AssistantMessage, Text, ToolCall, ToolResult, ToolResults, Usage, UserMessage
from runtime.record import messages_to_json, report_to_json
from runtime.report import Report

ROOT = "coordinator"
LIMITS = {"max_steps": 9, "token_budget": 1000}
USAGE = {"input": 100, "output": 20, "cached_input": 40}


def shown(events: Iterable[Event], view: View | None = None) -> View:
    view = view or View(run="k7f2")
    seq, n = view.state.seq, 0
    for event in events:
        if event.kept:
            seq, n = seq + 1, 0
        else:
            n += 1
        view.take(Record(seq, 1000.0 + seq, event, n))
    return view


def started(task: str = "look", **more: Any) -> list[Event]:
    return [
        RunStarted(
            task=task, agent=ROOT, model="lab/x", limits=LIMITS, continues=more.get("of")
        ),
        ActorStarted(
            actor=ROOT, agent=ROOT, number=0, parent=None, task=task, model="lab/x", limits={}, prompt=(), tools=(),
            history=more.get("history", ()),
        ),
    ]  # fmt: skip


def reply(text: str, reasoning: str = "", actor: str = ROOT, calls: tuple[Any, ...] = (), turn: int = 0) -> list[Event]:
    return [
        BudgetReserved(actor=actor, id=turn, input=100, output_cap=50),
        ModelRequested(actor=actor, turn=turn, model="lab/x"),
        ModelDelta(actor=actor, kind="reasoning", text=reasoning),
        ModelDelta(actor=actor, kind="text", text=text),
        ModelFinished(
            actor=actor, turn=turn, text=text, reasoning=reasoning, tool_calls=calls, finish="stop", usage=USAGE,
            cost_usd=0.5, seconds=1.0,
        ),
        BudgetSettled(actor=actor, id=turn, usage=USAGE, cost_usd=0.5),
    ]  # fmt: skip


def finished(text: str) -> list[Event]:
    report = report_to_json(Report("completed", text, Usage(100, 20), 0.5, 1))
    return [ActorFinished(actor=ROOT, report=report), RunFinished(report=report)]


def test_a_turn_is_what_was_said_thought_and_answered() -> None:
    """A turn becomes the words said, the thought, the reply once, and how it ended."""
    view = shown([*started(), *reply("It is **so**.", "let me see"), *finished("It is **so**.")])
    said, thought, spoke, told = view.log.entries
    assert (Said("look"), Thought("let me see"), Spoke("It is **so**.")) == (said, thought, spoke)
    assert isinstance(told, Told)
    assert told.text.startswith("completed   1 step, 120 tokens, $0.500")
    assert ("", "") == (str(view.text), str(view.reasoning))


def test_what_is_being_said_is_shown_until_the_whole_of_it_comes() -> None:
    """Deltas grow the live text; the whole reply takes their place; late ones do not come back."""
    view = shown([*started(), *reply("Hello", "hm")[:4]])
    assert ("Hello", "hm") == (str(view.text), str(view.reasoning))
    shown([ModelDelta(actor=ROOT, kind="text", text="Hello, again", reset=True)], view)
    assert ("Hello, again", "") == (str(view.text), str(view.reasoning))
    shown([reply("Hello, again")[4]], view)
    assert "" == str(view.text)
    shown([ModelRequested(actor=ROOT, turn=1, model="lab/x")], view)
    view.take(Record(view.state.seq - 1, 0.0, ModelDelta(actor=ROOT, kind="text", text="late"), 99))
    assert "" == str(view.text)


def test_what_was_taken_back_or_lost_is_shown_no_more() -> None:
    """A withdrawn reply disappears; after a gap the running reply comes anew."""
    for event in (ModelWithdrawn(actor=ROOT, turn=0, why="cut"), Gap(lost=3)):
        view = shown([*started(), *reply("half")[:4], event])
        assert "" == str(view.text)


def test_a_call_shows_its_state_output_result_and_change() -> None:
    """A call goes from waiting over its live output to its result, with the file it changed as a diff."""
    call: list[Event] = [
        ToolRequested(actor=ROOT, call_id="c1", name="shell", arguments={"command": "make"}),
        ToolStarted(actor=ROOT, call_id="c1", name="shell"),
        ToolOutput(actor=ROOT, call_id="c1", text="line 1\n"),
        ToolOutput(actor=ROOT, call_id="c1", text="line 2\n"),
        FileChanged(actor=ROOT, call_id="c1", path="a", diff="+x"),
        ToolFinished(actor=ROOT, call_id="c1", name="shell", result="2 lines", is_error=False, seconds=0.5),
    ]
    before = [*started(), *reply("", calls=({"id": "c1", "name": "shell", "arguments": {}},))]
    kinds = [shown([*before, *call[:upto]]).log.entries[-1] for upto in range(1, 7)]
    assert all(isinstance(entry, Called) for entry in kinds)
    assert ["waiting", "running", "running", "running", "running", "ok"] == [
        e.kind for e in kinds if isinstance(e, Called)
    ]
    last = kinds[-1]
    assert isinstance(last, Called)
    assert ("2 lines", "", ("+x",)) == (last.result, last.output, last.diffs)
    assert isinstance(kinds[3], Called)
    assert "line 1\nline 2\n" == kinds[3].output


def test_a_child_has_a_log_of_its_own() -> None:
    """What a child says and does is in its own log; the conversation tells that it began and ended."""
    child = f"{ROOT}/researcher-1"
    view = shown(
        [
            *started(),
            ActorStarted(
                actor=child, agent="researcher", number=1, parent=ROOT, task="find x", model="lab/x", limits={},
                prompt=(), tools=(), call_id="c1",
            ),
            *reply("x is here", actor=child),
            ActorFinished(actor=child, report=report_to_json(Report("completed", "x is here", Usage(), 0.0, 1))),
        ]
    )  # fmt: skip
    assert [Said("find x"), Spoke("x is here")] == view.log_of(child).entries
    told = [entry.text for entry in view.log.entries if isinstance(entry, Told)]
    assert ["● researcher-1  find x", True] == [told[0], told[1].startswith("✓ researcher-1  completed")]
    assert "" == str(view.text)


def test_a_conversation_goes_on_from_run_to_run() -> None:
    """The next turn's run adds to the log and to what was spent; a run twice told is shown once."""
    view = shown([*started(), *reply("one"), *finished("one")])
    view.begin("m3qa")
    shown([*started("and now?", of="k7f2", history=({"any": 1},)), *reply("two"), *finished("two")], view)
    assert [Said("look"), Said("and now?")] == [entry for entry in view.log.entries if isinstance(entry, Said)]
    assert (240, 1.0) == (view.usage.total, view.cost_usd)
    before = list(view.log.entries)
    view.take(Record(2, 0.0, started()[1]))
    assert before == view.log.entries


def test_a_conversation_taken_up_shows_what_was_said_before() -> None:
    """The first run seen that continues another one begins with that one's history."""
    history = messages_to_json(
        (
            UserMessage("what is a.txt?"),
            AssistantMessage((Text("I look."), ToolCall("c1", "read_file", {"path": "a.txt"})), "tool_calls"),
            ToolResults((ToolResult("c1", "read_file", "one"),)),
            AssistantMessage((Text("It says one."),), "stop"),
            UserMessage("a note of the runtime", "note"),
        )
    )
    view = shown(started("and b?", of="k7f2", history=tuple(history)))
    said, look, call, answer, now = view.log.entries
    assert (Said("what is a.txt?"), Spoke("I look."), Spoke("It says one."), Said("and b?")) == (
        said,
        look,
        answer,
        now,
    )
    assert isinstance(call, Called)
    assert ("ok", "one") == (call.kind, call.result)


def test_the_oldest_question_is_asked() -> None:
    """What waits for a human is found, and gone once the run has ended."""
    asked = ApprovalRequested(actor=ROOT, id="a1", call_id="c1", name="shell", arguments={}, why="asks")
    view = shown([*started(), asked])
    assert asked == view.state.asked
    assert view.state.asked is not None
    shown(finished("x"), view)
    assert view.state.asked is None


def test_the_foot_tells_model_context_tokens_and_cost() -> None:
    """The status line has model, share of the window, tokens, cost, and what is queued."""
    view = shown([*started(), *reply("one")])
    line = status_line(view, doing="● working", model="lab/x", window=1200, queued=2)
    assert "● working  lab/x  context 120 (10% of 1.2k)  120 tokens (40 cached)  $0.500  2 queued" == line
    assert "window unknown" in status_line(view, doing="", model="lab/x", window=None, queued=0)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "● working (2 agents)  lab/a-model-of-long-name  context 10%  120 tokens  $0.500"),
        (79, "● working (2 agents)  lab/a-model-of-long-name  context 10%  120 tokens  $0.500"),
        (60, "● working a-model-of-… 10% ctx 120 tok $0.500"),
    ],
)
def test_a_narrow_foot_tells_the_same_in_fewer_words(width: int, line: str) -> None:
    """State, model, context, tokens and cost stand on a narrow terminal as well."""
    view = shown([*started(), *reply("one")])
    found = status_line(
        view, doing="● working (2 agents)", model="lab/a-model-of-long-name", window=1200, queued=0, width=width
    )
    assert line == found


def test_a_long_paste_is_shown_by_its_beginning() -> None:
    """Of thousands of lines a person said the first ones stand there, the rest is counted; one long line likewise."""
    lines = "\n".join(f"line {number}" for number in range(10_000))
    assert "line 19\n… 9980 lines more (Ctrl-O)" in painted(Said(lines), full=False).plain
    assert "line 399\n… 9600 lines more (elenco show has all)" in painted(Said(lines), full=True).plain
    assert f"> {'x' * 2000}\n… 1 characters more (Ctrl-O)" == painted(Said("x" * 2001), full=False).plain
    assert "> one\n\n two" == painted(Said("one\n\n two"), full=False).plain


def test_a_bar_tells_what_is_used_of_each_limit() -> None:
    """Every limit has its bar; what is not limited is told as a figure."""
    view = shown([*started(), *reply("one")])
    found = {bar.name: str(bar) for bar in bars(view.state, ROOT, dict(view.state.limits), 1010.0)}
    assert found["max_steps"].endswith("1 of 9 steps")
    assert "█" in found["max_steps"]
    assert found["timeout"].split()[1:] == ["8.0", "s"]


@given(st.lists(st.text(max_size=40), max_size=60), st.integers(1, 30))
def test_a_tail_is_the_end_of_all_pieces(pieces: list[str], longest: int) -> None:
    """However it came, the tail is the last characters of the whole, and knows how many there were."""
    tail = Tail(longest)
    for piece in pieces:
        tail.add(piece)
    whole = "".join(pieces)
    assert (whole[-longest:], len(whole)) == (str(tail), tail.total)
    assert sum(map(len, tail.pieces)) <= 2 * longest + 40
