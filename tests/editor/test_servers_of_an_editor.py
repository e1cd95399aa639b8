"""MCP servers that an editor hands over with its session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from runtime.editor.rpc import INVALID_PARAMS, RpcError
from runtime.editor.servers import handed

if TYPE_CHECKING:
    from .conftest import Open
else:
    Open = Any

ASKS_THE_TIME = "scribe: [{calls: [{name: clock_get_current_time, arguments: {timezone: UTC}}]}, {text: done}]"
CLOCK = {"name": "clock", "command": sys.executable, "args": ["-m", "mcp_server_time"], "env": []}


@pytest.mark.parametrize("method", ["session/new", "session/load"])
async def test_the_agent_has_the_tools_of_a_server_that_the_editor_hands_over(opened: Open, method: str) -> None:
    """The session's agent has the tools of a server that the editor hands over; a call of one asks the human."""
    async with opened(ASKS_THE_TIME) as editor:
        session = await editor.begin()
        place = {"cwd": str(editor.workspace), "sessionId": session, "mcpServers": [CLOCK]}
        session = (await editor.peer.request(method, place)).get("sessionId", session)
        await editor.prompt(session, "what time is it?")
    assert 1 == len(editor.asked)
    assert "completed" == editor.of("tool_call_update")[-1]["status"]
    assert "datetime" in str(editor.of("tool_call_update")[-1])


async def test_a_session_without_servers_has_none_of_their_tools(opened: Open) -> None:
    """Another session of the same editor has none of these tools."""
    async with opened(ASKS_THE_TIME) as editor:
        await editor.peer.request("session/new", {"cwd": str(editor.workspace), "mcpServers": [CLOCK]})
        await editor.prompt(await editor.begin(), "what time is it?")
    assert [] == editor.asked
    assert "there is no tool" in str(editor.of("tool_call_update")[-1])


@pytest.mark.parametrize(
    "servers",
    [
        "clock",
        ["clock"],
        [{"command": "x"}],
        [CLOCK, CLOCK],
        [{"name": "a/b", "command": "x"}],
        [{"name": "a"}],
        [{"name": "a", "command": "x", "env": [{"name": "K"}]}],
        [{"name": "a", "type": "http", "url": "ftp://x", "headers": []}],
    ],
)
async def test_servers_that_cannot_be_read_are_a_fault_of_the_session(opened: Open, servers: Any) -> None:
    """What is no list of servers is told when the session begins, and none is begun."""
    async with opened("scribe: [{text: done}]") as editor:
        with pytest.raises(RpcError) as caught:
            await editor.peer.request("session/new", {"cwd": str(editor.workspace), "mcpServers": servers})
    assert INVALID_PARAMS == caught.value.code


def test_what_an_editor_hands_over_is_taken_as_it_is() -> None:
    """Texts of an editor's servers hold no variables: they are taken as they are."""
    found = handed(
        [
            {
                "name": "a",
                "command": "x",
                "args": ["${HOME}", "\t\u00e9\U0001f600"],
                "env": [{"name": "K", "value": "${NO}"}],
            },
            {"name": "b", "type": "sse", "url": "https://b.example/", "headers": [{"name": "X-K", "value": "1"}]},
        ]
    )
    entry = found["a"].resolved({"HOME": "/home/me"})
    assert (("${HOME}", "\t\u00e9\U0001f600"), {"K": "${NO}"}) == (entry.args, entry.env)
    assert ("sse", {"X-K": "1"}) == (found["b"].transport, found["b"].headers)
