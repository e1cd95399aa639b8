"""The installed command in a bare environment: an empty home, nothing but PATH, a small workspace, its own state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from runtime.journal.folder import RunFolder, State
from runtime.journal.read import RunReader
from runtime.watch.lines import line

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., subprocess.Popen[str]]
Answer: TypeAlias = tuple[int, Mapping[str, str], Sequence[bytes], bool]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]
Until: TypeAlias = Callable[..., str]
Serve: TypeAlias = Callable[..., tuple[str, list[Any]]]

_SCRIPT = Path(sys.executable).with_name("elenco")
COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "runtime.cli"]

FILES = {
    "README.md": "# Splitter\n\nWords are separated by blanks.\nEvery retry waits twice as long as the one before.\n",
    "parse.py": "def words(s: str) -> list[str]:\n    return s.split()\n",
    "docs/limits.md": "# Limits\n\nA run has at most ninety steps.\n",
}


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home.parent / "rt")}


def prepared(base: Path) -> Path:
    for name, content in FILES.items():
        file = base / "ws" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for name in ("home", "rt", "state"):
        (base / name).mkdir(mode=0o700)
    return base


def runner(base: Path) -> Run:
    def run(
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: str | None = None,
        timeout: float = 60,
        before: Sequence[str] = (),
        state: bool = True,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        place = {"ELENCO_STATE": str(base / "state")} if state and words and words[0] in STATEFUL else {}
        if input is None:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [*before, *COMMAND, *words],
            env={**environment(base / "home"), **place, **(env or {})},
            cwd=cwd or base / "ws",
            input=input,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout,
            check=False,
            **options,
        )

    return run


STATEFUL = frozenset(
    {
        "run", "resume", "runs", "show", "tail", "approve", "deny", "say", "hold", "continue", "cancel", "rename",
        "limits", "delete", "doctor", "answer", "compact",
    }
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with `ws`, `home` and `state`."""
    return prepared(tmp_path)


@pytest.fixture
def elenco(place: Path) -> Run:
    """Run the command to its end, in the workspace of `place`."""
    return runner(place)


@pytest.fixture(scope="module")
def module_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def module_elenco(module_place: Path) -> Run:
    """As `elenco`, for runs that several tests look at."""
    return runner(module_place)


@pytest.fixture
def start(place: Path) -> Iterator[Start]:
    """Start the command and go on; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        where = {"ELENCO_STATE": str(place / "state")} if words[0] in STATEFUL else {}
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process: subprocess.Popen[str] = subprocess.Popen(
            [*COMMAND, *words],
            env={**environment(place / "home"), **where, **(env or {})},
            cwd=place / "ws",
            encoding="utf-8",
            start_new_session=True,
            **options,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def script(place: Path) -> Callable[[str], str]:
    """Write a script for models and give the name that `--model` takes."""

    def write(text: str) -> str:
        file = place / "script.yaml"
        file.write_text(text)
        return f"scripted/{file}"

    return write


def events_of(folder: RunFolder) -> list[dict[str, Any]]:
    with RunReader(folder) as reader:
        return [json.loads(line(record, folder.id)) for record in reader.records()]


@pytest.fixture
def record(place: Path) -> Record:
    """The kept events of a run, as lines of the log stream, read without a further process."""
    return lambda run: events_of(State(place / "state").run(run))


@pytest.fixture
def until(place: Path) -> Until:
    """Wait until the newest run has so many events of a type on record; gives its id."""

    def wait(type: str, count: int = 1) -> str:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            runs = sorted((place / "state" / "runs").glob("*"), key=lambda path: path.stat().st_mtime)
            if runs and sum(event["type"] == type for event in events_of(RunFolder(runs[-1]))) >= count:
                return runs[-1].name
            time.sleep(0.02)
        raise AssertionError(f"no {type}")

    return wait


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A model server on the loopback that gives the answers of a list, the last one again and again.

    An answer is (status, headers, chunks, dies): one that dies cuts the connection without ending the body. Gives the
    base URL and the list of requests seen, each as (path, headers, body).
    """
    servers: list[ThreadingHTTPServer] = []

    def begin(*answers: Answer) -> tuple[str, list[Any]]:
        seen: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.append((self.path, dict(self.headers.items()), json.loads(body)))
                status, headers, chunks, dies = answers[min(len(seen), len(answers)) - 1]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for chunk in chunks:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                if dies:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/v1", seen

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()
