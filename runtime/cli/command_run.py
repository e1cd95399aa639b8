"""`elenco run`: give an agent a task, show who works on it, print the answer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runtime.app import RunOptions, plan
from runtime.cast import find
from runtime.errors import UsageError
from runtime.limits.limits import LIMIT_NAMES, Limits, changed
from runtime.models import ModelFlags

from .live import Shown, start


def run(arguments: argparse.Namespace) -> int:
    """Start a run and stay with it to its end; the exit code says how it ended. Raises ElencoError."""
    workspace = Path(arguments.workspace or ".")
    agent, task = _who_and_what(arguments.words, workspace)
    options = RunOptions(
        agent=agent,
        task=task,
        model=ModelFlags(arguments.model, arguments.base_url, arguments.wire),
        workspace=workspace,
        limits=flag_limits(arguments),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        headless=arguments.no_input or not sys.stdin.isatty() or task_from_stdin(arguments.words),
        mode=arguments.mode,
    )
    return start(plan(options), arguments.state, Shown.of(arguments))


def flag_limits(arguments: argparse.Namespace) -> Limits:
    """The limits the flags set. Raises UsageError for what is no number."""
    given = {name: value for name in LIMIT_NAMES if (value := getattr(arguments, name, None)) is not None}
    for name, value in given.items():
        if str(value).startswith("+"):
            raise UsageError(f"{_flag(name)} {value}: a plain number starts a run; +N is for elenco resume")
    try:
        return changed(Limits(), given, "flag")
    except UsageError as error:
        words = str(error)
        for name in given:
            words = words.replace(name, _flag(name))
        raise UsageError(words) from None


def task_from_stdin(words: list[str]) -> bool:
    return bool(words) and words[-1] == "-"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _who_and_what(words: list[str], workspace: Path) -> tuple[str, str]:
    match words:
        case [task]:
            agent = "coordinator"
            if task in find(workspace).members:
                raise UsageError(f'give {task} a task: elenco run {task} "…"')
        case [agent, task]:
            pass
        case []:
            raise UsageError('give a task: elenco run "What does this project do?"')
        case [agent, *_]:
            raise UsageError(f'put the task in quotes: elenco run {agent} "{" ".join(words[1:])[:60]}"')
        case _:
            raise UsageError("give one task")
    if task == "-":
        task = sys.stdin.read()
    if not task.strip():
        raise UsageError('the task is empty: elenco run "What does this project do?"')
    return agent, task
