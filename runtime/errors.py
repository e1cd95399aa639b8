"""Errors a person can act on: the class says what kind of mistake, the message what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import attrs

from .nearness import nearest


class ElencoError(Exception):
    """The root of what Elenco raises on purpose; `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(ElencoError):
    """A wrong flag, name or path: nothing was started."""

    exit_code = 2


@attrs.frozen
class Fault:
    """One fault in a file: 1-based `line` and `column`, `width` characters of `source` to underline."""

    path: str
    line: int
    text: str
    column: int = 1
    source: str = ""
    width: int = 1
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.text}"


class DefinitionError(ElencoError):
    """An agent, skill or config file that cannot be used; `faults` lists every fault found."""

    exit_code = 2

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class JournalError(ElencoError):
    """The record cannot be read or written: the run stops, what was acknowledged is kept."""


class DamagedRecord(JournalError):
    """What was recorded of the run `run` can no longer be read as a whole."""

    def __init__(self, run: str, text: str) -> None:
        self.run = run
        super().__init__(text)


class NewerRecord(JournalError):
    """A newer Elenco wrote the record: nothing is wrong with it, and this one cannot read it."""


class NotHired(ElencoError):
    """Depth or width leave no place for one more actor; the text is for the model that wanted it."""


class Cancelled(ElencoError):
    """The run was cancelled from outside."""

    exit_code = 130


E = TypeVar("E", bound=BaseException)


def first_of(error: BaseException, kind: type[E]) -> E | None:
    """The first exception of that kind in a group, however deep; the exception itself if it is no group."""
    if isinstance(error, kind):
        return error
    inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return next((found for each in inside if (found := first_of(each, kind)) is not None), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` or nothing, to end an error message with; words that are equally near are all named."""
    found = [f"'{name}'" for name in nearest(word, known)]
    if not found:
        return ""
    *others, last = found
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"
