"""Runs made of other runs: a copy up to some event, or one read from a file of event lines. All of it blocks."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from runtime.errors import JournalError, UsageError
from runtime.events import TYPES, Event, Record, RunForked, RunImported, RunStarted, type_of

from . import index
from .blobs import Blobs
from .folder import RunFolder, State, new_run_id
from .interface import already_recorded, outcome_key
from .read import RunReader, info
from .replay import fold
from .state import RunState
from .visit import PAGE, visit

_EXPECTED = "each line is an event, as elenco show RUN --format jsonl writes it"

Decode: TypeAlias = Callable[[dict[str, Any]], Record]


def fork(state: State, folder: RunFolder, at: int, rng: random.Random) -> RunFolder:
    """A new run whose record is that of another one up to the event `at`, with all that is kept beside it.

    Raises UsageError for an event that is not there, JournalError.
    """
    with RunReader(folder) as reader:
        last = reader.last_seq()
        if not 1 <= at <= last:
            raise UsageError(f"run {folder.id} has the events 1 to {last}; there is no {at}")
        records = itertools.takewhile(lambda record: record.seq <= at, reader.records())
        return _made(state, records, RunForked(of=folder.id, at=at), rng, keeps=folder.blobs)


def import_lines(state: State, lines: Iterable[bytes], source: str, decode: Decode, rng: random.Random) -> RunFolder:
    """A new run of a file as `elenco show --format jsonl` writes it; live events in it are passed over.

    `decode` is what makes a record of a decoded line. Raises UsageError naming the line that is none, JournalError.
    """
    run = ""

    def records() -> Iterator[Record]:
        nonlocal run
        due, state_of_it = 1, RunState()
        outcomes: set[tuple[str, str, str] | None] = set()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{source}:{number}"
            record = _decoded(line, where, decode)
            if not record.event.kept:
                continue
            if (field := _misfit(record.event)) is not None:
                raise UsageError(f"{where}: {type_of(record.event)} cannot have such a '{field}'")
            key = outcome_key(record.event)
            if key is not None and key in outcomes:
                raise UsageError(f"{where}: {already_recorded(record.event)}")
            outcomes.add(key)
            if record.seq != due:
                raise UsageError(f"{where}: event {record.seq} where {due} is due")
            if due == 1 and not isinstance(record.event, RunStarted):
                raise UsageError(f"{where}: a run begins with run.started")
            try:
                state_of_it = fold(state_of_it, record)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise UsageError(f"{where}: this {type_of(record.event)} follows from nothing before it") from error
            run = run or str(json.loads(line).get("run", ""))
            due += 1
            yield record
        if due == 1:
            raise UsageError(f"{source} has no events")

    return _made(state, records(), lambda: RunImported(of=run), rng)


def sweep(state: State) -> None:
    """Remove what a killed process left of a run it was making or deleting."""
    for left in state.runs.glob(".*.*") if state.runs.is_dir() else ():
        pid = left.name.rpartition(".")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(left, ignore_errors=True)


def _made(
    state: State,
    records: Iterable[Record],
    last: Event | Callable[[], Event],
    rng: random.Random,
    keeps: Path | None = None,
) -> RunFolder:
    """Write a run out of sight, then give it its place: a crash half-way leaves no run that looks whole."""
    draft = RunFolder(state.runs / f".{new_run_id(rng, 8)}.{os.getpid()}")
    try:
        draft.path.mkdir(0o700, parents=True)
        if keeps is not None:
            for name in Blobs(keeps).names():
                Blobs(draft.blobs).put((keeps / name).read_bytes())
        with visit(draft) as visitor:
            rest = iter(records)
            while page := list(itertools.islice(rest, PAGE)):
                visitor.write(page)
            visitor.append(last() if callable(last) else last)
        draft.lock.unlink(missing_ok=True)
        folder = _placed(state, draft, rng)
    except OSError as error:
        raise JournalError(f"cannot make a run in {state.runs}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft.path, ignore_errors=True)
    index.run_started(state, info(state, folder.id).row)
    return folder


def _decoded(line: bytes, where: str, decode: Decode) -> Record:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: no event of a run: it is not JSON; {_EXPECTED}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{where}: no event of a run: it is no JSON object; {_EXPECTED}")
    fields = cast("dict[str, Any]", data)
    try:
        return decode(fields)
    except (ValueError, TypeError, AttributeError) as error:
        why = _lacking(fields) or str(error)
        raise UsageError(f"{where}: no event of a run: {why}; {_EXPECTED}") from error


def _lacking(data: dict[str, Any]) -> str:
    """Which fields of its type an event line lacks, or nothing."""
    cls = TYPES.get(data["type"]) if isinstance(data.get("type"), str) else None
    if cls is None:
        return ""
    needed = (field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING)
    missing = [f"'{name}'" for name in needed if name not in data]
    return f"this {data['type']} has no {', '.join(missing)}" if missing else ""


def _misfit(event: Event) -> str | None:
    """The first field that holds what its kind of event never has there."""
    cls = type(event)
    hints = typing.get_type_hints(cls)
    names = [field.name for field in attrs.fields(cls)]
    return next((name for name in names if not _fits(getattr(event, name), hints[name])), None)


def _fits(value: object, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is tuple:
        inside: Any = value
        return isinstance(value, tuple) and all(_fits(each, arguments[0]) for each in inside)
    if isinstance(value, bool) and hint is not bool:
        return False
    return isinstance(value, (int, float) if hint is float else origin or hint)


def _placed(state: State, draft: RunFolder, rng: random.Random) -> RunFolder:
    length = 4
    while True:
        folder = state.run(new_run_id(rng, length))
        if not folder.path.exists():
            draft.path.rename(folder.path)
            return folder
        length = min(length + 1, 12)
