"""Five hundred steps in a window of eight thousand tokens, and what was found on the way is still there at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from runtime.conversation import checked
from runtime.messages import ToolResults, UserMessage
from runtime.model import ModelRequest, ProviderError

if TYPE_CHECKING:
    from tests.context.conftest import Small

STEPS = 500
PLANTED = {7: "the key is under the third pot", 130: "the meeting is on Tuesday", 311: "the pump makes 42 bar"}
FACT = re.compile(r"FACT (\d+): [^\n]*")


def page(number: int) -> str:
    """What is on a page: much, and sometimes something to remember."""
    fact = f"FACT {number}: {PLANTED[number]}\n" if number in PLANTED else ""
    return f"page {number}\n{fact}" + f"nothing of note on page {number}. " * 12


def walker(summary: Callable[[ModelRequest], Any], call: Any) -> Callable[[ModelRequest], Any]:
    """A model that reads page after page, looks for what its context no longer shows, and answers."""

    def answer(request: ModelRequest) -> Any:
        if request.agent == "summary":
            return summary(request)
        if request.turn < STEPS - 10:
            return call("look", at=request.turn)
        shown = " ".join(
            message.text
            if isinstance(message, UserMessage)
            else " ".join(result.content for result in message.results)
            if isinstance(message, ToolResults)
            else ""
            for message in request.messages
        )
        missing = [number for number, fact in PLANTED.items() if f"FACT {number}: {fact}" not in shown]
        if missing and request.tool_choice != "none":
            return call("read_result", handle="*", find=f"FACT {missing[0]}:")
        return "\n".join(f"FACT {number}: {fact}" for number, fact in PLANTED.items() if number not in missing)

    return answer


def facts_only(request: ModelRequest) -> str:
    facts = dict.fromkeys(found[0] for found in FACT.finditer(request.messages[0].text))  # type: ignore[union-attr]
    return "## Facts, each with its source\n" + "\n".join(facts)


@pytest.mark.parametrize("way", ["summary", "handles"])
async def test_five_hundred_steps_in_eight_thousand_tokens(small: Small, Model: Any, call: Any, way: str) -> None:
    """The run finishes, no request is larger than the window, and the planted facts are answered."""

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return page(at)

    broken = ProviderError("provider", "no summaries today")
    small.model = Model(walker(facts_only if way == "summary" else lambda _: broken, call))
    report = await small.run()
    assert report.status == "completed"
    for number, fact in PLANTED.items():
        assert f"FACT {number}: {fact}" in report.text
    sizes = [request.max_output_tokens + small.model.tokens(request) for request in small.model.turns]
    assert max(sizes) <= 8000
    for event in small.compactions:
        assert event.before > 6400
        assert event.after <= 4000
    assert 5 < len(small.compactions) < 100
    checked(small.state.actors["solo"].history)
    assert small.state.actors["solo"].history[0] == UserMessage("the first task")
    summaries = [event for event in small.compactions if any(step.startswith("summarised") for step in event.steps)]
    assert bool(summaries) == (way == "summary")
