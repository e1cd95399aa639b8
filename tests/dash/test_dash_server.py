"""The dashboard's server over loopback: its walls, its answers, and its end."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import stat
import time
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest


class Dash(Protocol):
    port: int
    token: str

    def client(self, **headers: str) -> httpx.Client: ...


class Place(Protocol):
    base: Path
    workspace: Path

    def run(self, *words: str) -> Any: ...
    def live(self, *words: str) -> Any: ...
    def start(self, *words: str, env: dict[str, str] | None = None) -> Any: ...
    def script(self, name: str, turns: dict[str, Any]) -> str: ...


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "evil.example"}, 421),
        ({"authorization": ""}, 401),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_the_list_is_for_those_who_bring_the_token_from_no_other_origin(
    dash: Dash, headers: dict[str, str], status: int
) -> None:
    """The list of runs is for those who bring the token from no other origin."""
    with dash.client(**headers) as client:
        answer = client.get("/api/runs")
    assert status == answer.status_code
    assert ("runs" in answer.json()) == (status == 200)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert ("nosniff", "no-referrer") == (answer.headers["x-content-type-options"], answer.headers["referrer-policy"])


def test_the_shell_is_served_without_a_token_and_nothing_beside_it(dash: Dash) -> None:
    """The shell is served without a token, and nothing beside it, however a path is written."""
    with dash.client(authorization="") as client:
        assert "importmap" in client.get("/").text
        assert client.get("/app.js").headers["content-type"].startswith("text/javascript")
        assert client.get("/vendor/VENDOR.md").status_code == 401
    for path in ("/../server.py", "/%2e%2e/server.py", "/vendor/../../server.py", "//etc/passwd", "/..%2fserver.py"):
        with socket.create_connection(("127.0.0.1", dash.port), timeout=5) as connection:
            bearer = f"Authorization: Bearer {dash.token}"
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{dash.port}\r\n{bearer}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            answer = b""
            while data := connection.recv(65536):
                answer += data
        assert b" 404 " in answer.split(b"\r\n")[0], path
        assert b"import" not in answer


def test_only_json_of_our_own_page_is_taken_as_a_command(dash: Dash) -> None:
    """Only JSON of our own page is taken as a command; what is none is told so."""
    path = "/api/runs/k7f2/commands"
    with dash.client() as client:
        assert client.post(path, content="op=cancel").status_code == 415
        assert client.post(path, json={"op": "cancel"}, headers={"origin": "http://127.0.0.1:1"}).status_code == 403
        unknown = client.post(path, json={"op": "cancel"})
        assert (400, "no run 'k7f2'") == (unknown.status_code, unknown.json()["error"].partition(" in ")[0])


def test_a_finished_run_is_given_whole_and_in_order(dash: Dash, place: Place) -> None:
    """A finished run is given whole and in order, from any event on, as the journal has it."""
    assert place.run("run", "How are words split?").returncode == 0
    with dash.client() as client:
        run = client.get("/api/runs").json()["runs"][0]
        assert ("completed", "coordinator") == (run["state"], run["agent"])
        told = [json.loads(line) for line in place.run("tail", run["id"], "--json").stdout.splitlines()]
        assert told == events(client, run["id"])
        assert told[4:] == events(client, run["id"], 5)
        assert run == client.get(f"/api/runs/{run['id']}").json()
        late = client.post(f"/api/runs/{run['id']}/commands", json={"op": "say", "text": "hello"})
        assert (400, True) == (late.status_code, "too late" in late.json()["error"])
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000):
            kind = {"content-type": "application/json"}
            refused = client.post(f"/api/runs/{run['id']}/commands", content=body, headers=kind)
            assert (400, {"error": "a command is one JSON object"}) == (refused.status_code, refused.json()), body[:9]


def test_a_stream_ends_with_what_broke_it_where_a_run_is_deleted_or_damaged(dash: Dash, place: Place) -> None:
    """A stream ends with what broke it, told once: the run was deleted while it was open, its journal is damaged."""
    for breaking, why in (("delete", "has been deleted"), ("damage", "not a database")):
        assert place.run("run", "How are words split?").returncode == 0
        with dash.client() as client:
            run = client.get("/api/runs").json()["runs"][0]["id"]
            journal = place.base / "state" / "runs" / run / "journal.db"
            if breaking == "damage":
                journal.write_bytes(b"no journal " * 100)
            with client.stream("GET", f"/api/runs/{run}/events") as answer:
                names: list[str] = []
                for name, lines in blocks(answer):
                    names.append(name)
                    if name == "reached":
                        assert place.run("delete", run).returncode == 0
                    if name == "broken":
                        assert why in lines[0]["error"]
            assert names.count("broken") == 1
        if breaking == "damage":
            shutil.rmtree(journal.parent)


def test_a_live_run_is_told_as_it_happens_and_takes_commands(dash: Dash, place: Place) -> None:
    """A live run is told as it happens, deltas included, and takes commands."""
    model = place.script("slow.json", {"coordinator": [{"stall": 60, "text": "never"}]})
    with place.live("wait", "--model", model) as (run, process), dash.client() as client:
        with client.stream("GET", f"/api/runs/{run}/events") as answer:
            found: list[dict[str, Any]] = []
            for name, lines in blocks(answer):
                if name == "reached":
                    assert lines[0]["owned"]
                    assert client.post(f"/api/runs/{run}/commands", json={"op": "cancel"}).status_code == 200
                else:
                    found += lines
                if found and found[-1]["type"] == "run.finished":
                    break
        assert process.wait(60) == 130
    kept = [event["seq"] for event in found if "seq" in event]
    assert list(range(1, kept[-1] + 1)) == kept
    assert "cancel.requested" in {event["type"] for event in found}


def test_the_server_ends_at_once_though_a_stream_is_open_and_another_stalls(place: Place) -> None:
    """The server ends at once, though a stream is open and another client does not read."""
    assert place.run("run", "How are words split?").returncode == 0
    run = place.run("runs").stdout.split("\n")[1].split()[0]
    with place.start("dash", "--port", "0") as process:
        port, _, token = process.stdout.readline().strip().removeprefix("http://127.0.0.1:").partition("/#t=")
        head = f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", int(port))) as stalled, socket.socket() as reading:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            stalled.sendall(head.encode())
            reading.connect(("127.0.0.1", int(port)))
            reading.sendall(head.encode())
            assert b"200" in reading.recv(100)
            process.send_signal(signal.SIGINT)
            process.wait(30)  # it would wait for the stream without end
        assert (0, "Ctrl-C ends it\n") == (process.returncode, process.stderr.read()[-15:])


def test_a_browser_is_sent_there_by_a_private_page_that_is_gone_afterwards(place: Place) -> None:
    """--open sends the browser to the dashboard by a private page, so that no command line holds the token."""
    browser = place.base / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {place.base}/opened\n')
    browser.chmod(0o755)
    with place.start("dash", "--open", env={"BROWSER": str(browser)}) as process:
        link = process.stdout.readline().strip()
        process.stderr.readline()
        while not (opened := place.base / "opened").exists() or not opened.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        address = opened.read_text().strip()
        page = Path(address.removeprefix("file://"))
        assert f'content="0; url={link}"' in page.read_text()
        assert (0o600, True) == (stat.S_IMODE(page.stat().st_mode), link.partition("#t=")[2] not in address)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(60)
    assert not page.exists()


def test_a_run_is_taken_away_as_events_or_as_a_page_and_long_results_whole(dash: Dash, place: Place) -> None:
    """A run can be taken away as events or as a page; the whole of a result that was shortened is there to read."""
    long = "".join(f"{number} is the number of this line, which is rather long\n" for number in range(3000))
    (place.workspace / "long.txt").write_text(long)
    (place.workspace / "agents").mkdir()
    (place.workspace / "agents" / "reader.md").write_text(
        "---\nname: reader\ndescription: r\ntools: [shell]\n---\nRead.\n"
    )
    read = {"calls": [{"name": "shell", "arguments": {"command": "cat long.txt"}}]}
    model = place.script("long.json", {"reader": [read, {"text": "Read."}]})
    done = place.run("run", "reader", "read it", "--model", model, "--yes", "--sandbox", "unsandboxed")
    assert 0 == done.returncode, done.stderr
    with dash.client() as client:
        run = client.get("/api/runs").json()["runs"][0]["id"]
        path = f"/api/runs/{run}"
        assert place.run("show", run, "--format", "jsonl").stdout == client.get(f"{path}/export").text
        assert place.run("show", run, "--format", "md").stdout == client.get(f"{path}/export?format=md").text
        assert client.get(f"{path}/export?format=exe").status_code == 400
        full = next(event["full"] for event in events(client, run) if event.get("full"))
        answer = client.get(f"{path}/blobs/{full}")
        assert ("text/plain; charset=utf-8", True) == (
            answer.headers["content-type"],
            "2998 is the number" in answer.text,
        )
        for other in ("0" * 64, "journal.db", "..%2fjournal.db"):
            assert client.get(f"{path}/blobs/{other}").status_code in (404, 409)


def test_a_port_that_is_taken_or_none_is_one_line(place: Place, dash: Dash) -> None:
    """A port that is taken, or is none, is one clear line."""
    taken = place.run("dash", "--port", str(dash.port))
    assert (1, f"error: cannot listen at port {dash.port}: Address already in use; choose another: --port 0\n") == (
        taken.returncode,
        taken.stderr,
    )
    none = place.run("dash", "--port", "70000")
    assert (2, "error: --port is a number from 0, for any that is free, to 65535\n") == (none.returncode, none.stderr)


def blocks(answer: httpx.Response) -> Any:
    """The server-sent events of an answer: name and decoded data lines."""
    name, lines = "message", list[Any]()
    for text in answer.iter_lines():
        if text.startswith("event: "):
            name = text[7:]
        elif text.startswith("data: "):
            lines.append(json.loads(text[6:]))
        elif not text and lines:
            yield name, lines
            name, lines = "message", []


def events(client: httpx.Client, run: str, start: int = 1) -> list[dict[str, Any]]:
    """Everything a run has had so far."""
    found: list[dict[str, Any]] = []
    give_up = time.monotonic() + 60
    with client.stream("GET", f"/api/runs/{run}/events?from={start}") as answer:
        for name, lines in blocks(answer):
            assert time.monotonic() < give_up
            if name == "reached":
                assert {"seq": found[-1]["seq"], "owned": False} == lines[0]
                return found
            found += lines
    raise AssertionError("the stream ended")
