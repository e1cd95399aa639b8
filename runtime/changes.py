"""What a call does to files: on record, and the old content kept, before anything happens."""

from __future__ import annotations

import trio

from .errors import JournalError
from .events import FileChanged, FileChanging
from .policy.paths import Change
from .run import Run, digest
from .tools import ToolError


class Changes:
    """The changes of one call. `keep` is for the workspace, `changed` for the tool that reports them."""

    def __init__(self, run: Run, actor: str, call_id: str) -> None:
        self._run = run
        self._actor = actor
        self._call_id = call_id
        self._seen: dict[str, Change] = {}

    def keep(self, change: Change) -> None:
        """Make a change known and what it replaces safe; blocks. In the tool's own thread it is durable on return.

        Raises ToolError where the content cannot be kept: then the file stays as it is. Raises JournalError.
        """
        # A file that holds a key is not copied: its change cannot be undone, and the key stays in one place.
        if change.content is not None and not self._run.veil.holds(change.content):
            try:
                self._run.journal.contents.put(change.content)
            except OSError as error:
                why = error.strerror or error
                raise ToolError(f"{change.path} was not changed: what is there cannot be kept ({why})") from error
        self._run.originals.setdefault(change.path, change.before)
        first = self._seen.get(change.path)
        self._seen[change.path] = Change(change.path, first.before if first else change.before, change.after, None)
        event = FileChanging(
            actor=self._actor,
            call_id=self._call_id,
            path=change.path,
            before=change.before,
            after=change.after,
            mode=change.mode,
        )
        if _in_trio():
            self._run.append(event)
        else:
            trio.from_thread.run(self._record, event)

    def changed(self, path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
        """Record what a tool says it has changed."""
        seen = self._seen.get(path)
        self._run.append(
            FileChanged(
                actor=self._actor,
                call_id=self._call_id,
                path=path,
                diff=diff,
                before=seen.before if seen else digest(before),
                after=seen.after if seen else digest(after),
            )
        )

    def original(self, path: str, now: bytes | None) -> bytes | None:
        """What a file held when the run began; blocks. Raises ToolError where that is not kept."""
        if path not in self._run.originals:
            return now
        name = self._run.originals[path]
        try:
            return None if name is None else self._run.journal.contents.get(name)
        except JournalError as error:
            raise ToolError(f"what {path} held when the run began is not kept") from error

    async def _record(self, event: FileChanging) -> None:
        self._run.append(event)
        await self._run.journal.barrier()


def _in_trio() -> bool:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True
