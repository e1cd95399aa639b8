"""The dashboard's side of the playground's runs: it starts their processes, hands over the order, and owns them.

A key goes into the environment of the one process that needs it and nowhere else: not into its words, not to disk. As
long as this process lives, so does the pipe its runs read from; when it ends, however it does, they are cancelled.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import attrs

from runtime.cast import find
from runtime.errors import DefinitionError, ElencoError, Fault, UsageError
from runtime.journal.folder import RunFolder, State
from runtime.journal.read import RunReader
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.known import BUILT_IN, ModelFlags, default_model, key_variable, split_name
from runtime.messages import JsonObject
from runtime.outline import settings_of
from runtime.record import messages_to_json
from runtime.sandbox.environment import sounds_secret
from runtime.trust import counting
from runtime.wire import WIRES

from .draft import AGENT_FILE, CODE_FILE, EXCHANGES, definition_of
from .own_tools import MOST_CODE, faults_of

PLACE = "playground"
"""In the state folder: one folder for each run that was started here, private to the user."""
RUN = "run"
PATIENCE = 60.0
"""Seconds a process has to begin its run."""
MOST_AT_ONCE = 8
KEPT = 50
"""Folders that are kept for runs that have ended."""
_LONGEST_KEY = 4096


@attrs.frozen
class Order:
    """What is to be run. `text` is the agent's file, `code` that of its own tools; `key` is never shown."""

    workspace: Path
    text: str
    task: str
    code: str = ""
    model: str | None = None
    base_url: str | None = None
    wire: str | None = None
    key: str = attrs.field(default="", repr=False)

    @classmethod
    def from_json(cls, body: JsonObject) -> Order:
        """The order a page has sent. Raises UsageError, which never repeats a key."""
        order = cls(
            workspace=workspace_of(body),
            text=text_of(body, "text"),
            task=text_of(body, "task"),
            code=text_of(body, "code"),
            model=text_of(body, "model").strip() or None,
            base_url=text_of(body, "base_url").strip() or None,
            wire=text_of(body, "wire").strip() or None,
            key=text_of(body, "key").strip(),
        )
        if not order.task.strip():
            raise UsageError("give the agent a task")
        if order.wire is not None and order.wire not in WIRES:
            raise UsageError(f"the wire is one of {', '.join(WIRES)}")
        if len(order.code) > MOST_CODE:
            raise UsageError(f"the code of own tools has at most {MOST_CODE} characters")
        if len(order.key) > _LONGEST_KEY or not order.key.isascii() or not order.key.isprintable() or " " in order.key:
            raise UsageError("the key is none: it holds a blank, a line end or a strange character")
        return order


def text_of(body: JsonObject, name: str) -> str:
    """A text a page has sent, "" for none. Raises UsageError for anything else."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text")
    return value


def workspace_of(body: JsonObject) -> Path:
    """The folder agents work in: an absolute path that is there. Raises UsageError."""
    path = Path(text_of(body, "workspace") or os.getcwd())
    if not path.is_absolute() or "\0" in str(path) or not path.is_dir():
        raise UsageError(f"the workspace {path} is no folder here: give its whole path")
    return path


def key_place(order: Order) -> str:
    """The variable that the order's key belongs into. Raises UsageError where its model needs none."""
    here, user = settings_of(order.workspace)
    here, _, notice = counting(order.workspace, here, find(order.workspace))
    providers = {**({} if notice else here.providers), **user.providers}
    flags = ModelFlags(definition_of(order.text, "agent").model or order.model, order.base_url)
    name = default_model(flags, here.model or user.model, os.environ)
    provider = split_name(name, flags)[0]
    variable = key_variable(provider, providers.get(provider)) if provider not in BUILT_IN else None
    if variable is None:
        raise UsageError(f"{name} needs no key: choose another model, or take the key out")
    if not sounds_secret(variable) or not variable.isidentifier():
        raise UsageError(f"no key is put into a variable called {variable}: name it …_API_KEY in the settings")
    return variable


