"""`elenco run`: give an agent a task, show who works on it, print the answer."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runtime.errors import UsageError, did_you_mean
from runtime.journal.elsewhere import in_state
from runtime.known import TOOL_NAMES, ModelFlags
from runtime.limits.limits import LIMIT_NAMES, Limits, changed
from runtime.outline import Outline, RunOptions, outline, settings_of

from .advice import who_answers
from .detached import detach, refuse_unread
from .streams import as_text, check_output, check_record
from .visible import one_line

if TYPE_CHECKING:
    from runtime.cast import Cast
    from runtime.messages import JsonObject

    from .earlier import Earlier

_OF_SERVER = re.compile(r"\s*mcp\(\s*([^()/*?\s]+)\s*[/)]")
"""A rule for one server's tools."""


def run(arguments: argparse.Namespace) -> int:
    """Start a run and stay with it to its end; the exit code says how it ended. Raises ElencoError."""
    from runtime.journal.folder import open_state

    refuse_unread(arguments)
    from_stdin = arguments.words[-1:] == ["-"]
    earlier = None
    if arguments.continues:
        from .earlier import look_up

        earlier = look_up(open_state(arguments.state), arguments.continues, headless=True)
    before = earlier.options if earlier is not None else None
    if earlier is not None and not arguments.workspace and not earlier.options.workspace.is_dir():
        gone = f"the workspace of run {earlier.folder.id}, {earlier.options.workspace}, is no folder any more"
        raise UsageError(f"{gone}: --workspace DIR names where it is now")
    workspace = Path(arguments.workspace) if arguments.workspace else before.workspace if before else Path()
    agent, task = _who_and_what(arguments.words, workspace, earlier)
    options = RunOptions(
        agent=agent,
        task=as_text(task),
        model=model_flags(arguments),
        workspace=workspace,
        limits=flag_limits(arguments),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        headless=arguments.no_input or arguments.detach or from_stdin or not sys.stdin.isatty(),
        mode=arguments.mode or "default",
        output_schema=output_schema(arguments),
        sandbox=arguments.sandbox,
        network=arguments.network,
        mcp=tuple(arguments.mcp),
        no_mcp=tuple(arguments.no_mcp),
    )
    if earlier is not None:
        options = earlier.followed_by(options, workspace=True, mode=arguments.mode is not None)
    if arguments.output:
        check_output(Path(arguments.output))
    refuse_unknown_servers(arguments, workspace)
    seen = outline(options, tools=TOOL_NAMES)
    refuse_unused_servers(arguments, seen)
    seen.refuse_unpriced()
    open_state(arguments.state)  # told before anything is shown
    if not (arguments.json or arguments.quiet):
        print(
            who_answers(seen.root.name, seen.model, asked=options.model.model is not None), file=sys.stderr, flush=True
        )
    # Only now what takes time to load: a slip has been told by here.
    from runtime.app import plan

    from .live import Shown, start

    shown = Shown.of(arguments, announced=True)
    ready = plan(options, seen=seen)
    if not arguments.detach:
        return start(ready, arguments.state, shown, earlier)
    return detach(lambda began: start(ready, arguments.state, attrs.evolve(shown, began=began), earlier))


def model_flags(arguments: argparse.Namespace) -> ModelFlags:
    """What the flags say about models. Raises UsageError for a folder nothing could be recorded in."""
    record = Path(arguments.record) if arguments.record else None
    if record is not None:
        check_record(record)
    return ModelFlags(arguments.model, arguments.base_url, arguments.wire, record)


def refuse_unknown_servers(arguments: argparse.Namespace, workspace: Path) -> None:
    """Raises UsageError where a flag, or a rule in one, names a server that stands in no file here, DefinitionError."""
    named = [("--mcp", name) for name in arguments.mcp] + [("--no-mcp", name) for name in arguments.no_mcp]
    for flag in ("allow", "ask", "deny"):
        rules = ((rule, _OF_SERVER.match(rule)) for rule in getattr(arguments, flag))
        named += [(f"--{flag} {rule}:", found[1]) for rule, found in rules if found is not None]
    if not named:
        return
    from runtime.mcps.settings import servers_of

    known = servers_of(workspace, *settings_of(workspace)).entries
    for flag, name in named:
        if name in arguments.mcp and name in arguments.no_mcp:
            raise UsageError(f"--mcp {name} and --no-mcp {name}: give one of them")
        if name not in known:
            raise UsageError(
                f"{flag} {name}: no MCP server has that name{did_you_mean(name, known)}  (elenco mcp list)"
            )


def refuse_unused_servers(arguments: argparse.Namespace, seen: Outline) -> None:
    """Raises UsageError where --mcp names a server that no agent of the run would have."""
    had = {name for member in seen.members for name in member.mcps}
    for name in arguments.mcp:
        if name not in had:
            who = seen.root.name if len(seen.members) == 1 else f"{seen.root.name} and all below it"
            raise UsageError(f"--mcp {name}: it is in no `mcps:` of {who}  (elenco tools --agent {seen.root.name})")


def output_schema(arguments: argparse.Namespace) -> JsonObject | None:
    """The schema that --output-schema names. Raises UsageError, DefinitionError with the place of its fault."""
    if arguments.output_schema is None:
        return None
    from runtime.output.place import load_schema

    return load_schema(Path(arguments.output_schema))


def flag_limits(arguments: argparse.Namespace) -> Limits:
    """The limits the flags set. Raises UsageError for what is no number."""
    given: dict[str, str] = {
        name: value for name in LIMIT_NAMES if (value := getattr(arguments, name, None)) is not None
    }
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


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _who_and_what(words: list[str], workspace: Path, earlier: Earlier | None) -> tuple[str, str]:
    match words:
        case [task]:
            agent = earlier.options.agent if earlier is not None else "coordinator"
            if task.isascii() and task.replace("-", "").isalnum():
                cast = _cast(workspace)
                if task in cast.members:
                    raise UsageError(f'give {task} a task: elenco run {task} "…"')
                if task in cast.misnamed:
                    raise UsageError(f"{cast.unknown(task)}; give it a task")
        case [agent, task]:
            pass
        case [] if earlier is not None:
            run = earlier.folder.id
            raise UsageError(
                f'a follow-up needs a task of its own: elenco run --continue {run}{in_state()} "And then?"   '
                f"to go on with the old one: elenco resume {run}{in_state()}"
            )
        case []:
            raise UsageError('give a task: elenco run "What does this project do?"')
        case _ if words[0] in _cast(workspace).members:
            rest = one_line(" ".join(words[1:]), 60)
            raise UsageError(f'put the task in quotes: elenco run {words[0]} "{rest}"')
        case _:
            raise UsageError(f'put the task in quotes: elenco run "{one_line(" ".join(words), 60)}"')
    if task == "-":
        task = _from_stdin()
    if not task.strip():
        raise UsageError('the task is empty: elenco run "What does this project do?"')
    return agent, task


def _cast(workspace: Path) -> Cast:
    from runtime.cast import find

    return find(workspace)


def _from_stdin() -> str:
    if sys.stdin.isatty():
        print("reading the task; Ctrl-D ends it", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise UsageError("the task on standard input is no UTF-8 text") from None
