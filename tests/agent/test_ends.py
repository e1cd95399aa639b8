"""How an agent's work ends, whatever ends it."""

from __future__ import annotations

from typing import Any


async def test_an_answer_completes_the_run(stage: Any) -> None:
    """An answer without calls completes the run."""
    stage.agent("lead")
    stage.script("lead: [the answer]")
    report = await stage.run()
    assert ("completed", "the answer", 1) == (report.status, report.text, report.steps)


async def test_a_provider_error(stage: Any) -> None:
    stage.agent("lead")
    stage.script("lead: [{fail: {kind: provider, message: broken}}]")
    report = await stage.run()
    assert ("failed", "broken") == (report.status, report.detail)
