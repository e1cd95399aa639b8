"""The run that a new one continues: looked up, and what of its options still counts."""

from __future__ import annotations

import attrs

from runtime.continuation import Continuation, continuation_of
from runtime.errors import JournalError, UsageError
from runtime.journal.blobs import Blobs
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State
from runtime.journal.lock import is_owned
from runtime.journal.read import load
from runtime.journal.state import RunState
from runtime.outline import RunOptions

from .which import find


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

    def followed_by(self, flags: RunOptions, *, workspace: bool) -> RunOptions:
        """The options of a follow-up: as before, with what the flags say; `workspace`: whether they name one."""
        before, model = self.options, flags.model
        return attrs.evolve(
            flags,
            model=model if model.model or model.base_url else attrs.evolve(before.model, record=model.record),
            workspace=flags.workspace if workspace else before.workspace,
            allow=before.allow + flags.allow,
            ask=before.ask + flags.ask,
            deny=before.deny + flags.deny,
            yes=before.yes or flags.yes,
            mcp=before.mcp + flags.mcp,
            no_mcp=before.no_mcp + flags.no_mcp,
            mode=before.mode if flags.mode == "default" else flags.mode,
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
