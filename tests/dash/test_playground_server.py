"""The playground's server: faults as one types, a run of the draft in a process of its own, its key, and its end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Protocol

import httpx
import pytest

from runtime.journal.folder import State

KEY = "sk-play-0123456789abcdef"
AGENT = """\
---
name: scout
description: Looks around.
tools: [read_file, write_file]
permissions: {allow: [write_file]}
---
You look around in {workspace}.
"""


class Dash(Protocol):
    port: int
    process: Any

    def client(self, **headers: str) -> httpx.Client: ...


class Place(Protocol):
    @property
    def state(self) -> State: ...
    @property
    def workspace(self) -> Path: ...
    def run(self, *words: str) -> Any: ...
    def start(self, *words: str) -> Any: ...
    def ids(self) -> list[str]: ...
    def script(self, name: str, turns: dict[str, Any]) -> str: ...


@pytest.fixture
def client(dash: Dash) -> Iterator[httpx.Client]:
    with dash.client() as found:
        yield found


@pytest.fixture
def play(client: httpx.Client, place: Place) -> Callable[..., dict[str, Any]]:
    """Ask one of the playground's routes about the workspace."""

    def ask(what: str, **body: Any) -> dict[str, Any]:
        answer = client.post(f"/api/playground/{what}", json={"workspace": str(place.workspace), **body})
        found: dict[str, Any] = answer.json()
        return found

    return ask


