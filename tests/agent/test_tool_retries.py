"""Tool retries: as the tool declares, each attempt on record, and each counted as a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.events import ToolFinished, ToolRetried
from runtime.tools import ToolError

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.agent.conftest import Stage

SCRIPT = """
    lead:
      - calls: [{name: ask_server, arguments: {}}]
      - calls: [{name: ask_server, arguments: {}}]
      - text: done
"""


@pytest.mark.parametrize(("limit", "attempts", "results"), [(None, 6, ["ok", "ok"]), (4, 4, ["ok", "error"])])
async def test_each_attempt_is_on_record_and_counts(
    stage: Stage, autojump_clock: MockClock, limit: int | None, attempts: int, results: list[str]
) -> None:
    """A flaky server is asked again as declared; every attempt is an event and one more call against the limit."""
    tries: list[str] = []

    @stage.tool(effects="none", retries=2)
    async def ask_server() -> str:
        """Ask it."""
        tries.append("x")
        if len(tries) % 3:
            raise ToolError("busy", transient=True)
        return "here"

    stage.agent("lead", tools=["ask_server"], max_tool_calls=limit)
    stage.allow = ("ask_server",)
    stage.script(SCRIPT)
    await stage.run()
    events = stage.events
    assert attempts == len(tries)
    assert results == [event.kind for event in events if isinstance(event, ToolFinished)]
    retried = [(event.attempt, event.message) for event in events if isinstance(event, ToolRetried)]
    assert attempts - 2 == len(retried)
    assert {(0, "busy"), (1, "busy")} >= set(retried)
    assert attempts == stage.state.actors["lead"].tool_calls


async def test_what_may_not_run_twice_is_never_tried_again(stage: Stage, autojump_clock: MockClock) -> None:
    """A tool whose effect may have come about is not tried again, and a fault that cannot heal neither."""
    tries: list[str] = []

    @stage.tool(effects="once")
    async def send() -> str:
        """Send it."""
        tries.append("send")
        raise ToolError("busy", transient=True)

    @stage.tool(effects="none", retries=5)
    async def look_up() -> str:
        """Look it up."""
        tries.append("look_up")
        raise ToolError("no such thing")

    stage.agent("lead", tools=["send", "look_up"])
    stage.allow = ("send", "look_up")
    stage.script("""
        lead:
          - calls: [{name: send, arguments: {}}, {name: look_up, arguments: {}}]
          - text: done
    """)
    await stage.run()
    assert ["send", "look_up"] == tries
    assert not [event for event in stage.events if isinstance(event, ToolRetried)]
