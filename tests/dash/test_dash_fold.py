"""The pages' pure modules, run by node, against the runtime's own fold of the same events and against plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from runtime.events import Record
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.record import usage_to_json
from runtime.simulate import simulation
from runtime.simulate.store import Store
from runtime.watch.lines import line

Node = Callable[..., list[Any]]


def lines(records: Sequence[Record]) -> list[dict[str, Any]]:
    return [json.loads(line(record, "sim")) for record in records]


def simulated(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """What the last process of a simulated run left on record."""
    stores: list[Store] = []

    class Kept(Store):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            stores.append(self)

    monkeypatch.setattr(simulation, "Store", Kept)
    simulation.simulate(seed)
    return list(stores[-1].left(0))


def expected(state: RunState) -> dict[str, Any]:
    """What the runtime's own fold makes of the same events, in the page's words."""
    return {
        "seq": state.seq,
        "asks": sorted(state.pending),
        "alerts": len(state.alerts),
        "actors": {
            actor.path: {
                "status": actor.status,
                "steps": actor.steps,
                "tool_calls": actor.tool_calls,
                "children": list(actor.children),
                "input": actor.usage.input,
                "output": actor.usage.output,
                "cached": usage_to_json(actor.usage)["cached_input"],
                "cost": None if actor.cost_usd is None else round(actor.cost_usd, 9),
                "thinks": actor.status == "running" and actor.request is not None,
                "retries": actor.status == "running" and actor.retry is not None,
            }
            for actor in state.actors.values()
        },
    }


def told(view: dict[str, Any]) -> dict[str, Any]:
    return {
        "seq": view["seq"],
        "asks": sorted(view["asks"]),
        "alerts": len(view["alerts"]),
        "actors": {
            actor["path"]: {
                "status": actor["status"],
                "steps": actor["steps"],
                "tool_calls": actor["tool_calls"],
                "children": actor["children"],
                "input": actor["usage"]["input"],
                "output": actor["usage"]["output"],
                "cached": actor["usage"]["cached_input"],
                "cost": None if actor["cost"] is None else round(actor["cost"], 9),
                "thinks": actor["doing"] == "thinking",
                "retries": any(kind == "retry" for kind, _ in actor["waits"]),
            }
            for actor in view["actors"]
        },
    }


@pytest.mark.parametrize("seed", [53, 1032, 654, 196, 964, 835, 21])
def test_a_page_counts_what_the_journal_counts_at_every_moment_of_a_wild_run(
    seed: int, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page counts what the runtime itself counts, at every moment of a wild run, looked back at from its end."""
    records = simulated(seed, monkeypatch)[:600]
    state = RunState(histories=False)
    wanted: list[dict[str, Any]] = []
    for record in records:
        state = fold(state, record)
        wanted.append(expected(state))
    at = sorted({*range(1, len(records) + 1, max(1, len(records) // 60)), len(records)})
    (views,) = node({"task": "views", "events": lines(records), "at": at})
    for seq, view in zip(at, views, strict=True):
        assert wanted[seq - 1] == told(view), f"after event {seq}"
        assert all(actor["clock"] >= 0 for actor in view["actors"])


def event(seq: int, type_name: str, actor: str = "a", at: float = 0.0, **body: Any) -> dict[str, Any]:
    stamp = f"2026-11-29T12:{int(at) // 60:02}:{at % 60:06.3f}Z"
    return {"v": 1, "seq": seq, "at": stamp, "run": "k7f2", "actor": actor, "type": type_name, **body}


def live(type_name: str, actor: str = "a", **body: Any) -> dict[str, Any]:
    return {"v": 1, "after": 0, "n": 1, "run": "k7f2", "actor": actor, "type": type_name, **body}


def started(seq: int, path: str, at: float, parent: str | None = None, call: str | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "agent": path,
        "number": 0,
        "task": "t",
        "model": "m",
        "prompt": [],
        "tools": [],
        "parent": parent,
    }
    limits = {"max_steps": 9, "timeout": 600} if parent is None else {"token_budget": 100}
    return event(seq, "actor.started", path, at, limits=limits, call_id=call, **body)


def requested(seq: int, path: str, at: float, **more: Any) -> dict[str, Any]:
    body = {"turn": 0, "model": "m", "purpose": "turn", "elapsed": 0.0, **more}
    return event(seq, "model.requested", path, at, **body)


def finished(seq: int, path: str, at: float, *calls: tuple[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "turn": 0,
        "text": "",
        "reasoning": "",
        "finish": "tool_calls",
        "usage": {},
        "cost_usd": None,
        "seconds": 1,
    }
    given: list[dict[str, Any]] = [{"id": id, "name": name, "arguments": {}} for id, name in calls]
    return event(seq, "model.finished", path, at, tool_calls=given, purpose="turn", **body)


def test_who_waits_says_for_whom_and_clocks_stand_while_only_humans_are_waited_for(node: Node) -> None:
    """Who waits says for whom; an actor's clock stands while nobody below it does anything but wait for a human."""
    ask: dict[str, Any] = {
        "id": "a1",
        "call_id": "c2",
        "name": "shell",
        "arguments": {},
        "why": "",
        "preview": "",
        "always": [],
    }
    events = [
        event(1, "run.started", "", task="t", agent="a", model="m", limits={}),
        started(2, "a", 0),
        requested(3, "a", 1),
        finished(4, "a", 2, ("c1", "delegate_to_b")),
        event(5, "tool.started", "a", 2, call_id="c1", name="delegate_to_b"),
        started(6, "a/b-1", 3, "a", "c1"),
        requested(7, "a/b-1", 3),
        finished(8, "a/b-1", 4, ("c2", "shell"), ("c3", "list_files")),
        event(9, "approval.requested", "a/b-1", 5, about="call", **ask),
        event(10, "tool.started", "a/b-1", 5, call_id="c3", name="list_files"),
        event(11, "tool.finished", "a/b-1", 6, call_id="c3", name="list_files", result="", is_error=False, seconds=1,
              kind="ok", full=""),
        event(12, "approval.decided", "a/b-1", 106, id="a1", decision="allow", by="you", why="", arguments=None),
        event(13, "tool.started", "a/b-1", 106, call_id="c2", name="shell"),
    ]  # fmt: skip
    (views,) = node({"task": "views", "events": events, "at": [3, 10, 11, 13], "now": None})
    doing: list[dict[str, tuple[str, Any]]] = [
        {actor["path"]: (actor["doing"], actor["waits"]) for actor in view["actors"]} for view in views
    ]
    assert {"a": ("thinking", [["model", "an answer of m"]])} == doing[0]
    both = [["approval", "you: a1"], ["tool", "list_files"]]
    assert {"a": ("waiting", [["child", "b-1"]]), "a/b-1": ("calling", both)} == doing[1]
    assert ("waiting", [["approval", "you: a1"]]) == doing[2]["a/b-1"]
    assert ("calling", [["tool", "shell"]]) == doing[3]["a/b-1"]
    assert [6, 3] == [actor["clock"] for actor in views[2]["actors"]]
    assert [6, 3] == [actor["clock"] for actor in views[3]["actors"]]
    bounds = [(each["limit"], each["scope"], each["inherited"]) for each in views[3]["actors"][1]["budgets"]]
    assert [("token_budget", "a/b-1", False), ("timeout", "a", True)] == bounds


def test_a_pages_clocks_stand_while_there_is_no_process(node: Node) -> None:
    """Neither the time before a resume counts, nor what an ended actor's own clock has not counted."""
    events = [
        event(1, "run.started", "", 0, task="t", agent="a", model="m", limits={}),
        started(2, "a", 0),
        started(3, "a/b", 1, "a", "c"),
        requested(4, "a/b", 2),
        event(5, "run.resumed", "", 902),
        event(6, "actor.finished", "a/b", 905, report={"status": "completed", "text": ""}, elapsed=3.5),
    ]
    (views,) = node({"task": "views", "events": events, "at": [5, 6], "now": None})
    assert [[2, 1], [5, 3.5]] == [[actor["clock"] for actor in view["actors"]] for view in views]


def test_live_text_is_joined_begins_anew_at_a_reset_and_gives_way_to_the_reply(node: Node) -> None:
    """Live text is joined piece by piece, begins anew at a reset, and gives way to the reply."""
    begun = [
        event(1, "run.started", "", task="t", agent="a", model="m", limits={}),
        started(2, "a", 0),
        requested(3, "a", 1),
    ]
    text = [live("model.delta", kind="text", index=0, text=piece, reset=False) for piece in ("one ", "two")]
    thought = live("model.delta", kind="reasoning", index=0, text="hm", reset=False)
    again = live("model.delta", kind="text", index=0, text="one two three", reset=True)
    twice = [*begun, *text, begun[2], thought]
    turns = [
        found["actors"][0]["turn"]
        for found in node(
            {"task": "live", "events": twice},
            {"task": "live", "events": [*twice, again]},
            {"task": "live", "events": [*twice, finished(4, "a", 2)]},
        )
    ]
    joined = [{"kind": "text", "index": 0, "text": "one two"}, {"kind": "reasoning", "index": 0, "text": "hm"}]
    assert [joined, [{"kind": "text", "index": 0, "text": "one two three"}], []] == turns


def test_server_sent_events_are_the_same_however_their_text_is_cut(node: Node) -> None:
    """Server-sent events are the same at every cut of their text."""
    text = (
        'data: {"seq":1}\ndata: {"seq":2}\n\n: still here\n\nevent: reached\ndata: {"owned":true}\n\ndata: {"é":3}\n\n'
    )
    wanted = [["message", '{"seq":1}\n{"seq":2}'], ["reached", '{"owned":true}'], ["message", '{"é":3}']]
    cuts = [{"task": "split", "pieces": [text[:cut], text[cut:]]} for cut in range(len(text) + 1)]
    for found in node(*cuts, {"task": "split", "pieces": list(text)}):
        assert wanted == found


def test_amounts_and_times_are_written_as_a_person_reads_them(node: Node) -> None:
    """Amounts and times are written as a person reads them; long texts are cut at a line, with a count of the rest."""
    values = {
        "count": ([[950], [18_400], [200_000], [999_950]], ["950", "18.4k", "200k", "1M"]),
        "cost": ([[None], [0], [0.0041], [1.5]], ["unknown", "$0", "$0.0041", "$1.50"]),
        "span": ([[0.44], [9.96], [38], [125], [3725]], ["0.4 s", "10 s", "38 s", "2:05 min", "1:02:05 h"]),
        "ago": ([[0, 59], [0, 300], [0, 90_000]], ["now", "5 min ago", "yesterday"]),
        "firstLines": (
            [["a\nb\nc", 3], ["a\nb\nc\nd", 3], ["a\nb\nc\n", 3], ["", 3], ["a\nb\nc\nd\ne\n", 3]],
            [
                {"text": "a\nb\nc", "more": 0},
                {"text": "a\nb\nc", "more": 1},
                {"text": "a\nb\nc\n", "more": 0},
                {"text": "", "more": 0},
                {"text": "a\nb\nc", "more": 2},
            ],
        ),
    }
    found = node(*({"task": "format", "name": name, "values": given} for name, (given, _) in values.items()))
    assert [wanted for _, wanted in values.values()] == found


def test_parallel_bars_stand_side_by_side_and_never_over_each_other(node: Node) -> None:
    """Parallel bars stand side by side, each actor's in a band of its own, and none over another."""
    bars = [
        {"actor": "a", "from": 0, "to": 4},
        {"actor": "a/b", "from": 1, "to": 3},
        {"actor": "a", "from": 1, "to": 2},
        {"actor": "a", "from": 2, "to": None},
        {"actor": "a", "from": 4, "to": 5},
        {"actor": "gone", "from": 4, "to": 5},
    ]
    (found,) = node({"task": "lanes", "bars": bars, "paths": ["a", "a/b"]})
    assert [("a", 0, 2), ("a/b", 2, 1)] == [(row["path"], row["top"], row["lanes"]) for row in found["rows"]]
    placed = [(each["lane"], each["bar"]["from"], each["bar"]["to"] or math.inf) for each in found["placed"]]
    assert 5 == len(placed)
    for number, (lane, begin, end) in enumerate(placed):
        assert all(lane != other or end <= since or to <= begin for other, since, to in placed[number + 1 :])


def test_runs_come_live_first_then_newest_and_a_filter_takes_every_word(node: Node) -> None:
    """Runs come live first, then newest; a filter takes state, agent and every word anywhere."""

    def run(id: str, state: str, started: int, *, owned: bool = False, agent: str = "writer", task: str = "") -> Any:
        return {
            "id": id,
            "name": "",
            "state": state,
            "started": started,
            "owned": owned,
            "agent": agent,
            "task": task,
            "model": "m",
        }

    runs = [
        run("a", "completed", 9),
        run("b", "running", 1, owned=True, agent="coordinator", task="Write Notes"),
        run("c", "waiting", 2, task="write a poem"),
        run("d", "completed", 5),
    ]
    nothing = {"state": "", "agent": "", "text": ""}
    filters = [
        nothing,
        {**nothing, "state": "live"},
        {**nothing, "agent": "writer"},
        {**nothing, "text": "NOTES write"},
    ]
    found = node(*({"task": "runs", "runs": runs, "filter": each} for each in filters))
    assert [["b", "c", "a", "d"], ["b"], ["c", "a", "d"], ["b"]] == found
