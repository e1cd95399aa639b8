"""`elenco debug skill`: which skills a project and a user's home hold, and what became of each SKILL.md."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from runtime.skills.places import Entry, Shelf, places, shelve


def skill(lines: Iterable[str], out: TextIO) -> int:
    """Answer each line with one line a SKILL.md and a last one; 0, or 2 at the first line that is no case."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            project, home = _folder(case["project"]), _folder(case.get("home"))
        except (ValueError, KeyError, TypeError) as error:
            print(f"error: line {number} is no skill case: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
        if project is None:
            print(f"error: line {number} is no skill case: project names no folder", file=sys.stderr)
            return 2
        shelf = shelve(places(project, None, home, with_shipped=False))
        for entry in shelf.met:
            out.write(json.dumps(_answer(entry, shelf)) + "\n")
        done: dict[str, Any] = {"done": True}
        if shelf.notes:
            done["notes"] = list(shelf.notes)
        out.write(json.dumps(done) + "\n")
        out.flush()
    return 0


def _folder(name: Any) -> Path | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError("a folder is named by a text")
    return Path(os.path.abspath(name))


def _answer(entry: Entry, shelf: Shelf) -> dict[str, Any]:
    problems = [{"line": problem.line, "text": problem.text} for problem in entry.reading.problems]
    found: dict[str, Any] = {"path": str(entry.path), "result": "reject", "name": None, "description": None}
    if entry.same_as:
        return {**found, "problems": [{"line": 1, "text": f"a link to {entry.same_as}, which is listed already"}]}
    skill = entry.skill
    if skill is None:
        return {**found, "problems": problems}
    first = shelf.skills[skill.name]
    if first is not entry:
        text = f"shadowed: {first.shown} has the name '{skill.name}' and comes first"
        return {**found, "problems": [{"line": 1, "text": text}, *problems]}
    found |= {
        "result": "load_with_warning" if entry.reading.warned else "load",
        "name": skill.name,
        "description": skill.description,
    }
    if skill.allowed is not None:
        found["allowed_tools"] = list(skill.allowed)
    return {
        **found,
        "problems": [
            each for each, problem in zip(problems, entry.reading.problems, strict=True) if problem.level != "remark"
        ],
    }
