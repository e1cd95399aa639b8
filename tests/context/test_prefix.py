"""What stands before the newest messages is byte for byte the same from step to step, or an event says why not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime.events import ContextCompacted, PrefixChanged, SkillLoaded
from runtime.model import ModelRequest
from runtime.wire import DIALECTS, WIRES, RequestEncoder, WireName

if TYPE_CHECKING:
    from tests.context.conftest import Model as Lab
    from tests.context.conftest import Small

STEPS = 100
HOMES = {"openai-chat": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic"}
MARK = b',"cache_control":{"type":"ephemeral"}'
SKILL = "---\nname: care\ndescription: How to read with care.\n---\nRead every line twice.\n"


def history_of(body: bytes) -> bytes:
    """A request's bytes up to the end of its messages, without the marks that say how far to cache."""
    plain = body.replace(MARK, b"")
    return plain[: plain.rindex(b'"stream":true')].rpartition(b"]")[0].rstrip(b"]}")


@pytest.mark.parametrize("window", [None, 8000])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_prefix_of_a_hundred_steps_changes_only_where_an_event_says_so(
    small: Small, Model: type[Lab], call: Any, wire: WireName, window: int | None, tmp_path: Path
) -> None:
    """Each of a hundred requests begins with the bytes of the one before, a loaded skill included, but for those
    right behind a `context.compacted`."""
    folder = tmp_path / "skills" / "care"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return f"page {at} ".ljust(700, ".")

    def answer(request: ModelRequest) -> Any:
        if request.agent == "summary":
            return "## Goal\nlook"
        if request.turn == 10:
            return call("use_skill", name="care")
        return call("look", at=request.turn) if request.turn < STEPS - 1 else "done"

    small.window = window
    small.model = Model(answer)
    report = await small.run()
    assert (report.status, len(small.model.turns)) == ("completed", STEPS)
    encoder = RequestEncoder(wire, DIALECTS[HOMES[wire]])
    bodies = [encoder.encode(request) for request in small.model.turns]
    broken = [
        number
        for number, (before, after) in enumerate(pairwise(bodies), 1)
        if not after.replace(MARK, b"").startswith(history_of(before))
    ]
    turn, told = 0, list[int]()
    for event in small.events:
        match event:
            case ContextCompacted():
                told.append(turn)
            case _:
                turn += event.type == "model.finished" and getattr(event, "purpose", "") != "summary"
    assert broken == told
    assert bool(told) == (window is not None)
    assert len(small.of(SkillLoaded)) == 1
    assert small.of(PrefixChanged) == []
    if wire == "anthropic-messages":
        assert all(1 <= body.count(MARK) <= 4 for body in bodies)
    else:
        assert all(b'"prompt_cache_key":"solo"' in body for body in bodies)


async def test_the_compacted_history_is_a_prefix_again(small: Small, Model: type[Lab], call: Any) -> None:
    """Between two compactions no message is touched: what follows one is the same objects, and more."""

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return f"page {at} ".ljust(700, ".")

    small.model = Model(lambda request: call("look", at=request.turn) if request.turn < 80 else "done")
    await small.run()
    changes = 0
    for before, after in pairwise(small.model.turns):
        kept = after.messages[: len(before.messages)]
        changes += (
            not all(a is b for a, b in zip(before.messages, kept, strict=True))
            if len(kept) == len(before.messages)
            else 1
        )
    assert changes == len(small.compactions)
