"""`elenco undo`: put the files a run has changed back as they were."""

from __future__ import annotations

import argparse
import sys

from runtime.journal.blobs import Blobs
from runtime.journal.folder import open_state
from runtime.undo import undo

from .visible import one_line
from .which import find


def run(arguments: argparse.Namespace) -> int:
    """Put back all files or none. Raises UsageError naming a file that changed since, JournalError for a live run."""
    folder = find(open_state(arguments.state), arguments.run)
    done = undo(folder, Blobs(folder.blobs), arguments.to)
    for word, paths in (("restored", done.restored), ("removed", done.removed)):
        for path in paths:
            print(f"{word} {one_line(path, 200)}")
    if not done.restored and not done.removed:
        print(f"nothing to undo: run {folder.id} left no change after event {arguments.to}", file=sys.stderr)
    return 0
