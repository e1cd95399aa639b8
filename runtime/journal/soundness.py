"""Whether all that a run's record holds can still be read, found out by reading it. Blocks.

A list of runs only glances at the files of those that have ended; this is the thorough look.
"""

from __future__ import annotations

import sqlite3

from runtime.errors import JournalError, NewerRecord
from runtime.events import FileChanging

from .blobs import Blobs
from .folder import RunFolder
from .lock import is_owned
from .looking import flaw, look_at
from .read import RunReader
from .replay import fold
from .state import RunState


def examine(folder: RunFolder) -> str:
    """What is wrong with a run's record, "" if nothing is: its pages, its events in their order, its kept contents.

    Of a run that is live, what is durable by now. Blocks for about as long as reading all of it takes. Raises
    NewerRecord for one that a newer Elenco wrote.
    """
    if found := flaw(folder.journal):
        return found
    try:
        return _pages(folder) or _events(folder)
    except NewerRecord:
        raise
    except sqlite3.Error as error:
        return f"{folder.journal.name} cannot be read: {error}"
    except JournalError as error:
        return str(error).replace(f"{folder.path}/", "")


def _pages(folder: RunFolder) -> str:
    connection = look_at(folder.journal, lambda: is_owned(folder.lock))
    try:
        said = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    finally:
        connection.close()
    return "" if said == "ok" else f"{folder.journal.name} is damaged: {said.strip().splitlines()[-1]}"


def _events(folder: RunFolder) -> str:
    state = RunState(histories=False)
    before: set[str] = set()
    with RunReader(folder) as reader:
        for record in reader.records():
            if isinstance(record.event, FileChanging) and record.event.before is not None:
                before.add(record.event.before)
            state = fold(state, record)
    # Contents do not travel with an exported record: an imported run has none of those it speaks of.
    wanted = set[str]() if state.imported else before
    blobs = Blobs(folder.blobs)
    for name in sorted(wanted.union(blobs.names())):
        blobs.get(name)
    return ""
