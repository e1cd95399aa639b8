"""A conversation as a Markdown file. It blocks."""

from __future__ import annotations

from pathlib import Path

from runtime.cli.page import page
from runtime.errors import UsageError
from runtime.journal.folder import State
from runtime.journal.read import load


def export(state: State, run: str, folder: Path, name: str = "") -> Path:
    """Write what the conversation that ends with a run has said, and return where: a file in the folder, unless the
    name is a whole path. Raises UsageError where that cannot be written or is there already, JournalError.
    """
    file = folder / Path(name or f"elenco-{run}.md").expanduser()
    text = "\n".join(page(load(state.run(run)), run, full=True, owned=True)) + "\n"
    try:
        with file.open("x", encoding="utf-8", errors="replace") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} is there already: give another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    return file
