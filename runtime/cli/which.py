"""Which run is meant, by its id or by the name it was given, and whether there is anything of it."""

from __future__ import annotations

from runtime.errors import DamagedRecord, JournalError, UsageError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State, find_run
from runtime.journal.lock import is_owned


def find(state: State, word: str) -> RunFolder:
    """The folder of the run with that id or name. Raises UsageError naming the nearest one."""
    try:
        return find_run(state, word)
    except UsageError:
        from runtime.journal import index

        try:
            named = [row.id for row in index.rows(state).values() if row.name == word]
        except JournalError:
            named = []
        if len(named) != 1:
            raise
        return find_run(state, named[0])


def refuse_unbegun(folder: RunFolder) -> None:
    """Raises UsageError for a run whose process died before its first event was safe; one that begins just now may.

    Raises JournalError for one that had begun and whose record is gone.
    """
    from runtime.events import RunStarted
    from runtime.journal import index
    from runtime.journal.looking import flaw
    from runtime.journal.read import RunReader

    if is_owned(folder.lock):
        return
    with RunReader(folder) as reader:
        first = reader.page(1, 1)
    if not first and (found := flaw(folder.journal)) and index.row(State(folder.path.parent.parent), folder.id):
        raise DamagedRecord(folder.id, f"run {folder.id} is damaged: {found} in {folder.path}")
    if not first or not isinstance(first[0].event, RunStarted):
        raise UsageError(
            f"run {folder.id} never began, so nothing of it is on record: elenco delete {folder.id}{in_state()}"
        )
