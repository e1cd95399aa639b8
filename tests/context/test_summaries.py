"""Who writes a summary, what it may use, and what happens where nobody can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runtime.events import BudgetSettled, ContextCompacted, ModelFinished
from runtime.limits.limits import Limits
from runtime.limits.price import Price
from runtime.messages import UserMessage
from runtime.model import ModelRequest, ProviderError

if TYPE_CHECKING:
    from tests.context.conftest import Model as Lab
    from tests.context.conftest import Small

STEPS = 40
NOTES = "## Goal\nlook at pages\n## Facts, each with its source\npage 3 is blue (a0t3c0)"


def reader(small: Small, call: Any, summary: Any = NOTES) -> Any:
    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return f"page {at} ".ljust(900, ".")

    def answer(request: ModelRequest) -> Any:
        if request.agent == "summary":
            return summary
        return call("look", at=request.turn) if request.turn < STEPS else "done"

    return answer


def notes(small: Small) -> list[str]:
    """The texts that stood in the place of older messages, as requests showed them."""
    shown = {
        message.text: None
        for request in small.model.turns
        for message in request.messages
        if isinstance(message, UserMessage) and message.text.startswith("Summary of what came before")
    }
    return list(shown)


async def test_a_summary_is_asked_for_without_tools_and_charged(small: Small, Model: type[Lab], call: Any) -> None:
    """The request for a summary has no tools and a fixed form; its cost is the actor's, its reply no step."""
    small.price = Price(1.0, 5.0)
    small.model = Model(reader(small, call))
    report = await small.run()
    assert (report.status, report.steps) == ("completed", STEPS + 1)
    asked = small.model.summaries
    assert asked
    for request in asked:
        assert request.tools == ()
        assert len(request.messages) == 1
        for heading in ("Goal", "Decisions", "Facts", "Files touched", "Open questions", "Tried and failed"):
            assert f"## {heading}" in request.system[0]
    replies = small.of(ModelFinished)
    assert [event.purpose for event in replies].count("summary") == len(asked)
    settled = small.of(BudgetSettled)
    assert len(settled) == len(replies)
    assert report.usage.input == sum(event.usage["input"] for event in settled)
    assert report.cost_usd == pytest.approx(sum(event.cost_usd for event in settled))
    assert all("page 3 is blue (a0t3c0)" in text for text in notes(small))
    assert "Written by lab/m:" in notes(small)[0]


async def test_a_cheaper_model_may_write_the_summaries(small: Small, Model: type[Lab], call: Any) -> None:
    """With `context.summary_model` another model is asked, with its own name on what it wrote."""
    small.model = Model(reader(small, call))
    cheap = small.others["cheap"] = Model(lambda request: NOTES)
    small.summary_model = "cheap/tiny"
    report = await small.run()
    assert report.status == "completed"
    assert small.model.summaries == []
    assert len(cheap.requests) == sum(
        any(step.startswith("summarised") for step in event.steps) for event in small.of(ContextCompacted)
    )


@pytest.mark.parametrize("fault", [ProviderError("provider", "no summaries today"), "", "   \n"])
async def test_without_a_summary_the_record_is_listed(
    small: Small, Model: type[Lab], call: Any, fault: str | Exception
) -> None:
    """A model that fails, or writes nothing, is replaced by a list of what the record says; the work goes on."""
    small.model = Model(reader(small, call, fault))
    report = await small.run()
    assert report.status == "completed"
    why = str(fault) if isinstance(fault, Exception) else "the model wrote nothing"
    assert f"Put together from the record, because {why}:" in notes(small)[0]
    assert "## Goal\nthe first task" in notes(small)[0]
    assert "[look" in notes(small)[0]


async def test_a_budget_that_pays_no_summary_pays_for_the_work(small: Small, Model: type[Lab], call: Any) -> None:
    """Where a summary does not fit the budget, none is asked for; limits hold, and the run ends with its last turn."""
    small.limits = Limits(token_budget=90_000)
    small.model = Model(reader(small, call))
    report = await small.run()
    assert (report.status, report.reason) == ("stopped", "token_budget")
    assert report.usage.total <= 90_000
    assert small.model.turns[-1].tool_choice == "none"


async def test_a_summary_longer_than_its_room_is_cut(small: Small, Model: type[Lab], call: Any) -> None:
    """A model that writes more than was asked for does not fill the window with its summary."""
    small.model = Model(reader(small, call, NOTES + "\n- and so on" * 4000))
    report = await small.run()
    assert report.status == "completed"
    assert all(event.after <= 4000 for event in small.compactions)
    assert max(map(len, notes(small))) < 8000