@attrs.define(eq=False)
class Trials:
    """The runs this process has started and owns. Its methods block, and may be called from several threads."""

    state: State
    _living: dict[str, subprocess.Popen[bytes]] = attrs.Factory(dict[str, "subprocess.Popen[bytes]"])
    _turn: threading.Lock = attrs.Factory(threading.Lock)

    def start(self, order: Order) -> JsonObject:
        """Start a run: `{"run": id}`, or what keeps it from beginning: `{"error", "faults"?, "walls"?}`.

        Raises DefinitionError, UsageError.
        """
        if wrong := [*_faults(order)]:
            raise DefinitionError(wrong)
        added = {key_place(order): order.key} if order.key else {}
        with self._turn:
            if len(self._living) >= MOST_AT_ONCE:
                raise UsageError(f"{MOST_AT_ONCE} runs of the playground are at work: cancel one, or wait for it")
            self._prune()
        place = self._place(order)
        said = ""
        try:
            process = self._process(added)
            said, told = _begun(process, self._sent(order, place))
            if said and not said.startswith("{"):
                self._keep(said, process, place)
                return {"run": said}
            _end(process)
            return _why(said, told)
        finally:
            if not said or said.startswith("{"):
                shutil.rmtree(place, ignore_errors=True)

    def describe(self, workspace: Path, code: str) -> JsonObject:
        """Which tools a text holds, asked of it in walls: `{"tools", "faults"}`, or `{"error", "walls"?}`."""
        process = self._process({})
        order = {"do": "describe", "code": code, "workspace": str(workspace), "state": str(self.state.path)}
        said, told = _begun(process, order)
        _end(process)
        return _why(said, told)

    def place_of(self, run_id: str) -> Path | None:
        """The folder of a run that was started here, also by an earlier dashboard."""
        for place in self._places():
            with contextlib.suppress(OSError):
                if (place / RUN).read_text(encoding="utf-8") == run_id:
                    return place
        return None

    def _process(self, added: dict[str, str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "runtime.dash.trial"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **added},
                start_new_session=True,
            )
        except OSError as error:
            raise ElencoError(f"no process could be started: {error.strerror}") from error

    def _sent(self, order: Order, place: Path) -> JsonObject:
        return {
            "do": "run",
            "place": str(place),
            "state": str(self.state.path),
            "workspace": str(order.workspace),
            "task": order.task,
            "model": order.model,
            "base_url": order.base_url,
            "wire": order.wire,
        }

    def _place(self, order: Order) -> Path:
        place = self.state.path / PLACE / secrets.token_hex(6)
        try:
            place.mkdir(0o700, parents=True)
            for name, text in ((AGENT_FILE, order.text), (CODE_FILE, order.code)):
                (place / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise ElencoError(f"cannot write {place}: {error.strerror}") from error
        return place

    def _keep(self, run_id: str, process: subprocess.Popen[bytes], place: Path) -> None:
        with contextlib.suppress(OSError):
            (place / RUN).write_text(run_id, encoding="utf-8")
        with self._turn:
            self._living[run_id] = process
        threading.Thread(target=self._forget, args=(run_id, process), daemon=True).start()

    def _forget(self, run_id: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        _close(process)
        with self._turn:
            self._living.pop(run_id, None)

    def _places(self) -> list[Path]:
        try:
            found = [path for path in (self.state.path / PLACE).iterdir() if path.is_dir()]
        except OSError:
            return []
        return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)

    def _prune(self) -> None:
        for place in self._places()[KEPT:]:
            with contextlib.suppress(OSError):
                if (place / RUN).read_text(encoding="utf-8") not in self._living:
                    shutil.rmtree(place, ignore_errors=True)


def _faults(order: Order) -> Iterator[Fault]:
    """What is told without starting a process. Raises DefinitionError for a faulty draft."""
    definition_of(order.text, AGENT_FILE)
    if order.code.strip():
        yield from (fault for fault in faults_of(order.code) if not fault.warning)


def _begun(process: subprocess.Popen[bytes], order: JsonObject) -> tuple[str, str]:
    """Hand over an order: what is told of it on standard output and, where nothing is, on standard error."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        said = process.stdout.read().decode(errors="replace").strip()
        return said, "" if said else process.stderr.read().decode(errors="replace").strip()
    finally:
        timer.cancel()


def _why(said: str, told: str) -> JsonObject:
    """What a process has answered with, or that it ended without an answer."""
    if said:
        found: Any = json.loads(said)
        return cast("JsonObject", found)
    return {"error": f"the process ended before it began: {told.splitlines()[-1] if told else 'it was too slow'}"}


def _end(process: subprocess.Popen[bytes]) -> None:
    _close(process)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


# --- what a run has asked its model -------------------------------------------------------------------------------


def request_at(folder: RunFolder, seq: int) -> JsonObject:
    """The request that the event `seq` of a run made, put together from the record. Blocks. Raises UsageError."""
    state = RunState()
    actor = ""
    with RunReader(folder) as reader:
        for record in reader.records():
            state = fold(state, record)
            if record.seq >= seq:
                actor = record.event.actor
                break
    found = state.actors.get(actor)
    if found is None or found.request is None or state.seq != seq:
        raise UsageError(f"event {seq} of run {folder.id} is no request to a model")
    return {
        "actor": actor,
        "model": found.request.model,
        "max_output_tokens": found.request.output_cap,
        "system": list(found.prompt),
        "tools": list(found.tools),
        "messages": list(messages_to_json(found.history)),
    }


def exchanges(place: Path) -> list[JsonObject]:
    """The requests of a run as they went over the wire, keys taken out, in the order of their answers. Blocks."""
    found: list[JsonObject] = []
    for path in sorted((place / EXCHANGES).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            kept: Any = json.loads(path.read_text(encoding="utf-8", errors="replace"))
            found.append({key: kept.get(key) for key in ("name", "wire", "status", "request")})
    return found
