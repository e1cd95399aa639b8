"""What others wrote: servers from npm, and the public conformance runner with Elenco as the client it spawns.

They are looked for in `.npm` of the checkout, where `.ci/npm` puts them, or in the folder ELENCO_NODE names.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trio

from runtime.events import McpLost
from runtime.mcps.entry import Entry
from runtime.mcps.sign_in import Kept, forget

MODULES = Path(os.environ.get("ELENCO_NODE") or Path(__file__).parent.parent.parent / ".npm") / "node_modules"
ELENCO = Path(sys.executable).with_name("elenco")
OURS = MODULES / "node" / "bin" / "node"
NODE = str(OURS) if OURS.exists() else shutil.which("node")
FULL = bool(os.environ.get("ELENCO_FULL"))
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def script(package: str) -> str:
    """The program of a package. Skips where it is not there."""
    folder = MODULES / "@modelcontextprotocol" / package
    if NODE is None or not folder.exists():
        pytest.skip(f"@modelcontextprotocol/{package} or Node is missing: .ci/npm installs them")
    binary: Any = json.loads((folder / "package.json").read_text())["bin"]
    return str(folder / (binary if isinstance(binary, str) else next(iter(binary.values()))))


async def test_the_server_of_everything_is_listed_and_called(bench: Any, until: Any) -> None:
    """The server that shows everything is called, with progress and images; its late tools arrive."""
    words = (script("server-everything"), "stdio")
    async with bench(Entry("all", command=str(NODE), args=words)) as it:
        assert "hello" in (await it.call("all_echo", message="hello")).content
        assert 1 == len((await it.call("all_get-tiny-image")).images)
        await it.call("all_trigger-long-running-operation", duration=0.4, steps=4)
        assert "4/4" in it.shown[-1]
        await until(lambda: len(it.fleet.tools_of(["all"])) >= 14)


async def test_the_file_server_reads_and_stays_in_its_folder(bench: Any, tmp_path: Path) -> None:
    """The file server reads a file of its folder, and refuses another."""
    (tmp_path / "a.txt").write_text("content")
    words = (script("server-filesystem"), str(tmp_path))
    async with bench(Entry("files", command=str(NODE), args=words)) as it:
        assert "content" in (await it.call("files_read_text_file", path=str(tmp_path / "a.txt"))).content
        assert (await it.call("files_read_text_file", path="/etc/hostname")).is_error


async def test_the_memory_server_keeps_what_it_is_told(bench: Any, tmp_path: Path) -> None:
    """The memory server keeps what it is told, in a file its own environment names."""
    kept = tmp_path / "memory.jsonl"
    entry = Entry("mem", command=str(NODE), args=(script("server-memory"),), env={"MEMORY_FILE_PATH": str(kept)})
    async with bench(entry) as it:
        one = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        assert "ok" == (await it.call("mem_create_entities", entities=[one])).kind
        assert "writes programs" in (await it.call("mem_search_nodes", query="Ada")).content
    assert "Ada" in kept.read_text()


OLDER = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
]
NEWER = [
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "sep-2322-client-request-state",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
]
SHORT = {"tools_call", "elicitation-sep1034-client-defaults", "auth/scope-step-up"}
SHORT_OF_THE_NEWER = {"tools_call", "request-metadata"}
OF_THE_OLDER = {"initialize", "elicitation-sep1034-client-defaults", "sse-retry"}
CASES = [
    *(("2025-11-25", name) for name in OLDER if FULL or name in SHORT),
    *(
        ("2026-07-28", name)
        for name in [*OLDER, *NEWER]
        if (FULL and name not in OF_THE_OLDER) or name in SHORT_OF_THE_NEWER
    ),
]


@cache
def scenarios_of(runner: str) -> list[str]:
    words = [str(NODE), runner, "list"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()


@pytest.mark.parametrize(("version", "scenario"), CASES)
def test_the_conformance_runner_is_content(tmp_path: Path, version: str, scenario: str) -> None:
    """A scenario of the public conformance runner passes with Elenco as the client it spawns."""
    runner = script("conformance")
    line = next((line for line in scenarios_of(runner) if line.strip().startswith(f"- {scenario} ")), "")
    if version not in line:
        pytest.skip(f"this release of the runner has no {scenario} for {version}")
    is_content(runner, f"{ELENCO} mcp conform", scenario, version, tmp_path)


def test_a_person_signs_in_and_the_tokens_are_used(tmp_path: Path, cases: Path) -> None:
    """A person signs in by the address that `elenco mcp login` prints, and later commands use the tokens it keeps."""
    client = f"{sys.executable} {cases / 'sign_in_client.py'} {ELENCO} {tmp_path}"
    is_content(script("conformance"), client, "auth/metadata-default", "2025-11-25", tmp_path / "out")


def is_content(runner: str, client: str, scenario: str, version: str, out: Path) -> None:
    words = [str(NODE), runner, "client", "--command", client, "--scenario", scenario, "--timeout", "80000"]
    found = subprocess.run(
        [*words, "--spec-version", version, "-o", str(out)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    checks = [check for file in out.rglob("checks.json") for check in json.loads(file.read_text())]
    assert 0 == found.returncode, found.stdout[-2000:] + found.stderr[-2000:]
    assert "SUCCESS" in {check["status"] for check in checks}
    assert set() == {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")}


class _Closed(BaseHTTPRequestHandler):
    """A server that lets nobody in."""

    def do_POST(self) -> None:
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        del format, args


async def test_a_run_does_not_sign_in_but_says_how_to(bench: Any) -> None:
    """A run never opens a browser: it says how to sign in to a server that wants it, and does not ask again."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Closed)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    headers = {"Authorization": "Bearer old"}
    try:
        async with bench(
            Entry("a", "http", url=url), Entry("b", "http", url=url, headers=headers, path="x", line=3)
        ) as it:
            assert {
                ("a", "it wants a sign-in: elenco mcp login a"),
                ("b", "it refused the Authorization header of x:3"),
            } == {(lost.server, lost.why) for lost in it.of(McpLost)}
            assert "cannot be used" in it.fleet.links["a"].outage()
    finally:
        await trio.to_thread.run_sync(server.shutdown)
        server.server_close()


async def test_tokens_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    """Tokens are kept in the state folder for their owner alone, for this very address, until they are forgotten."""
    from mcp.shared.auth import OAuthToken

    entry = Entry("a", "http", url="https://h/mcp")
    await Kept.of(entry, tmp_path).set_tokens(OAuthToken(access_token="t", token_type="Bearer"))
    (file,) = (tmp_path / "mcp").iterdir()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    kept = await Kept.of(entry, tmp_path).get_tokens()
    assert kept is not None
    assert "t" == kept.access_token
    assert await Kept.of(Entry("a", "http", url="https://other/mcp"), tmp_path).get_tokens() is None
    assert (True, False) == (forget(entry, tmp_path), forget(entry, tmp_path))
