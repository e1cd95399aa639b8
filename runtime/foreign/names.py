"""What other runtimes call their tools, and which of ours do the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

import attrs

Kind: TypeAlias = Literal[
    "read", "write", "edit", "list", "grep", "glob", "shell", "job", "fetch", "search", "todo", "ask", "task", "skill"
]


@attrs.frozen
class Counterpart:
    """`gives`: the tools an agent gets for it; `takes`: those a ban on it takes away, all that do such a thing."""

    gives: tuple[str, ...]
    takes: tuple[str, ...]


EDITORS = ("edit_file", "insert_lines", "replace_lines", "delete_lines", "apply_patch")
WRITERS = ("write_file", "apply_patch", "make_folder", "move_file", "delete_file")

COUNTERPARTS: Mapping[Kind, Counterpart] = {
    "read": Counterpart(("read_file",), ("read_file", "file_outline", "diff")),
    "write": Counterpart(("write_file",), WRITERS),
    "edit": Counterpart(("edit_file",), EDITORS),
    "list": Counterpart(("list_files",), ("list_files",)),
    "grep": Counterpart(("search_text",), ("search_text", "search_passages")),
    "glob": Counterpart(("find_files",), ("find_files",)),
    "shell": Counterpart(("shell",), ("shell", "start_job", "job_output", "stop_job")),
    "job": Counterpart(("start_job", "job_output", "stop_job"), ("start_job", "job_output", "stop_job")),
    "fetch": Counterpart(("fetch_url",), ("fetch_url",)),
    "search": Counterpart(("search_web",), ("search_web",)),
    "todo": Counterpart(("todo_write", "todo_read"), ("todo_write", "todo_read")),
    "ask": Counterpart(("ask_user",), ("ask_user",)),
    "task": Counterpart((), ()),
    "skill": Counterpart((), ()),
}

CLAUDE: Mapping[str, Kind] = {
    "Read": "read",
    "NotebookRead": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "LS": "list",
    "Grep": "grep",
    "Glob": "glob",
    "Bash": "shell",
    "BashOutput": "job",
    "KillBash": "job",
    "KillShell": "job",
    "WebFetch": "fetch",
    "WebSearch": "search",
    "TodoWrite": "todo",
    "TodoRead": "todo",
    "AskUserQuestion": "ask",
    "Agent": "task",
    "Task": "task",
    "Skill": "skill",
}

OPENCODE: Mapping[str, Kind] = {
    "read": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "list": "list",
    "ls": "list",
    "grep": "grep",
    "glob": "glob",
    "bash": "shell",
    "shell": "shell",
    "webfetch": "fetch",
    "websearch": "search",
    "todowrite": "todo",
    "todoread": "todo",
    "question": "ask",
    "task": "task",
    "subagent": "task",
    "skill": "skill",
}

SHORT: Mapping[str, str] = {
    kind: counterpart.gives[0] for kind, counterpart in COUNTERPARTS.items() if counterpart.gives
}
"""Short names for tools, and which of ours is meant."""


def given(kind: Kind, there: Collection[str]) -> tuple[str, ...]:
    """The tools among those that are `there` which an agent gets for a kind."""
    return _among(COUNTERPARTS[kind].gives, kind, there)


def taken(kind: Kind, there: Collection[str]) -> tuple[str, ...]:
    """The tools among those that are `there` which a ban on a kind takes away."""
    return _among(COUNTERPARTS[kind].takes, kind, there)


def _among(names: tuple[str, ...], kind: Kind, there: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in (*names, kind) if name in there)
