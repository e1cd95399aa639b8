"""Which run is meant: by its id, or by the name it was given."""

from __future__ import annotations

from runtime.errors import JournalError, UsageError
from runtime.journal.folder import RunFolder, State, find_run


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
