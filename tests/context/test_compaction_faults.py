"""Public faults of compaction and history (shared/faults.md, C1 and C2), each as it would show here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from runtime.app import LiveRun, Resumption
from runtime.conversation import checked
from runtime.events import LoopBlocked, LoopNudged, LoopStopped, MessageReceived, ModelChanged, ToolFinished
from runtime.messages import ToolResults
from runtime.model import ModelRequest, ProviderError
from runtime.resume import limits_after
from runtime.switching import switch_model

if TYPE_CHECKING:
    from tests.context.conftest import Model as Lab
    from tests.context.conftest import Small


def pages(small: Small, size: int = 900) -> list[int]:
    """A tool that shows pages of so many bytes; what was looked at."""
    looked: list[int] = []

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        looked.append(at)
        return f"page {at} ".ljust(size, ".")

    return looked


def fits(small: Small) -> bool:
    """Whether every request was smaller than the window."""
    assert small.window is not None
    return all(
        request.max_output_tokens + small.model.tokens(request) <= small.window for request in small.model.requests
    )


async def test_the_guard_counts_on_over_a_compaction(
    make_small: Callable[[], Small], Model: type[Lab], call: Any
) -> None:
    """R12: equal calls before and behind a compaction are counted as one row: refused and stopped as without it."""
    seen: list[tuple[int, list[str]]] = []
    for window in (None, 6000):
        small = make_small()
        looked = pages(small)
        small.agent_loops, small.window = {}, window
        compactions: list[int] = []

        def answer(request: ModelRequest, small: Small = small, compactions: list[int] = compactions) -> Any:
            if request.agent == "summary":
                return "## Goal\nlook"
            if request.tool_choice == "none":
                return "nothing new"
            if request.turn < 13:
                return call("look", at=request.turn)
            compactions.append(len(small.compactions))
            return call("look", at=999)

        small.model = Model(answer)
        report = await small.run()
        assert (report.status, report.reason) == ("stopped", "loop")
        alerts = small.of(LoopBlocked, LoopStopped)
        assert small.of(LoopNudged)
        seen.append((looked.count(999), [f"{event.type}: {event.why}" for event in alerts]))
        if window is not None:
            assert compactions[1] < compactions[-1], "a compaction fell between the equal calls"
    assert seen[0] == seen[1]
    assert len(seen[0][1]) == 2


async def test_the_size_is_looked_at_before_every_request(small: Small, Model: type[Lab], call: Any) -> None:
    """R48: thirty growing rounds of one turn are compacted on the way, not at its end."""
    pages(small, 1800)
    small.model = Model(lambda request: call("look", at=request.turn) if request.turn < 30 else "done")
    report = await small.run()
    assert report.status == "completed"
    assert fits(small)
    turns = [at for at, event in enumerate(small.events) if event.type == "model.finished"]
    places = [at for at, event in enumerate(small.events) if event.type == "context.compacted"]
    assert places
    assert places[-1] < turns[-1]


async def test_one_result_above_the_window_is_head_tail_and_a_handle(small: Small, Model: type[Lab], call: Any) -> None:
    """R66: five megabytes in one result leave the turn whole; the text is kept, and cut between characters."""
    whole = "begin " + "wörd 🌊 " * 500_000 + " end"

    @small.tool(effects="none", private=True, max_result_chars=10_000_000)
    async def flood() -> str:
        """Much."""
        return whole

    def answer(request: ModelRequest) -> Any:
        if request.turn == 0:
            return call("flood")
        return call("read_result", handle="a0t0c0", start=len(whole) - 50) if request.turn == 1 else "done"

    small.model = Model(answer)
    report = await small.run()
    assert report.status == "completed"
    assert fits(small)
    shown = small.model.turns[1].messages[-1]
    assert isinstance(shown, ToolResults)
    text = shown.results[0].content
    assert text.startswith("begin wörd")
    assert text.endswith(" end")
    assert "\ufffd" not in text
    assert "read_result(" in text
    page = small.model.turns[2].messages[-1]
    assert isinstance(page, ToolResults)
    assert whole[-50:] in page.results[0].content


async def test_a_background_report_outlives_the_compaction_of_its_parent(
    small: Small, Model: type[Lab], call: Any
) -> None:
    """R56: a child that ends while its parent is compacted is heard of once, whatever was cut meanwhile."""
    pages(small)
    small.aides = ("aide",)

    def answer(request: ModelRequest) -> Any:
        if request.agent == "aide":
            return "dug up a chest" if len(small.compactions) else call("nothing")
        if request.turn == 0:
            return call("start_aide", task="dig")
        return call("look", at=request.turn) if request.turn < 30 else "done"

    small.model = Model(answer)
    report = await small.run()
    assert report.status == "completed"
    assert small.compactions
    assert len(small.of(MessageReceived)) == 1
    assert small.state.undelivered == {}


async def test_a_cancelled_call_has_its_result_before_the_history_is_cut(
    small: Small, Model: type[Lab], call: Any
) -> None:
    """R50: rounds of several calls, some refused, are whole pairs after each compaction and in every request."""
    pages(small)
    small.model = Model(
        lambda request: (
            (*call("look", at=request.turn), *call("nowhere", x=1), *call("look", at=-request.turn))
            if request.turn < 20
            else "done"
        )
    )
    report = await small.run()
    assert report.status == "completed"
    assert small.compactions
    for request in small.model.turns:
        checked(request.messages)
    kinds = {event.kind for event in small.of(ToolFinished)}
    assert kinds == {"ok", "error"}


# --- no gain, no end ---------------------------------------------------------------------------------------------


async def test_a_task_that_fills_the_window_ends_the_run_at_once(small: Small, Model: type[Lab]) -> None:
    """Where nothing can be freed there is no compaction and no summary: the run stops with `context_window`."""
    small.task = "word " * 6150
    small.model = Model(lambda request: "short", counts=True)
    report = await small.run()
    assert (report.status, report.reason) == ("stopped", "context_window")
    assert report.detail.startswith("context_window: about 7,")
    assert small.compactions == []
    assert small.model.summaries == []


async def test_a_window_that_cannot_hold_the_work_ends_with_a_partial_answer(
    small: Small, Model: type[Lab], call: Any
) -> None:
    """People's words that leave no room end the run with what the model has said, after a bounded number of tries."""
    pages(small)
    small.task = "word " * 4700
    small.model = Model(lambda request: "so far" if request.tool_choice == "none" else call("look", at=request.turn))
    report = await small.run()
    assert (report.status, report.reason, report.text) == ("stopped", "context_window", "so far")
    assert len(small.compactions) <= 3
    assert len(small.model.summaries) <= 2


