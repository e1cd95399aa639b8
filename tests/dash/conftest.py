"""The installed command serving its dashboard over a state folder of its own, and a browser to look at it with."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from bench.browser import Browser, browser, installed
from runtime.dash.shell import FOLDER
from runtime.journal.folder import State

_SCRIPT = Path(sys.executable).with_name("elenco")
PURE = Path(__file__).with_name("pure.mjs")
Node = Callable[..., list[Any]]
COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "runtime.cli"]


@attrs.frozen
class Place:
    """A home, a workspace and a state folder, with the command in them."""

    base: Path

    @property
    def state(self) -> State:
        return State(self.base / "state")

    @property
    def workspace(self) -> Path:
        return self.base / "ws"

    def start(
        self, *words: str, stdin: int = subprocess.DEVNULL, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """The command, with its output to be read."""
        ours = {"PATH": os.environ["PATH"], "HOME": str(self.base / "home"), "XDG_RUNTIME_DIR": str(self.base / "rt")}
        return subprocess.Popen(
            [*COMMAND, *words, "--state", str(self.state.path)],
            env={**ours, **(env or {})},
            cwd=self.workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=stdin,
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def script(self, name: str, turns: dict[str, Any]) -> str:
        """A scripted model's file, and the value of --model for it."""
        (self.workspace / name).write_text(json.dumps(turns))
        return f"scripted/{name}"

    @contextlib.contextmanager
    def live(self, *words: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
        """A run at a terminal, so that it waits for a human, with its id once it is served; the block ends it."""
        before = set(self.ids())
        ours, its = pty.openpty()
        try:
            with self.start("run", *words, stdin=its) as process:
                try:
                    yield self._begun(before, process), process
                finally:
                    process.terminate()
                    process.communicate(timeout=60)
        finally:
            os.close(ours)
            os.close(its)

    def _begun(self, before: set[str], process: subprocess.Popen[str]) -> str:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up and process.poll() is None:
            for run in set(self.ids()) - before:
                if self.state.run(run).control.exists():
                    return run
            time.sleep(0.02)
        raise AssertionError(
            f"the run did not begin: {process.communicate(timeout=5) if process.poll() else 'no socket'}"
        )

    def ids(self) -> list[str]:
        runs = self.state.runs
        return [entry.name for entry in runs.iterdir() if not entry.name.startswith(".")] if runs.exists() else []


@attrs.frozen
class Dash:
    """A dashboard that serves."""

    port: int
    token: str
    process: subprocess.Popen[str]

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/#t={self.token}"

    def client(self, **headers: str) -> httpx.Client:
        """A client with the token; a header given replaces one of its own."""
        ours = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers={**ours, **headers}, timeout=20)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An empty home and state; the workspace has one file."""
    base = tmp_path_factory.mktemp("dash")
    for name in ("home", "rt", "state", "ws"):
        (base / name).mkdir(mode=0o700)
    (base / "ws" / "README.md").write_text("# Splitter\n\nWords are separated by blanks.\n")
    return Place(base)


@contextlib.contextmanager
def serving(place: Place) -> Generator[Dash]:
    process = place.start("dash")
    assert process.stdout is not None
    link = process.stdout.readline().strip()
    assert link.startswith("http://127.0.0.1:"), process.communicate()
    port, _, token = link.removeprefix("http://127.0.0.1:").partition("/#t=")
    try:
        yield Dash(int(port), token, process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def dash(place: Place) -> Iterator[Dash]:
    """A dashboard over `place`."""
    with serving(place) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a module."""
    if installed() is None:
        pytest.skip("NO CHROMIUM HERE: the dashboard's pages are not tested (apt install chromium)")
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def node() -> Node:
    """Tasks done by the pages' own modules: `node({"task": "views", …}, …)`."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("NO NODE HERE: the pages' pure modules are not tested by themselves (apt install nodejs)")

    def run(*tasks: dict[str, Any]) -> list[Any]:
        words = [program, "--experimental-default-type=module", str(PURE), str(FOLDER)]
        done = subprocess.run(words, input=json.dumps(tasks), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    return run
