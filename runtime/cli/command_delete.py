"""`elenco delete`: remove runs and everything kept of them."""

from __future__ import annotations

import argparse
import sys

from runtime.journal import index
from runtime.journal.folder import open_state

from .which import find


def run(arguments: argparse.Namespace) -> int:
    """All are looked up before the first is removed. Raises UsageError, JournalError for one that is live."""
    state = open_state(arguments.state)
    for folder in [find(state, word) for word in dict.fromkeys(arguments.runs)]:
        index.delete(state, folder.id)
        print(f"deleted {folder.id}", file=sys.stderr)
    return 0
