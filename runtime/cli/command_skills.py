"""`elenco skills`: which skills can be found, where each is from, what is wrong with them; `note` keeps a lesson."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime.errors import ElencoError, UsageError, did_you_mean
from runtime.journal.folder import open_state
from runtime.skills.lessons import Lessons
from runtime.skills.places import Entry, Shelf, find_skills
from runtime.workplace import check_workspace

from .table import columns
from .visible import one_line

HEAD = ("SKILL", "FROM", "LESSONS", "DESCRIPTION")


def run(arguments: argparse.Namespace) -> int:
    """List the skills, or keep, list and drop lessons. Raises UsageError."""
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    shelf = find_skills(workspace)
    words: list[str] = arguments.words
    lessons = Lessons(open_state(arguments.state, to_look=len(words) < 3 and arguments.drop is None).path)
    if not words:
        if arguments.drop is not None:
            raise UsageError("--drop goes with a skill: elenco skills note NAME --drop N")
        return _list(shelf, lessons, as_json=arguments.json)
    if words[0] != "note":
        raise UsageError(
            f"unknown word '{one_line(words[0], 60)}'{did_you_mean(words[0], ['note'])}  (elenco skills --help)"
        )
    if len(words) < 2:
        raise UsageError('give the skill: elenco skills note NAME "…"')
    entry = _named(words[1], shelf)
    try:
        return _note(entry, words[2:], arguments.drop, lessons)
    except OSError as error:
        raise ElencoError(f"the lessons in {lessons.state} cannot be kept: {error.strerror}") from error


def _note(entry: Entry, words: list[str], drop: int | None, lessons: Lessons) -> int:
    assert entry.skill is not None
    name = entry.skill.name
    if drop is not None:
        if words:
            raise UsageError("either a lesson or --drop N, not both")
        print(f"dropped: {one_line(lessons.drop(entry, drop).text, 200)}")
        return 0
    if len(words) > 1:
        raise UsageError(
            f'put the lesson in quotes: elenco skills note {one_line(name, 60)} "{one_line(" ".join(words), 60)}"'
        )
    if words:
        number = lessons.note(entry, words[0])
        print(f"lesson {number} of {name} is noted; whoever loads the skill reads it", file=sys.stderr)
        return 0
    for number, lesson in enumerate(lessons.of(entry), 1):
        print(f"{number}  {one_line(lesson.text, 500)}")
    if not lessons.of(entry):
        print(f'no lesson yet: elenco skills note {one_line(name, 60)} "…"', file=sys.stderr)
    return 0


def _named(name: str, shelf: Shelf) -> Entry:
    entry = shelf.skills.get(name)
    if entry is not None:
        return entry
    for broken in shelf.broken:
        if broken.folder.name == name:
            problem = broken.reading.problems[0]
            raise UsageError(f"skill '{name}' cannot be used: {broken.shown}:{problem.line}: {problem.text}")
    raise UsageError(f"unknown skill '{one_line(name, 60)}'{did_you_mean(name, shelf.skills)}  (elenco skills)")


def _list(shelf: Shelf, lessons: Lessons, *, as_json: bool) -> int:
    if as_json:
        for entry in shelf.met:
            print(json.dumps(_data(entry, shelf, lessons)))
        return 0
    rows = [_row(name, entry, lessons) for name, entry in shelf.skills.items()]
    print(columns([HEAD, *rows], last_width=70))
    for text in _remarks(shelf):
        print(text, file=sys.stderr)
    return 0


def _row(name: str, entry: Entry, lessons: Lessons) -> tuple[str, ...]:
    assert entry.skill is not None
    count = len(lessons.of(entry))
    return (
        one_line(name, 64),
        one_line(_place(entry), 60),
        str(count) if count else "-",
        one_line(entry.skill.headline, 300),
    )


def _place(entry: Entry) -> str:
    return os.path.dirname(entry.shown)


def _remarks(shelf: Shelf) -> Iterator[str]:
    for entry, first in shelf.shadowed:
        yield f"not used: {one_line(entry.shown, 400)}, for {one_line(first.shown, 400)} comes first"
    for entry in shelf.met:
        for problem in entry.reading.problems:
            if problem.level == "remark":
                continue
            word = "cannot be used: " if problem.level == "fault" else "warning: "
            yield f"{one_line(entry.shown, 100)}:{problem.line}: {word}{one_line(problem.text, 300)}"
    for entry in shelf.met:
        if entry.same_as:
            yield f"{one_line(entry.shown, 100)}: the same skill as {one_line(entry.same_as, 100)}, through a link"
    for note in shelf.notes:
        yield one_line(note, 300)
    yield "an agent gets those its file names under 'skills:'   next: elenco check   elenco skills note NAME \"…\""


def _data(entry: Entry, shelf: Shelf, lessons: Lessons) -> dict[str, Any]:
    skill = entry.skill
    first = shelf.skills.get(skill.name) if skill is not None else None
    return {
        "name": skill.name if skill is not None else None,
        "path": str(entry.path),
        "from": entry.origin,
        "used": first is entry,
        "shadowed_by": first.shown if first is not None and first is not entry else None,
        "same_as": entry.same_as or None,
        "description": skill.description if skill is not None else None,
        "allowed_tools": list(skill.allowed or ()) if skill is not None else [],
        "lessons": len(lessons.of(entry)) if skill is not None else 0,
        "problems": [
            {"line": problem.line, "text": problem.text, "level": problem.level} for problem in entry.reading.problems
        ],
    }
