"""The offline cast at work on real files: every agent decides by its tools, the tools are the real ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from runtime.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    assign_call_ids,
)
from runtime.model import ModelRequest, ToolSpec
from runtime.policy.paths import Workspace
from runtime.providers.offline_policy import decide
from runtime.tools import ToolBox, ToolContext
from runtime.tools.files import list_files, read_file
from runtime.tools.passages import PassageCache, search_passages_tool

Calls: TypeAlias = list[tuple[str, ToolCall, ToolResult]]
Play: TypeAlias = Callable[[Path, str], Awaitable[tuple[str, Calls]]]

CAST = {
    "coordinator": ("delegate_to_researcher", "delegate_to_reviewer", "delegate_to_writer", "read_file", "list_files"),
    "researcher": ("search_passages", "read_file", "list_files"),
    "reviewer": ("read_file",),
    "writer": (),
}
MOST_TURNS = 12


class _Cast:
    def __init__(self, workspace: Workspace) -> None:
        self.context = ToolContext(workspace)
        self.box = ToolBox([read_file, list_files, search_passages_tool(PassageCache())])
        self.calls: Calls = []

    async def answer(self, agent: str, task: str) -> str:
        messages: list[Message] = [UserMessage(task)]
        tools = tuple(ToolSpec(name, "", {}) for name in CAST[agent])
        for turn in range(MOST_TURNS):
            reply = decide(ModelRequest("extract", (), tuple(messages), tools, agent=agent, turn=turn))
            message = assign_call_ids(AssistantMessage(reply.parts, reply.finish), f"{agent}{turn}")
            messages.append(message)
            if not message.calls:
                return message.text
            messages.append(await self.round(agent, message.calls))
        raise AssertionError(f"{agent} does not come to an end")

    async def round(self, agent: str, calls: Sequence[ToolCall]) -> ToolResults:
        results: list[ToolResult] = []
        for call in calls:
            assert call.arguments is not None
            if call.name.startswith("delegate_to_"):
                report = await self.answer(call.name.removeprefix("delegate_to_"), call.arguments["task"])
                result = ToolResult(call.id, call.name, report)
            else:
                result = await self.box.run(call, self.context)
            self.calls.append((agent, call, result))
            results.append(result)
        return ToolResults(tuple(results))


@pytest.fixture
def play() -> Play:
    """Let the coordinator answer a question about a folder: its answer, and all calls with agent and result."""

    async def run(folder: Path, question: str) -> tuple[str, Calls]:
        with Workspace(folder) as workspace:
            cast = _Cast(workspace)
            return await cast.answer("coordinator", question), cast.calls

    return run