# --- what the provider says --------------------------------------------------------------------------------------


def strict(small: Small, most: int, words: str, call: Any) -> Callable[[ModelRequest], Any]:
    """A server that refuses what is too long for it."""

    def answer(request: ModelRequest) -> Any:
        room = request.max_output_tokens if "{most}" in words else 0
        if small.model.tokens(request) + room > most:
            return ProviderError("context_length", words.format(most=most))
        if request.agent == "summary":
            return "## Goal\nlook"
        return call("look", at=request.turn) if request.turn < 40 else "done"

    return answer


@pytest.mark.parametrize(
    "words", ["maximum context length is {most} tokens, messages and max_tokens together", "prompt is too long"]
)
async def test_a_window_nobody_knew_is_learned_from_a_refusal(
    small: Small, Model: type[Lab], call: Any, words: str
) -> None:
    """A prompt refused as too long is compacted and sent again, and from then on the window is kept."""
    looked = pages(small)
    small.window = None
    small.model = Model(strict(small, 9000, words, call))
    report = await small.run()
    assert report.status == "completed", report
    assert looked == list(range(40))
    assert small.compactions
    assert small.state.actors["solo"].window == small.compactions[-1].window
    assert (small.state.actors["solo"].window or 0) <= 9600
    refused = [event for event in small.events if event.type == "model.failed"]
    assert 1 <= len(refused) <= 4


async def test_a_server_that_refuses_everything_ends_the_run(small: Small, Model: type[Lab], call: Any) -> None:
    """A server that takes no prompt, however small, ends the run with `context_window` after a few tries."""
    pages(small)
    small.model = Model(
        lambda request: call("look", at=request.turn) if request.turn < 6 else ProviderError("context_length", "no")
    )
    report = await small.run()
    assert (report.status, report.reason) == ("stopped", "context_window")
    assert len(small.model.requests) < 20


async def test_a_window_raised_in_the_settings_counts_on_resume(small: Small, Model: type[Lab], call: Any) -> None:
    """A window that only the settings had told is no lesson of a server: on resume what they say now counts."""

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return f"page {at} ".ljust(1800, ".")

    small.model = Model(lambda request: call("look", at=request.turn) if request.turn < 80 else "done")
    small.caps = attrs.evolve(small.caps, max_steps=40)
    assert (await small.run()).status == "stopped"
    before = len(small.compactions)
    assert before
    small.window = 1_000_000
    assert (await small.resume(max_steps="+80")).status == "completed"
    assert len(small.compactions) == before


async def test_the_window_is_that_of_the_model_that_is_asked_now(small: Small, Model: type[Lab], call: Any) -> None:
    """Who goes on with a model of another window, within a run, is compacted by that window from its next request."""
    running: list[LiveRun] = []

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        if at == 30:
            switch_model(running[0].run, "wide/m", None, "you")
        return f"page {at} ".ljust(1800, ".")

    small.model = Model(lambda request: call("look", at=request.turn))
    wide = small.others["wide"] = Model(lambda request: call("look", at=request.turn) if request.turn < 80 else "done")
    async with small.opened() as live:
        running.append(live)
        report = await live.report()
    assert report is not None
    assert report.status == "completed", report
    assert small.compactions
    assert len(wide.requests) >= 40
    (switch,) = (event for event in small.of(ModelChanged) if event.actor)
    assert all(small.events.index(event) < small.events.index(switch) for event in small.compactions)
    assert small.state.actors["solo"].window is None


async def test_a_resume_with_another_model_is_for_the_root_and_those_whose_files_name_none(
    small: Small, Model: type[Lab], call: Any
) -> None:
    """What a smaller model was found to hold is not held against the next one, and the switch is on record."""
    pages(small)
    small.window = None
    small.model = Model(strict(small, 6000, "prompt is too long", call))
    small.caps = attrs.evolve(small.caps, max_steps=30)
    assert (await small.run()).status == "stopped"
    before = len(small.compactions)
    assert before
    wide = small.others["wide"] = Model(lambda request: call("look", at=request.turn) if request.turn < 90 else "done")
    state = small.state
    limits = limits_after(state, {"max_steps": "+90"})
    async with small.opened(Resumption(state, limits, {"max_steps": "+90"}, model="wide/m")) as live:
        report = await live.report()
    assert report is not None
    assert (report.status, len(small.compactions)) == ("completed", before), report
    assert len(wide.requests) > 30
    whole, own = small.of(ModelChanged)
    assert ("", "lab/m", "wide/m", "resume") == (whole.actor, whole.before, whole.model, whole.by)
    assert ("solo", "lab/m", "wide/m", "resume") == (own.actor, own.before, own.model, own.by)
    assert small.state.started is not None
    assert ("wide/m", "wide/m") == (small.state.started.model, small.state.actors["solo"].model)
