"""A chat with its real runtime process: its screen under Textual's pilot, or the installed command in a tmux pane."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import pytest

from runtime.chat.screen import app_for
from runtime.cli.command_chat import options_of
from runtime.cli.parser import parse
from runtime.journal.folder import RunFolder, State
from runtime.journal.read import RunReader
from runtime.watch.lines import line

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from runtime.chat.screen.app import ChatApp

_SCRIPT = Path(sys.executable).with_name("elenco")
COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "runtime.cli"]
PATIENCE = 40.0


@attrs.frozen
class Place:
    """A workspace and a state folder of a test's own."""

    base: Path

    @property
    def workspace(self) -> Path:
        return self.base / "ws"

    @property
    def state(self) -> State:
        return State(self.base / "state")

    def script(self, text: str) -> str:
        """Write a script for models; the name that `--model` takes."""
        file = self.base / f"script-{abs(hash(text)) % 10_000}.yaml"
        file.write_text(text)
        return f"scripted/{file}"

    def runs(self) -> list[RunFolder]:
        """Oldest first."""
        found = (self.base / "state" / "runs").glob("[a-z]*")
        return [RunFolder(path) for path in sorted(found, key=lambda path: path.stat().st_ctime)]

    def events(self, run: str) -> list[dict[str, Any]]:
        with RunReader(self.state.run(run)) as reader:
            return [json.loads(line(record, run)) for record in reader.records()]

    def types(self, run: str) -> list[str]:
        return [event["type"] for event in self.events(run)]

    def processes(self) -> list[int]:
        """Whose command line or environment names this place."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(self.base) in words and b"tmux" not in words:
                found.append(int(entry.name))
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("ws", "home", "rt", "state"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "ws" / "a.txt").write_text("one\ntwo\nthree\n")
    for name in list(os.environ):
        if name.startswith(("ELENCO_", "XDG_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "rt"))
    monkeypatch.setenv("ELENCO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "ws")
    return Place(tmp_path)


@attrs.define(eq=False)
class Screen:
    """A chat under the pilot: what it shows, and waiting for what it is to show."""

    app: ChatApp
    pilot: Pilot[None]
    place: Place

    @property
    def text(self) -> str:
        """Everything on the screen, and in the log above it."""
        from textual.content import Content
        from textual.widgets import Markdown, Static

        found: list[str] = []
        for widget in self.app.screen.query("Static, Markdown"):
            if isinstance(widget, Markdown):
                found.append(widget.source)
            elif isinstance(widget, Static) and widget.display:
                shown = widget.visual
                found.append(shown.plain if isinstance(shown, Content) else str(shown))
        return "\n".join(found)

    async def say(self, text: str) -> None:
        """Type a line and send it."""
        from runtime.chat.screen.prompt import Prompt

        self.app.query_one(Prompt).put(text)
        self.app.query_one(Prompt).focus()
        await self.pilot.press("enter")

    async def until(self, *words: str) -> str:
        """Wait until all of the words are on the screen; what it shows then."""
        return await self.when(lambda: all(word in self.text for word in words), f"{words}")

    async def ready(self, turns: int) -> None:
        """Wait until so many turns are over."""
        session = self.app.session
        await self.when(lambda: len(session.turns) >= turns and not session.busy, f"turn {turns}")
        await self.pilot.pause(0.1)

    async def when(self, met: Callable[[], bool], what: str) -> str:
        end = time.monotonic() + PATIENCE
        while not met():
            if time.monotonic() > end:
                raise AssertionError(f"not on the screen: {what}\n{self.text}")
            await self.pilot.pause(0.05)
        return self.text


Steps: TypeAlias = Callable[[Screen], Awaitable[None]]
Drive: TypeAlias = Callable[..., "ChatApp"]


@pytest.fixture
def drive(place: Place) -> Drive:
    """Open a chat with the flags, take the steps, leave; what the app was is returned. Its runtime process is real."""

    def run(steps: Steps, *flags: str, resume: str | None = None) -> ChatApp:
        arguments = parse(["chat", *flags])[1]
        options = options_of(arguments, None, headless=False)
        folder = place.state.run(resume) if resume is not None else None
        app = app_for(arguments, place.state, options, folder)

        async def main() -> None:
            async with app.run_test(size=(140, 45)) as pilot:
                screen = Screen(app, pilot, place)
                await screen.when(lambda: bool(app.session.looked), "the runtime")
                await steps(screen)
                app.leave()
                await screen.when(lambda: not app.session.engine.alive, "the end of the runtime")
            await asyncio.sleep(0)

        asyncio.run(main())
        return app

    return run


Lines: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lines(place: Place) -> Lines:
    """A chat in lines from a pipe, to its end."""

    def run(typed: str, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "chat", "--plain", *flags],
            input=typed,
            env={**os.environ, **variables},
            cwd=place.workspace,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    return run


Serve: TypeAlias = Callable[[str], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A model server on the loopback that says one text again and again; its base URL."""
    servers: list[ThreadingHTTPServer] = []

    def begin(text: str) -> str:
        said = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
        body = b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(said).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


@attrs.define(eq=False)
class Pane:
    """A terminal with the installed command in it."""

    socket: Path
    place: Place
    name: str

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self.socket), *words], capture_output=True, text=True, check=False)
        return done.stdout

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.name, *keys)

    @property
    def text(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", self.name, "-S", "-200")

    def until(self, *words: str) -> str:
        end = time.monotonic() + PATIENCE
        while not all(word in self.text for word in words):
            if time.monotonic() > end:
                raise AssertionError(f"not in the terminal: {words}\n{self.text}")
            time.sleep(0.05)
        return self.text

    def settings(self, when: str) -> str:
        """What `stty -a` said before and after."""
        said = " ".join((self.place.base / f"stty-{self.name}-{when}").read_text().split())
        return re.sub(r"rows \d+; columns \d+;", "", said)

    def pid(self, words: str) -> int:
        """The process of ours that has these words in its command line."""
        for pid in self.place.processes():
            try:
                found = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if words in found and "stty" not in found:
                return pid
        raise AssertionError(f"no process {words}")


Open: TypeAlias = Callable[..., Pane]


@pytest.fixture
def open_pane(place: Place) -> Iterator[Open]:
    """Open terminals with `elenco chat FLAGS`; tmux is needed."""
    if shutil.which("tmux") is None:
        pytest.skip("NO TMUX HERE: the chat is not tried in a terminal (apt install tmux)")
    socket = place.base / "tmux"
    opened: list[Pane] = []

    def begin(*flags: str, name: str = "chat") -> Pane:
        pane = Pane(socket, place, name)
        words = " ".join(f"'{word}'" for word in (*COMMAND, "chat", "--workspace", str(place.workspace), *flags))
        stty = f"stty -a > '{place.base}/stty-{name}-{{}}'"
        inside = f"{stty.format('before')}; {words}; echo rc=$?; {stty.format('after')}; echo over; sleep 1000"
        pane.tmux("new-session", "-d", "-s", name, "-x", "130", "-y", "40", inside)
        opened.append(pane)
        return pane

    yield begin
    for pane in opened[:1]:
        pane.tmux("kill-server")
    for pid in place.processes():
        os.kill(pid, signal.SIGKILL)


def gone(place: Place, seconds: float = 20.0) -> Sequence[int]:
    """The processes that are left of a place when they have had time to end."""
    end = time.monotonic() + seconds
    while (left := place.processes()) and time.monotonic() < end:
        time.sleep(0.05)
    return left


@pytest.fixture
def nothing_left(place: Place) -> Callable[[], Sequence[int]]:
    return lambda: gone(place)
