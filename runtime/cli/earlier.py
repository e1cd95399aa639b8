"""The run that a new one continues: looked up, and what of its options still counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from runtime.continuation import Continuation, continuation_of
from runtime.errors import JournalError, UsageError
from runtime.journal.blobs import Blobs
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State
from runtime.journal.lock import is_owned
from runtime.journal.read import load
from runtime.journal.state import RunState
from runtime.limits.limits import LIMIT_NAMES
from runtime.outline import RunOptions

from .which import find

if TYPE_CHECKING:
    from runtime.app import Resumption


@attrs.frozen
class Earlier:
    """A run on record, and its options."""

    folder: RunFolder
    state: RunState
    options: RunOptions

    def continuation(self, folder: RunFolder) -> Continuation:
        """What the run in `folder` begins with, the blobs copied. Raises JournalError. Blocks."""
        try:
            return continuation_of(self.state, self.folder.id, Blobs(self.folder.blobs), Blobs(folder.blobs))
        except OSError as error:
            raise JournalError(f"cannot write in {folder.path}: {error.strerror}") from error

    @property
    def answer(self) -> str:
        """What it said last."""
        root = self.state.actors.get(self.state.root)
        return root.last_text if root is not None else ""

    def taken_up(self, merged: RunOptions) -> tuple[RunOptions, Resumption]:
        """How a turn that was broken off goes on: as it began, with what a follow-up's `merged` options say by now.

        Raises UsageError for a limit that cannot be set.
        """
        from runtime.app import Resumption
        from runtime.resumable import limits_after

        before = self.options
        options = attrs.evolve(
            merged,
            agent=before.agent,
            task=before.task,
            workspace=before.workspace,
            compacts=before.compacts,
            output_schema=before.output_schema,
        )
        changes: dict[str, str] = {
            name: str(value) for name in LIMIT_NAMES if (value := merged.limits.get(name)) is not None
        }
        model = (merged.model.model or "") if merged.model.model != before.model.model else ""
        resumption = Resumption(self.state, limits_after(self.state, changes), changes, model=model)
        return options.on_model(model), resumption

    def followed_by(self, flags: RunOptions, *, workspace: bool, mode: bool) -> RunOptions:
        """The options of a follow-up: as before, with what the flags say; do they name a `workspace`, a `mode`?"""
        before, model = self.options, flags.model
        if not (model.model or model.base_url):
            model = attrs.evolve(before.model, wire=model.wire or before.model.wire, record=model.record)
        return attrs.evolve(
            flags,
            model=model,
            workspace=flags.workspace if workspace else before.workspace,
            allow=tuple(dict.fromkeys((*before.allow, *flags.allow))),
            ask=tuple(dict.fromkeys((*before.ask, *flags.ask))),
            deny=tuple(dict.fromkeys((*before.deny, *flags.deny))),
            yes=before.yes or flags.yes,
            mcp=(*(name for name in before.mcp if name not in flags.no_mcp), *flags.mcp),
            no_mcp=(*(name for name in before.no_mcp if name not in flags.mcp), *flags.no_mcp),
            mode=flags.mode if mode else before.mode,
            sandbox=flags.sandbox or before.sandbox,
            network=flags.network or before.network,
        )


def look_up(state: State, word: str, *, headless: bool) -> Earlier:
    """Raises UsageError for a run that is not there or never began, JournalError for one that is live."""
    folder = find(state, word)
    if is_owned(folder.lock):
        raise JournalError(f'run {folder.id} is live in another process: elenco say {folder.id}{in_state()} "…"')
    return on_record(folder, headless=headless)


def on_record(folder: RunFolder, *, headless: bool) -> Earlier:
    """The same of a run that may be live. Raises UsageError for one that never began."""
    record = load(folder)
    if record.started is None:
        raise UsageError(f"run {folder.id} has no beginning on record: nothing to continue")
    trusted = not record.imported
    return Earlier(folder, record, RunOptions.recorded(record.started, yes=False, headless=headless, trusted=trusted))
