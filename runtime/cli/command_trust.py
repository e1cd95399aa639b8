"""`elenco trust`: what this workspace would switch on, and a person's word that it may."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from runtime.errors import ElencoError, UsageError
from runtime.policy.trust import Survey, counts
from runtime.trust import agree, agreed, all_agreed, revoke, survey
from runtime.workplace import check_workspace

from .faults import count_of
from .visible import one_line, visible


def run(arguments: argparse.Namespace) -> int:
    """Show, then agree; on a terminal only after a yes. Raises UsageError, DefinitionError."""
    _refuse_together(arguments)
    if arguments.list:
        return _list(arguments.json)
    workspace = Path(arguments.folder or arguments.workspace or ".")
    check_workspace(workspace)
    if arguments.revoke:
        said = "is trusted no more" if revoke(workspace) else "was not trusted"
        print(f"{one_line(str(workspace.resolve()), 200)} {said}")
        return 0
    found = survey(workspace)
    trusted = counts(found, agreed(workspace))
    if arguments.json:
        _print_json(found, trusted)
    else:
        _print(found, trusted)
    if trusted or arguments.show or (arguments.json and not arguments.yes):
        return 0
    if not arguments.yes and sys.stdin.isatty() and not _agrees():
        print("nothing was switched on", file=sys.stderr)
        return 1
    agree(found)
    said = f"trusted; a change to {_names(found)} asks again   elenco trust --revoke takes it back"
    print(said, file=sys.stderr)
    return 0


def _refuse_together(arguments: argparse.Namespace) -> None:
    given = [f"--{name}" for name in ("list", "show", "revoke", "yes") if getattr(arguments, name)]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} do not go together")
    if arguments.folder and arguments.workspace:
        raise UsageError(f"two folders: {one_line(arguments.folder, 80)} and --workspace; give one of them")


def _print(found: Survey, trusted: bool) -> None:
    where = one_line(found.workspace, 200)
    if not found.switches:
        print(f"{where} switches on nothing that needs trust")
        return
    was = agreed(Path(found.workspace))
    changed = "" if trusted or was is None else "; it has changed since you trusted it"
    print(f"{where} {'is trusted and switches on' if trusted else 'would switch on'}{changed}")
    width = max(len(each.kind) for each in found.switches)
    for each in found.switches:
        # Never cut: who agrees has to have seen all of it.
        text = visible(each.text).replace("\n", "\\n").replace("\t", "\\t")
        print(f"  {each.kind:<{width}}  {text}   {one_line(each.file, 200)}")


def _names(found: Survey) -> str:
    names = [one_line(name, 60) for name in found.files]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} or {count_of(len(names) - 3, 'more file')}"


def _agrees() -> bool:
    print("Let it? y or n", file=sys.stderr)
    sys.stderr.write("> ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_json(found: Survey, trusted: bool) -> None:
    print(json.dumps({"workspace": found.workspace, "trusted": trusted, "files": dict(found.files)}))
    for each in found.switches:
        print(json.dumps({"kind": each.kind, "text": each.text, "file": each.file}))


def _list(as_json: bool) -> int:
    agreed = list(all_agreed())
    if not agreed and not as_json:
        print("no workspace is trusted: elenco trust shows what this one would switch on", file=sys.stderr)
    for each in agreed:
        try:
            found = survey(Path(each.workspace)) if Path(each.workspace).is_dir() else None
            state = "gone" if found is None else "trusted" if counts(found, each) else "changed since: asks again"
        except (ElencoError, OSError):
            state = "has a fault: elenco check"
        if as_json:
            print(json.dumps({"workspace": each.workspace, "state": state, "at": each.at}))
        else:
            print(f"{one_line(each.workspace, 200)}   {state}   {one_line(each.at, 40)}")
    return 0
