"""Editors that others wrote drive the installed command: the protocol's Python SDK, and acpx from npm."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """\
scribe:
  - text: "I will write it down."
    calls: [{name: write_file, arguments: {path: a.txt, content: "hello"}}]
  - text: "That was it."
"""
AGENT = "---\nname: scribe\ndescription: Writes.\ntools: [write_file]\n---\nWrite.\n"
_ELENCO = Path(sys.executable).with_name("elenco")
COMMAND = [str(_ELENCO)] if _ELENCO.exists() else [sys.executable, "-m", "runtime.cli"]
SDK_EDITOR = Path(__file__).with_name("clients") / "sdk_editor.py"
LEAST_NODE = (22, 13)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("ws/agents", "home", "rt"):
        (tmp_path / name).mkdir(parents=True, mode=0o700)
    (tmp_path / "ws" / "agents" / "scribe.md").write_text(AGENT)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    return tmp_path


def agent_of(place: Path) -> list[str]:
    model = f"scripted/{place / 'script.yaml'}"
    return [*COMMAND, "acp", "scribe", "--model", model, "--state", str(place / "state")]


def environment(place: Path, more_path: str = "") -> dict[str, str]:
    path = f"{more_path}:{os.environ['PATH']}" if more_path else os.environ["PATH"]
    return {"PATH": path, "HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(place / "rt")}


def run(words: Sequence[str], place: Path, more_path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(words), cwd=place / "ws", env=environment(place, more_path), capture_output=True, text=True, timeout=90,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


# --- the Python SDK --------------------------------------------------------------------------------------------------

needs_sdk = pytest.mark.skipif(
    importlib.util.find_spec("acp") is None, reason="agent-client-protocol is not installed: pip install -e '.[test]'"
)


def by_sdk(place: Path, pick: str) -> dict[str, Any]:
    done = run([sys.executable, str(SDK_EDITOR), str(place / "ws"), pick, *agent_of(place)], place)
    assert 0 == done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_sdk
def test_the_sdks_client_prompts_and_permits(place: Path) -> None:
    """The SDK's client reads every update, is asked for permission, and gets the end of the turn."""
    found = by_sdk(place, "allow_once")
    assert (1, "default", "end_turn", ["write_file a.txt"]) == tuple(
        found[k] for k in ("version", "modes", "stop", "asked")
    )
    kinds = [update["sessionUpdate"] for update in found["updates"]]
    assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= set(kinds)
    said = "".join(
        each["content"]["text"] for each in found["updates"] if each["sessionUpdate"] == "agent_message_chunk"
    )
    assert "I will write it down.That was it." == said
    ended = [each for each in found["updates"] if each["sessionUpdate"] == "tool_call_update"]
    contents: list[dict[str, Any]] = [content for each in ended for content in each.get("content", [])]
    assert any(content.get("type") == "diff" and content["newText"] == "hello" for content in contents)
    assert "hello" == (place / "ws" / "a.txt").read_text()


@needs_sdk
def test_the_sdks_client_refuses(place: Path) -> None:
    """What is refused through the SDK's client is not done."""
    found = by_sdk(place, "reject_once")
    assert "end_turn" == found["stop"]
    assert not (place / "ws" / "a.txt").exists()


@needs_sdk
def test_the_sdks_client_cancels(place: Path) -> None:
    """Cancelled through the SDK's client while a human is asked, the turn ends as cancelled."""
    found = by_sdk(place, "never")
    assert "cancelled" == found["stop"]
    assert not (place / "ws" / "a.txt").exists()


# --- acpx ------------------------------------------------------------------------------------------------------------


def acpx() -> tuple[str, str]:
    """The path of acpx and the folder of the Node it runs on; in `.npm` of the checkout, or where ELENCO_NPM says."""
    base = os.environ.get("ELENCO_NPM") or str(Path(__file__).parent.parent.parent / ".npm")
    base = base if Path(base).is_dir() else ""
    program = shutil.which("acpx", path=f"{base}/node_modules/.bin" if base else None)
    node = shutil.which("node", path=f"{base}/node_modules/node/bin" if base else None) or shutil.which("node")
    if program is None or node is None:
        pytest.skip("acpx is not there: .ci/npm installs it")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip().lstrip("v")
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_NODE:
        pytest.skip(f"acpx needs Node 22.13 or later, and this is {version}")
    return program, str(Path(node).parent)


def by_acpx(place: Path, *flags: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    program, node = acpx()
    (place / "script.yaml").write_text(script)
    words = [program, "--agent", " ".join(agent_of(place)), *flags, "--cwd", str(place / "ws"), "exec", "write"]
    return run(words, place, node)


def test_acpx_prompts_and_permits(place: Path) -> None:
    """acpx relays the answer and the calls, and permits what is asked."""
    done = by_acpx(place, "--approve-all")
    assert 0 == done.returncode, done.stderr
    assert "I will write it down." in done.stdout
    assert "That was it." in done.stdout
    assert "hello" == (place / "ws" / "a.txt").read_text()


def test_acpx_refuses(place: Path) -> None:
    """What acpx refuses is not done."""
    done = by_acpx(place, "--deny-all")
    assert not (place / "ws" / "a.txt").exists(), done.stdout


def test_acpx_cancels_and_leaves_no_process(place: Path) -> None:
    """A prompt whose time is up at acpx is cancelled, and no process stays behind."""
    done = by_acpx(place, "--timeout", "3", script="scribe: [{stall: 1000, text: never}]")
    assert 0 != done.returncode
    left = subprocess.run(["pgrep", "-f", str(place / "script.yaml")], capture_output=True, text=True, check=False)
    assert "" == left.stdout
