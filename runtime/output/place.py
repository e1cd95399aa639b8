"""Where in a file a part of a schema stands, so that a fault can be shown there; and a schema read from a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from runtime.errors import DefinitionError, Fault, UsageError
from runtime.frontmatter import Source, Value, Wrong, parse
from runtime.handwritten import read_text
from runtime.wire.deep_json import read_json

from .schema import SchemaFault, Step, faults_of_schema


def load_schema(path: Path, flag: str = "--output-schema") -> dict[str, Any]:
    """The schema in a JSON file. Raises UsageError where there is no such file, DefinitionError with its faults."""
    try:
        content = read_text(path)
    except FileNotFoundError:
        raise UsageError(f"{flag} {path}: there is no such file") from None
    except NotADirectoryError:
        raise UsageError(f"{flag} {path}: there is no such file") from None
    except UnicodeDecodeError:
        raise DefinitionError([Fault(str(path), 1, "not UTF-8 text; save the file as UTF-8")]) from None
    except OSError as error:
        raise UsageError(f"{flag} {path}: {error.strerror}") from None
    shown = str(path)
    if not content.strip():
        raise DefinitionError(
            [Fault(shown, 1, 'the file is empty; it holds a JSON Schema, such as {"type": "object"}')]
        )
    try:
        schema = read_json(content)
    except json.JSONDecodeError as error:
        line = content.split("\n")[error.lineno - 1]
        raise DefinitionError([Fault(shown, error.lineno, f"not valid JSON: {error.msg}", error.colno, line)]) from None
    except (ValueError, RecursionError) as error:
        raise DefinitionError([Fault(shown, 1, f"not valid JSON: {error}")]) from None
    if faults := faults_of_schema(schema):
        top = _tree(content, shown)
        raise DefinitionError(located(faults, top, Fault(shown, 1, "")))
    return schema  # type: ignore[no-any-return]  # an object, or it had a fault


def located(faults: Iterable[SchemaFault], top: Value | None, otherwise: Fault) -> list[Fault]:
    """The faults at their places below `top`, or where that cannot be told at `otherwise`."""
    found: list[Fault] = []
    for fault in faults:
        place = _at(top, fault.path) if top is not None else None
        if place is not None:
            found.append(place.fault(fault.text))
        else:
            found.append(Fault(otherwise.path, otherwise.line, fault.text, otherwise.column, otherwise.source))
    return found


def _tree(content: str, shown: str) -> Value | None:
    """The file's values with their places: JSON is YAML, but for tabs."""
    try:
        return parse(Source(shown, content.replace("\t", " ")))
    except (DefinitionError, RecursionError):
        return None


def _at(top: Value, path: Sequence[Step]) -> Value:
    """The value at the end of the way, or as far as the way can be gone."""
    here = top
    for step in path:
        try:
            if isinstance(step, int):
                here = here.items()[step]
            else:
                here = next(value for key, value in here.pairs() if key.plain() == step)
        except (Wrong, StopIteration, IndexError):
            return here
    return here
