"""A provider that meters nothing uses up no budget."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from runtime.errors import UsageError
from runtime.library import open_runtime
from runtime.limits.limits import Limits
from runtime.messages import Usage
from runtime.report import Report


def test_an_offline_run_spends_no_tokens(tmp_path: Path) -> None:
    """An offline run spends no tokens, so that no token budget ends it."""
    (tmp_path / "notes.md").write_text("# Harbour\n\nBoats lie in the harbour at night.\n", encoding="utf-8")

    async def ask() -> Report:
        async with (
            open_runtime(tmp_path, model="offline/extract", state=str(tmp_path / "state")) as runtime,
            runtime.run("coordinator", "Where do boats lie at night?", limits=Limits(token_budget=60_000)) as run,
        ):
            return await run.report()

    report = trio.run(ask)
    assert ("completed", Usage()) == (report.status, report.usage)
    assert "harbour at night" in report.text


def test_a_runtime_over_no_folder_is_refused_before_it_is_there(tmp_path: Path) -> None:
    """A mistyped workspace is told when the runtime is opened, and no state is made for it."""

    async def opened() -> None:
        async with open_runtime(tmp_path / "nowhere", state=str(tmp_path / "state")):
            raise AssertionError

    with pytest.raises(UsageError, match="nowhere does not exist"):
        trio.run(opened)
    assert not (tmp_path / "state").exists()