@pytest.fixture
def ended(client: httpx.Client) -> Callable[..., dict[str, Any]]:
    """Wait until a run is in one of some states; gives its row."""

    def wait(run: str, *states: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(600):
            found = client.get(f"/api/runs/{run}").json()
            if found["state"] in (states or ("completed", "stopped", "failed", "cancelled")):
                return found
            time.sleep(0.05)
        raise AssertionError(found)

    return wait


def events(place: Place, run: str) -> list[dict[str, Any]]:
    said = place.run("tail", run, "--json").stdout
    return [json.loads(line) for line in said.splitlines()]


def test_faults_are_those_of_the_check_command(play: Callable[..., dict[str, Any]], place: Place) -> None:
    """What is wrong with a draft is told as `elenco check` tells it, with line and column, and what does not count."""
    text = AGENT.replace("read_file, ", "read_fil, ").replace("description", "descripton")
    (place.workspace / "faulty.md").write_text(text)
    said = place.run("check", "faulty.md").stdout
    found = play("check", text=text, code="from runtime.tools import tool\n@tool\ndef f(:\n")
    assert found["faults"]
    for fault in found["faults"]:
        assert f"faulty.md:{fault['line']}:{fault['column']}: {fault['text']}" in said
    assert [3] == [fault["line"] for fault in found["code_faults"]]
    (place.workspace / "faulty.md").unlink()
    fine = play("check", text=AGENT, code="")
    assert ([], ["allow rule write_file"]) == (fine["faults"], fine["left_out"])
    assert ("scout", ["read_file", "write_file"]) == (fine["agent"]["name"], fine["agent"]["tools"])


def test_what_there_is_to_choose_from(play: Callable[..., dict[str, Any]]) -> None:
    """The page gets agents with their files, tools, models and whether a key is set, and no key."""
    found = play("open")
    assert {"coordinator", "researcher"} <= {agent["name"] for agent in found["agents"]}
    assert any(agent["text"].startswith("---\n") for agent in found["agents"])
    assert "read_file" in {tool["name"] for tool in found["tools"]}
    assert "offline/extract" in found["models"]
    assert {"name": "openai", "variable": "OPENAI_API_KEY", "ready": False} in found["providers"]


def test_a_draft_runs_and_nothing_of_it_reaches_the_workspace(
    play: Callable[..., dict[str, Any]], ended: Callable[..., dict[str, Any]], place: Place, client: httpx.Client
) -> None:
    """A draft runs as an ordinary run on record; its rules do not exceed the saved file's; no file of it is left."""
    turns = [{"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "b"}}]}, {"text": "Done."}]
    model = place.script("writes.yaml", {"scout": turns})
    before = sorted(path.name for path in place.workspace.rglob("*"))
    run = play("run", text=AGENT, task="Look", model=model)["run"]
    waiting = ended(run, "waiting")
    command = {"op": "deny", "id": waiting["waits_for"][0], "why": "not here"}
    assert client.post(f"/api/runs/{run}/commands", json=command).status_code == 200
    assert "completed" == ended(run)["state"]
    assert before == sorted(path.name for path in place.workspace.rglob("*"))
    kept = events(place, run)
    (decided,) = [event for event in kept if event["type"] == "permission.decided"]
    assert "ask" == decided["verdict"]
    requests = [event["seq"] for event in kept if event["type"] == "model.requested"]
    asked = client.get(f"/api/playground/runs/{run}/requests/{requests[1]}").json()
    assert f"You look around in {place.workspace}." in "".join(asked["system"])
    assert ["user", "assistant", "tool"] == [message["role"] for message in asked["messages"]]
    assert {"read_file", "write_file"} <= {tool["name"] for tool in asked["tools"]}
    assert client.get(f"/api/playground/runs/{run}/requests/1").status_code == 400
    assert run in place.run("runs").stdout


def test_own_code_runs_in_walls_after_a_yes(
    play: Callable[..., dict[str, Any]], ended: Callable[..., dict[str, Any]], place: Place, client: httpx.Client
) -> None:
    """A tool of one's own is described, asks before its call, and its result comes out of the walls."""
    code = play("open")["tool_starter"]
    shown = play("tools", code=code)
    if shown.get("walls"):
        pytest.skip(f"NO WALLS HERE: {shown['error']}")
    assert ["count_words"] == [tool["name"] for tool in shown["tools"]]
    text = play("edit", text=AGENT, tools=["read_file", "count_words"])["text"]
    assert [] == play("check", text=text, code=code)["faults"]
    turns = [{"calls": [{"name": "count_words", "arguments": {"text": "one two"}}]}, {"text": "Two."}]
    run = play("run", text=text, code=code, task="Count", model=place.script("counts.yaml", {"scout": turns}))["run"]
    waiting = ended(run, "waiting")
    command = {"op": "approve", "id": waiting["waits_for"][0]}
    assert client.post(f"/api/runs/{run}/commands", json=command).status_code == 200
    assert "completed" == ended(run)["state"]
    (finished,) = [event for event in events(place, run) if event["type"] == "tool.finished"]
    assert "2 words" == finished["result"]
    again = place.run("resume", run)
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"text": AGENT.replace("tools", "toolz")}, "unknown key 'toolz'"),
        ({"text": AGENT.replace("read_file,", "raed_file,")}, "unknown tool 'raed_file'"),
        ({"task": " "}, "give the agent a task"),
        ({"model": "antropic/x"}, "unknown provider 'antropic'"),
        ({"model": "offline/extract", "key": KEY}, "offline/extract needs no key"),
        ({"model": "openai/gpt-6.1-sol"}, "no key for openai"),
        ({"model": "openai/gpt-6.1-sol", "key": "two words"}, "the key is none"),
        ({"wire": "telepathy"}, "the wire is one of"),
        ({"workspace": "not/here"}, "is no folder here"),
        ({"code": "def f(:"}, "invalid syntax"),
        ({"text": 7}, "text is a text"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(
    play: Callable[..., dict[str, Any]], changes: dict[str, Any], told: str, place: Place
) -> None:
    """A draft that cannot run begins nothing: one clear reason, no key in it, and no folder left."""
    runs = sorted(place.state.runs.iterdir())
    found = play("run", **{"text": AGENT, "task": "Look", "model": "offline/extract", **changes})
    assert told in found["error"]
    assert KEY not in json.dumps(found)
    assert runs == sorted(place.state.runs.iterdir())


ANSWER = {
    "id": "r1",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": f"your key is {KEY}"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 3},
}


class _Model(BaseHTTPRequestHandler):
    """Answers every request with the key it was sent, once it may."""

    seen: ClassVar[list[str]]
    may_answer: threading.Event

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.append(self.headers.get("authorization", ""))
        self.may_answer.wait(20)
        body = f"data: {json.dumps(ANSWER)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def model() -> Iterator[tuple[str, type[_Model]]]:
    class Handler(_Model):
        seen: ClassVar[list[str]] = []
        may_answer = threading.Event()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", Handler
    Handler.may_answer.set()
    server.shutdown()
    server.server_close()


def test_a_key_is_in_the_runs_process_and_nowhere_else(
    play: Callable[..., dict[str, Any]],
    ended: Callable[..., dict[str, Any]],
    place: Place,
    client: httpx.Client,
    model: tuple[str, type[_Model]],
) -> None:
    """A key reaches the model's server; it stands in no process's words, in no file, in no answer, in no stream."""
    url, server = model
    order = {"text": AGENT, "task": f"Tell. {KEY}", "model": "lab/fake", "base_url": url, "key": KEY}
    run = play("run", **order)["run"]
    for _ in range(200):
        if server.seen:
            break
        time.sleep(0.05)
    assert [] == [words for words in _words_of_all() if KEY in words]
    server.may_answer.set()
    assert "completed" == ended(run)["state"]
    assert [f"Bearer {KEY}"] == server.seen
    for path in (*place.state.path.rglob("*"), *place.workspace.rglob("*")):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    (exchange,) = client.get(f"/api/playground/runs/{run}/exchanges").json()["exchanges"]
    assert ("openai-chat", 200, "fake") == (exchange["wire"], exchange["status"], exchange["request"]["model"])
    assert KEY not in client.get(f"/api/playground/runs/{run}/exchanges").text


def _words_of_all() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue


def test_a_run_of_the_playground_ends_with_its_dashboard(place: Place, model: tuple[str, type[_Model]]) -> None:
    """However a dashboard goes, the runs of its playground are cancelled, and their record says so."""
    process = place.start("dash")
    link = process.stdout.readline().strip()
    address, _, token = link.partition("/#t=")
    order = {"workspace": str(place.workspace), "text": AGENT, "task": "Look", "model": "lab/fake", "key": KEY}
    headers = {"authorization": f"Bearer {token}"}
    begun = httpx.post(
        f"{address}/api/playground/run", json={**order, "base_url": model[0]}, headers=headers, timeout=30
    )
    process.kill()
    process.communicate()
    kept: list[dict[str, Any]] = []
    for _ in range(60):
        if (kept := events(place, begun.json()["run"]))[-1]["type"] == "run.finished":
            break
        time.sleep(0.1)
    assert "cancelled" == kept[-1]["report"]["status"]


def test_a_draft_is_saved_once_its_diff_was_seen(play: Callable[..., dict[str, Any]], place: Place) -> None:
    """Save writes `agents/NAME.md` after the diff, and not over a file that has changed."""
    shown = play("diff", text=AGENT)
    assert ("agents/scout.md", True) == (shown["path"], "+name: scout" in shown["diff"])
    assert "agents/scout.md" == play("save", text=AGENT, seen=shown["seen"])["path"]
    assert AGENT == (place.workspace / "agents" / "scout.md").read_text()
    assert "changed meanwhile" in play("save", text=AGENT, seen=shown["seen"])["error"]
    assert "unknown key" in play("save", text=AGENT.replace("tools", "toolz"), seen="none")["faults"][0]["text"]
    (place.workspace / "agents" / "scout.md").unlink()
    (place.workspace / "agents").rmdir()


def test_two_runs_are_compared_and_spending_is_told(client: httpx.Client, place: Place) -> None:
    """Two runs on record stand side by side, and all spending is told by day, agent and model."""
    model = place.script("says.yaml", {"coordinator": [{"text": "Yes.", "usage": {"input": 40, "output": 2}}]})
    before = set(place.ids())
    for _ in range(2):
        assert 0 == place.run("run", "coordinator", "Say", "--model", model).returncode
    one, other = set(place.ids()) - before
    found = client.get(f"/api/compare/{one}/{other}").json()
    assert (True, ["Yes.", "Yes."]) == (found["answers"]["same"], [run["answer"] for run in found["runs"]])
    spent = client.get("/api/usage?offset=120").json()
    (row,) = [row for row in spent["rows"] if row["agent"] == "coordinator"]
    assert (model, 2, 80, 4) == (row["model"], row["runs"], row["input"], row["output"])
    assert client.get("/api/usage?offset=x").status_code == 400
    assert client.get("/api/compare/nope/nope").status_code == 400
