"""An editor of our own beside the agent: it asks over a pair of streams in memory, and notes what it is told."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import trio
import trio.testing

from runtime.editor.agent import EditorAgent
from runtime.editor.rpc import Peer, RpcError
from runtime.journal.folder import State
from runtime.known import ModelFlags
from runtime.messages import JsonObject
from runtime.outline import RunOptions

AGENT = """\
---
name: scribe
description: Writes.
tools: [read_file, write_file, todo_write, ask_user, shell]
---
Write.
"""


Stream: TypeAlias = "trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]"


@attrs.define(eq=False)
class Editor:
    """A client: `choose` answers permission requests with an option's kind, None with cancelled."""

    workspace: Path
    stream: Stream
    peer: Peer = attrs.field(init=False)
    told: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])
    asked: list[JsonObject] = attrs.Factory(list[JsonObject])
    choose: Callable[[JsonObject], str | None] = lambda params: "allow_once"
    news: trio.Event = attrs.Factory(trio.Event)
    offers: dict[str, Any] = attrs.Factory(dict[str, Any])
    buffers: dict[str, str] = attrs.Factory(dict[str, str])
    terminals: list[JsonObject] = attrs.Factory(list[JsonObject])
    """What was asked of terminals, each with its method."""
    ended: bool = True
    """Whether a command in a terminal ends by itself."""

    def hear(self, params: JsonObject) -> None:
        self.told.append(dict(params["update"]))
        self.news.set()
        self.news = trio.Event()

    async def permission(self, params: JsonObject) -> JsonObject:
        self.asked.append(params)
        self.news.set()
        self.news = trio.Event()
        kind = self.choose(params)
        if kind == "never":
            await trio.sleep_forever()
        option = next((each for each in params["options"] if each["kind"] == kind), None)
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    async def read(self, params: JsonObject) -> JsonObject:
        if params["path"] not in self.buffers:
            raise RpcError(-32002, "no such buffer")
        return {"content": self.buffers[params["path"]]}

    async def write(self, params: JsonObject) -> None:
        self.buffers[params["path"]] = params["content"]

    async def terminal(self, method: str, params: JsonObject) -> JsonObject:
        """A terminal in which each command prints `out` and exits with 3."""
        self.terminals.append({"method": method, **params})
        self.news.set()
        self.news = trio.Event()
        match method:
            case "create" if "no terminal" in params["args"][1]:
                raise RpcError(-32603, "none to be had")
            case "create":
                return {"terminalId": "t1"}
            case "wait_for_exit" if not self.ended:
                await trio.sleep_forever()
            case "output":
                return {"output": "out\n", "truncated": False, "exitStatus": {"exitCode": 3, "signal": None}}
            case _:
                pass
        return {}

    async def begin(self) -> str:
        await self.peer.request("initialize", {"protocolVersion": 1, "clientCapabilities": self.offers})
        session = await self.peer.request("session/new", {"cwd": str(self.workspace), "mcpServers": []})
        return str(session["sessionId"])

    async def prompt(self, session: str, words: str) -> Any:
        return await self.peer.request(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        )

    async def until(self, seen: Callable[[Editor], object]) -> None:
        """Wait until what was told satisfies `seen`."""
        with trio.fail_after(20):
            while not seen(self):
                await self.news.wait()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.told if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of(kind))


Open: TypeAlias = Callable[..., AbstractAsyncContextManager[Editor]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """An editor with its agent at work while the block lasts; the agent's model is a script."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "rt"))
    for name in ("ws/agents", "home", "rt", "state"):
        (tmp_path / name).mkdir(parents=True, mode=0o700)
    (tmp_path / "ws" / "agents" / "scribe.md").write_text(AGENT)

    @asynccontextmanager
    async def begin(script: str, **options: Any) -> AsyncGenerator[Editor]:
        (tmp_path / "script.yaml").write_text(textwrap.dedent(script))
        ours, theirs = trio.testing.memory_stream_pair()
        settings = RunOptions(
            agent="scribe", task="-", model=ModelFlags(f"scripted/{tmp_path / 'script.yaml'}"), **options
        )
        agent = EditorAgent(theirs, theirs, settings, State(tmp_path / "state"))
        editor = Editor(tmp_path / "ws", ours)
        editor.peer = Peer(
            ours,
            ours,
            {
                "session/request_permission": editor.permission,
                "fs/read_text_file": editor.read,
                "fs/write_text_file": editor.write,
                **{
                    f"terminal/{method}": partial(editor.terminal, method)
                    for method in ("create", "wait_for_exit", "output", "kill", "release")
                },
            },
            {"session/update": editor.hear},
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.serve)
            nursery.start_soon(editor.peer.serve)
            yield editor
            await ours.aclose()

    return begin
