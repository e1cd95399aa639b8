"""The command in this very process: a workspace with one agent and a script, a state of its own, and what it prints."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest

from runtime.cli import main
from runtime.journal import RunFolder, State, open_state, runs

AGENT = """\
---
name: writer
description: Writes.
tools: [read_file, write_file]
---
Write.
"""

Command: TypeAlias = Callable[..., "Said"]


@attrs.frozen
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@attrs.frozen
class Desk:
    """Where commands run."""

    workspace: Path
    state: State
    elenco: Command

    def script(self, text: str) -> str:
        path = self.workspace.parent / "script.yaml"
        path.write_text(text)
        return f"scripted/{path}"

    def run(self, script: str, *flags: str) -> RunFolder:
        """A run of a script; the newest one of the state afterwards."""
        self.elenco("run", "writer", "the task", "--model", self.script(script), "--quiet", *flags)
        return self.newest

    @property
    def newest(self) -> RunFolder:
        return self.state.run(runs(self.state)[0].row.id)


@contextmanager
def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The text is what comes in, for who reads `sys.stdin` and for who reads the descriptor."""
    before = os.dup(0)
    with tempfile.TemporaryFile() as file, os.fdopen(before), monkeypatch.context() as patch:
        file.write(text.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
        patch.setattr("sys.stdin", io.TextIOWrapper(os.fdopen(0, "rb", closefd=False)))
        try:
            yield
        finally:
            os.dup2(before, 0)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    workspace = tmp_path / "workspace"
    (workspace / "agents").mkdir(parents=True)
    (workspace / "agents" / "writer.md").write_text(AGENT)
    (tmp_path / "rt").mkdir(mode=0o700)
    for name in ("ELENCO_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "rt"))
    monkeypatch.chdir(workspace)
    state = open_state(str(tmp_path / "state"))
    monkeypatch.setenv("ELENCO_STATE", str(state.path))

    def elenco(*words: str, input: str = "") -> Said:
        capsys.readouterr()
        with typed(input, monkeypatch):
            code = main(list(words))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return Desk(workspace, state, elenco)
