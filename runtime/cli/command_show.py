"""`elenco show`: a run as a page to read, as Markdown, or as data."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from runtime.errors import UsageError
from runtime.journal.folder import RunFolder, open_state
from runtime.journal.lock import is_owned

from .which import find, refuse_unbegun

if TYPE_CHECKING:
    from runtime.journal.state import RunState


def run(arguments: argparse.Namespace) -> int:
    """Print a run. Raises UsageError for an unknown one, JournalError for a damaged one."""
    folder = find(open_state(arguments.state, to_look=True), arguments.run)
    refuse_unbegun(folder)
    from runtime.journal.overview import overview
    from runtime.journal.read import load

    from .page import page

    if arguments.context and arguments.format not in ("text", "json"):
        raise UsageError("--context is shown as text, or with --format json")
    if arguments.format == "jsonl":
        _records(folder)
        return 0
    state = load(folder)
    if state.started is None:
        raise UsageError(f"run {folder.id} has no event on record")
    if arguments.context:
        _context(state, as_json=arguments.format == "json")
    elif arguments.format == "json":
        print(json.dumps(overview(state), ensure_ascii=True, indent=2, default=list))
    else:
        print("\n".join(page(state, folder.id, full=arguments.format == "md", owned=is_owned(folder.lock))))
    return 0


def _context(state: RunState, *, as_json: bool) -> None:
    import attrs

    from .context_page import context_page, filling_of

    if as_json:
        found = {path: filling_of(actor) for path, actor in state.actors.items()}
        print(
            json.dumps(
                {path: {**attrs.asdict(each), "percent": each.percent} for path, each in found.items()}, indent=2
            )
        )
    else:
        print("\n".join(context_page(state)))


def _records(folder: RunFolder) -> None:
    from runtime.journal.read import RunReader
    from runtime.watch.lines import line

    with RunReader(folder) as reader:
        for record in reader.records():
            sys.stdout.buffer.write(line(record, folder.id))
    sys.stdout.buffer.flush()
