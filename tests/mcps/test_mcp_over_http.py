"""Servers over streamable HTTP, over its older sister, and over TCP."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.events import McpConnected, McpLost
from runtime.mcps.entry import Entry
from runtime.messages import ToolResult

Decent = Callable[[str], str]
# httpx2 and the SDK leave half-read generators to the collector, whose closing of them Trio has to tell.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KINDS: list[tuple[Any, Any]] = [("http", "auto"), ("http", "legacy"), ("sse", "legacy")]


async def adds(it: Any) -> bool:
    result: ToolResult = await it.call("dec_add", a=1, b=2)
    return "3" == result.content


@pytest.mark.parametrize(("transport", "mode"), KINDS)
async def test_calls_work_in_every_dialect(bench: Any, decent: Decent, until: Any, transport: Any, mode: Any) -> None:
    """Calls, progress, deadlines, refusals and results of several megabytes work in every dialect."""
    url = decent("sse" if transport == "sse" else "mcp")
    async with bench(Entry("dec", transport, url=url, mode=mode, timeout=10)) as it:
        assert "3" == (await it.call("dec_add", a=1, b=2)).content
        await it.call("dec_count", to=3)
        assert "counting (3/3)\n" == it.shown[-1]
        assert "note://one   note, One note., text/plain" == (await it.call("dec_read_resource")).content
        assert "the note" in (await it.call("dec_read_resource", uri="note://one")).content
        assert (await it.call("dec_read_resource", uri="note://none")).is_error
        big = await it.call("dec_big", size=3_000_000)
        assert ("ok", True) == (big.kind, "left out" in big.content)
        assert "16777216" in (await it.call("dec_big", size=20_000_000)).content
        await until(lambda: adds(it))  # the oldest of the three has lost its connection by that
        with trio.move_on_after(0.2):
            await it.call("dec_wait", seconds=30)
        assert "7" == (await it.call("dec_add", a=3, b=4)).content


async def test_a_server_that_was_killed_is_reached_again(bench: Any, mortal: Any, until: Any) -> None:
    """The calls during which a server is killed fail, in both dialects; once it is back, calls work."""
    url, processes, start_again = mortal
    modes: tuple[Any, ...] = ("auto", "legacy")
    async with bench(*(Entry(mode, "http", url=url, mode=mode, timeout=5) for mode in modes)) as it:
        failed: list[bool] = []

        async def wait(mode: str) -> None:
            failed.append((await it.call(f"{mode}_wait", seconds=30)).is_error)

        async def works(mode: str) -> bool:
            result: ToolResult = await it.call(f"{mode}_add", a=1, b=2)
            return "3" == result.content

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for mode in modes:
                    nursery.start_soon(wait, mode)
                await trio.sleep(0.3)
                processes[0].kill()
        assert [True, True] == failed
        await trio.to_thread.run_sync(start_again)
        for mode in modes:
            await until(partial(works, mode))


async def test_headers_are_sent_and_a_missing_one_is_told(bench: Any, decent: Decent) -> None:
    """The headers of the settings are sent; without them the server's refusal is told, and no secret is."""
    url = decent("closed/mcp")
    right = Entry("dec", "http", url=url, headers={"Authorization": "Bearer s3cret"})
    wrong = Entry("bad", "http", url=url, headers={"Authorization": "Bearer other"})
    async with bench(right, wrong) as it:
        assert "3" == (await it.call("dec_add", a=1, b=2)).content
        assert ["dec"] == [each.server for each in it.of(McpConnected)]
        assert ["bad"] == [each.server for each in it.of(McpLost)]
        assert "other" not in it.of(McpLost)[0].why


@pytest.mark.parametrize("transport", ["http", "sse", "tcp"])
async def test_nobody_listening_is_told(bench: Any, free_port: int, transport: Any) -> None:
    """An address where nobody listens is told, and tried again."""
    url = f"tcp://127.0.0.1:{free_port}" if transport == "tcp" else f"http://127.0.0.1:{free_port}/mcp"
    async with bench(Entry("none", transport, url=url)) as it:
        assert 1 == len(it.of(McpLost))
        assert re.search(r"is tried again (in [1-9]\d* s|now)$", it.fleet.links["none"].refusal())


async def test_a_server_over_tcp_is_called_like_one_over_pipes(bench: Any, cases: Any) -> None:
    """A server over TCP is called like one over pipes."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    served: list[subprocess.Popen[bytes]] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    words = [sys.executable, str(cases / "wayward_server.py")]
                    served.append(subprocess.Popen(words, stdin=connection.fileno(), stdout=connection.fileno()))

    threading.Thread(target=serve, daemon=True).start()
    async with bench(Entry("way", "tcp", url=f"tcp://127.0.0.1:{port}", mode="legacy")) as it:
        assert '{"a": 1}' == (await it.call("way_echo", a=1)).content
        assert "was lost during the call: it closed the connection" in (await it.call("way_die")).content
    listener.close()
    for process in served:
        process.wait()


def test_a_prompt_of_a_server_is_a_line_of_a_chat(decent: Decent, tmp_path: Any) -> None:
    """A line /SERVER:PROMPT name=value in a chat is what the server makes of it; a wrong one is told."""
    url = decent("mcp")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.md").write_text("---\nname: a\ndescription: b\nmcps: [dec]\n---\nDo it.\n")
    (tmp_path / "elenco.yaml").write_text(f"mcpServers: {{dec: {{url: '{url}'}}}}\n")
    (tmp_path / "s.yaml").write_text("a: [{text: hello}, {text: hello}, {text: hello}]\n")
    elenco = str(Path(sys.executable).with_name("elenco"))
    around = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ELENCO_STATE": str(tmp_path / "state")}

    def call(*words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [elenco, *words],
            cwd=tmp_path,
            env=around,
            input=lines,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    call("trust", "--yes")
    lines = "/dec:greet name=Ada\n/dec:none\n/nobody:x\n/dec:greet Ada\n"
    found = call("chat", "a", "--plain", "--model", "scripted/s.yaml", lines=lines)
    assert "hello" in found.stdout
    assert "the agent has no MCP server 'nobody'" in found.stderr
    assert "'Ada': write /SERVER:PROMPT name=value" in found.stderr
    assert 1 == len(runs := call("runs", "--json").stdout.splitlines())
    assert "Say hello to Ada." in runs[0]
