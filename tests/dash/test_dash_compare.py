"""Two runs side by side: what they were given, what each actor did, where they part, how they end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.dash.compare import MOST_CALLS, compare, line_up, text_diff
from runtime.dash.portrait import Portrait, portrait
from runtime.events import (
    ActorFinished,
    ActorStarted,
    BudgetSettled,
    Event,
    LoopNudged,
    ModelFinished,
    ModelRequested,
    Record,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from runtime.messages import JsonObject, Usage
from runtime.record import report_to_json, usage_to_json
from runtime.report import Report
from runtime.watch.lines import as_json


def run(run_id: str, calls: Sequence[tuple[str, JsonObject, str]], answer: str, **given: Any) -> Portrait:
    """A run of one actor that makes one call a turn, a second for each event."""
    report = report_to_json(Report("completed", answer, Usage(10, 2), 0.5, len(calls)))
    events: list[Event] = [
        RunStarted(task=given.get("task", "t"), agent="lead", model=given.get("model", "m/x"), limits={"max_steps": 9}),
        ActorStarted(
            actor="lead",
            agent="lead",
            number=0,
            parent=None,
            task="t",
            model=given.get("model", "m/x"),
            limits={"max_steps": 9},
            prompt=(given.get("prompt", "You lead.\n"),),
            tools=({"name": "shell", "description": "", "parameters": {}},),
        ),
    ]
    for number, (name, arguments, result) in enumerate(calls):
        call_id = f"c{number}"
        call: JsonObject = {"id": call_id, "name": name, "arguments": arguments, "arguments_error": None}
        events += [
            ModelRequested(actor="lead", turn=number, model="m/x"),
            ModelFinished(
                actor="lead",
                turn=number,
                text="",
                reasoning="",
                tool_calls=(call,),
                finish="tool_calls",
                usage=usage_to_json(Usage(10, 2)),
                cost_usd=0.25,
                seconds=1,
            ),
            BudgetSettled(actor="lead", id=number, usage=usage_to_json(Usage(10, 2)), cost_usd=0.25),
            ToolRequested(actor="lead", call_id=call_id, name=name, arguments=arguments),
            ToolStarted(actor="lead", call_id=call_id, name=name),
            ToolFinished(actor="lead", call_id=call_id, name=name, result=result, is_error=False, seconds=1),
        ]
    events += [
        LoopNudged(actor="lead", why="same call, same result", times=3),
        ActorFinished(actor="lead", report=report),
        RunFinished(report=report),
    ]
    return portrait(run_id, (Record(seq, 100.0 + seq, event) for seq, event in enumerate(events, 1)))


LIST = ("shell", {"command": "ls"}, "a b")
READ = ("read_file", {"path": "a", "start": 1}, "text")
OTHER = ("read_file", {"path": "b"}, "text")


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_calls_are_lined_up_in_their_order_and_none_is_lost(one: list[str], two: list[str]) -> None:
    """Every call of both sides stands once, in its order; what stands side by side is equal."""
    pairs = line_up(one, two)
    assert list(range(len(one))) == [left for left, _ in pairs if left is not None]
    assert list(range(len(two))) == [right for _, right in pairs if right is not None]
    assert all(one[left] == two[right] for left, right in pairs if left is not None and right is not None)
    if one == two:
        assert all(left == right for left, right in pairs)


def test_very_long_lists_of_calls_are_paired_by_order() -> None:
    """Beyond the number of calls that are lined up, each keeps its place."""
    more = MOST_CALLS + 3
    pairs = line_up(["a"] * more, ["a"] * (more - 1))
    assert (more - 2, more - 2) == pairs[-2]
    assert (more - 1, None) == pairs[-1]


def test_a_call_in_between_moves_nothing_else() -> None:
    """A call one run made in between stands alone; the calls around it stand beside their equals."""
    found = compare(run("one", [LIST, READ], "x"), run("two", [LIST, OTHER, READ], "x"))
    (actor,) = found["actors"]
    shown = [[side and side["arguments"] for side in row["sides"]] for row in actor["calls"]]
    assert [[LIST[1], LIST[1]], [None, OTHER[1]], [READ[1], READ[1]]] == shown
    assert [True, False, True] == [row["same_call"] for row in actor["calls"]]


def test_the_same_arguments_written_differently_are_the_same_call() -> None:
    """Keys in another order and 1.0 for 1 make no other call; another result is told."""
    found = compare(run("one", [READ], "x"), run("two", [("read_file", {"start": 1.0, "path": "a"}, "changed")], "x"))
    (row,) = found["actors"][0]["calls"]
    assert (True, False) == (row["same_call"], row["same_result"])


def test_numbers_ends_and_alerts_stand_side_by_side() -> None:
    """Steps, tokens, cost, time, the end and the guard's alerts are those of the records."""
    found = compare(run("one", [LIST], "x"), run("two", [LIST, READ], "y\nz", model="m/y"))
    one, two = found["runs"]
    assert (1, 2) == (one["steps"], two["steps"])
    assert (20, 0.5) == (two["usage"]["input"], two["cost_usd"])
    assert (10.0, 16.0) == (one["seconds"], two["seconds"])
    assert ("completed", 1, 2) == (two["status"], two["alerts"], two["calls"])
    assert ["model"] == [row["what"] for row in found["given"] if not row["same"]]
    sides = found["actors"][0]["sides"]
    assert [1, 2] == [len(side["turns"]) for side in sides]
    assert (2.0, 3.0) == (sides[0]["turns"][0]["began_at"], sides[0]["turns"][0]["ended_at"])
    assert "same call, same result" == sides[0]["alerts"][0]["why"]


def test_an_actor_of_one_run_alone_has_an_empty_side() -> None:
    """Where only one run has an actor, the other side is empty and nothing is made up."""
    found = compare(run("one", [LIST], "x"), portrait("two", []))
    (actor,) = found["actors"]
    assert actor["sides"][1] is None
    assert [None] == [row["sides"][1] for row in actor["calls"]]
    assert ("", 0.0) == (found["runs"][1]["status"], found["runs"][1]["seconds"])


@pytest.mark.parametrize(("one", "two", "diff"), [("a\nb\n", "a\nc\n", ["-b", "+c"]), ("same", "same", [])])
def test_answers_are_held_against_each_other_by_line(one: str, two: str, diff: list[str]) -> None:
    """The line diff of two texts has the lines that left and those that came; equal texts have none."""
    lines = text_diff("answer", one, two).splitlines()
    assert diff == [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_prompts_that_differ_are_shown_as_a_diff() -> None:
    """Another prompt is told, with the lines that changed."""
    found = compare(run("one", [], "x"), run("two", [], "x", prompt="You write.\n"))
    actor = found["actors"][0]
    assert not actor["same_prompt"]
    assert "+You write." in actor["prompt_diff"]


def test_what_no_json_can_say_is_shown_all_the_same() -> None:
    """NaN in arguments and half a surrogate pair in an answer come out as JSON."""
    odd = run("one", [("shell", {"command": float("nan")}, "\ud800")], "\ud800")
    assert json.loads(as_json(compare(odd, run("two", [], "x"))))
