"""`elenco memory`: what is remembered from run to run, to be looked at, added to, put right and forgotten."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from runtime.errors import UsageError, did_you_mean
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import open_state
from runtime.memory.fact import MOST_FACTS, Fact, objection, tidy
from runtime.memory.facts import only
from runtime.memory.store import FactStore, NoFact, memory_file
from runtime.secrecy import Veil, secrets_of
from runtime.workplace import check_workspace

from .advice import ago
from .table import columns
from .visible import one_line, visible

HEAD = ("ID", "ABOUT", "NOTED BY", "WHEN", "FACT")
Action: TypeAlias = Callable[[argparse.Namespace, FactStore, list[str]], int]


def run(arguments: argparse.Namespace) -> int:
    """Do what the first word says, `list` without one. Raises UsageError, NoFact, MemoryUnusable, JournalError."""
    verb, *words = arguments.words or ["list"]
    action = ACTIONS.get(verb)
    if action is None:
        near = did_you_mean(verb, ACTIONS) or f'; to search: elenco memory list "{one_line(verb, 40)}"'
        raise UsageError(f"unknown word '{one_line(verb, 60)}'{near}  (elenco memory --help)")
    _refuse_flags(arguments, verb)
    state = open_state(arguments.state, to_look=verb in ("list", "show"))
    return action(arguments, FactStore(memory_file(state.path)), words)


def _refuse_flags(arguments: argparse.Namespace, verb: str) -> None:
    """A flag that would be ignored is a slip, and with `forget` a costly one."""
    for flag, verbs in _FLAGS.items():
        if getattr(arguments, flag) not in (None, False) and verb not in verbs:
            raise UsageError(f"--{flag} goes with {' and '.join(verbs)}, not with {verb}  (elenco memory --help)")
    if arguments.user and arguments.all:
        raise UsageError("either --user or --all, not both")
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError("--limit is a number from 1")


def _list(arguments: argparse.Namespace, store: FactStore, words: list[str]) -> int:
    if len(words) > 1:
        raise UsageError(f'put the words in quotes: elenco memory list "{one_line(" ".join(words), 60)}"')
    here, within = _within(arguments)
    limit = arguments.limit or MOST_FACTS * 2
    if words and words[0].strip():
        found = store.search(words[0], within=within, limit=limit)
    else:
        found = store.newest(within=within, limit=limit)
    if arguments.json:
        for fact in found:
            print(json.dumps(_data(fact)))
        return 0
    if not found:
        what = "nothing in memory speaks of that" if words else "nothing is remembered yet"
        print(f'{what}   next: elenco memory list --all   elenco memory add "…"', file=sys.stderr)
        return 0
    now = time.time()
    rows = [
        (str(fact.id), _about(fact, here), _by(fact), ago(fact.at, now), one_line(fact.text, 400)) for fact in found
    ]
    print(columns([HEAD, *rows], last_width=90))
    print("next: elenco memory show ID · edit ID · forget ID", file=sys.stderr)
    return 0


def _show(arguments: argparse.Namespace, store: FactStore, words: list[str]) -> int:
    if not words:
        raise UsageError("give the id: elenco memory show ID  (elenco memory list)")
    for place, fact in enumerate([_named(store, word) for word in words]):
        if arguments.json:
            print(json.dumps(_data(fact)))
            continue
        print("\n" * bool(place) + f"fact {fact.id}   about {visible(fact.workspace) or 'you, in every workspace'}")
        who = f"{visible(fact.actor)} in run {fact.run}   elenco show {fact.run}{in_state()}" if fact.run else "you"
        print(f"noted {_moment(fact.at)} by {who}")
        if fact.edited is not None:
            print(f"edited {_moment(fact.edited)} by you")
        print(visible(fact.text))
    return 0


def _add(arguments: argparse.Namespace, store: FactStore, words: list[str]) -> int:
    text = _checked(_text_of(words, 'elenco memory add "TEXT"'))
    here, _ = _within(arguments)
    kept = store.remember(text, workspace="" if arguments.user else here, at=time.time())
    assert kept.fact is not None
    known = " already" if kept.outcome == "known" else ""
    print(f"kept{known} as fact {kept.fact.id}, about {_about(kept.fact, here)}", file=sys.stderr)
    return 0


def _edit(arguments: argparse.Namespace, store: FactStore, words: list[str]) -> int:
    if not words:
        raise UsageError('give the id: elenco memory edit ID ["TEXT"]  (elenco memory list)')
    fact = _named(store, words[0])
    text = _text_of(words[1:], f'elenco memory edit {fact.id} "TEXT"') if words[1:] else _edited(fact)
    if not tidy(text):
        raise UsageError(f"no text was left, so nothing was changed; to forget it: elenco memory forget {fact.id}")
    text = _checked(text)
    if text == fact.text:
        print(f"fact {fact.id} says that already; nothing was changed", file=sys.stderr)
        return 0
    store.edit(fact, text, time.time())
    print(f"fact {fact.id} is changed", file=sys.stderr)
    return 0


def _forget(arguments: argparse.Namespace, store: FactStore, words: list[str]) -> int:
    if arguments.run is not None:
        if words:
            raise UsageError("either ids or --run RUN, not both")
        return _forget_run(store, arguments.run, sure=arguments.yes)
    if not words:
        raise UsageError('name what to forget: elenco memory forget ID… | "WORDS" | --run RUN')
    if all(_id(word) is not None for word in words):
        facts = list({fact.id: fact for fact in (_named(store, word) for word in words)}.values())
    elif len(words) > 1:
        raise UsageError(
            "give ids, or words in quotes that one fact alone holds: "
            f'elenco memory forget "{one_line(" ".join(words), 60)}"'
        )
    else:
        _, within = _within(arguments)
        facts = [only(store.search(words[0], within=within, how="all"), words[0])]
    gone = store.forget(facts, time.time())
    for fact in gone:
        print(f"forgotten: {fact.id}  {one_line(fact.text, 200)}")
    if len(gone) < len(facts):
        raise NoFact(f"{len(facts) - len(gone)} of them changed meanwhile and stayed  (elenco memory list)")
    return 0


def _forget_run(store: FactStore, run: str, *, sure: bool) -> int:
    facts = store.of_run(run)
    if not facts:
        raise NoFact(
            f"run '{one_line(run, 60)}' has noted nothing that is still remembered  (elenco memory list --all)"
        )
    gone = store.forget(facts, time.time()) if sure else facts
    for fact in gone:
        print(f"{'forgotten' if sure else 'would be forgotten'}: {fact.id}  {one_line(fact.text, 200)}")
    if not sure:
        print(f"nothing was forgotten yet: elenco memory forget --run {run} --yes", file=sys.stderr)
    return 0


ACTIONS: dict[str, Action] = {"list": _list, "show": _show, "add": _add, "edit": _edit, "forget": _forget}
_FLAGS = {
    "user": ("list", "add", "forget"),
    "all": ("list", "forget"),
    "workspace": ("list", "add", "forget"),
    "limit": ("list",),
    "json": ("list", "show"),
    "run": ("forget",),
    "yes": ("forget",),
}


def _within(arguments: argparse.Namespace) -> tuple[str, tuple[str, ...] | None]:
    """The workspace by its real path, and whose facts are meant: this one's and the user's, his alone, all."""
    folder = Path(arguments.workspace or ".")
    check_workspace(folder)
    here = os.path.realpath(folder)
    return here, None if arguments.all else ("",) if arguments.user else (here, "")


def _id(word: str) -> int | None:
    digits = word.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _named(store: FactStore, word: str) -> Fact:
    id = _id(word)
    if id is None:
        raise UsageError(f"'{one_line(word, 60)}' is no id; ids are numbers  (elenco memory list)")
    fact = store.get(id)
    if fact is None:
        raise NoFact(f"there is no fact {id}  (elenco memory list --all)")
    return fact


def _text_of(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise UsageError(f"give the text in quotes: {usage}")
    return sys.stdin.read() if words[0] == "-" else words[0]


def _checked(text: str) -> str:
    text = tidy(text)
    if why := objection(text, Veil(secrets_of(os.environ)).text):
        raise UsageError(f"nothing was changed: {why}")
    return text


def _edited(fact: Fact) -> str:
    """The text as the user's editor leaves it."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    give = f'or give the text: elenco memory edit {fact.id} "TEXT"'
    if not command or not command.strip():
        raise UsageError(f"no editor is set: export EDITOR=…, {give}")
    with tempfile.TemporaryDirectory(prefix="elenco-") as folder:  # private to its owner
        file = Path(folder) / f"fact-{fact.id}.txt"
        file.write_text(fact.text + "\n", encoding="utf-8")
        try:
            code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"the editor '{one_line(command, 60)}' cannot be started: {why}; {give}") from error
        if code:
            raise UsageError(f"the editor ended with {code}, so nothing was changed; {give}")
        try:
            return file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def _data(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "text": fact.text,
        "scope": fact.scope,
        "workspace": fact.workspace or None,
        "run": fact.run or None,
        "actor": fact.actor or None,
        "at": _moment(fact.at),
        "edited": None if fact.edited is None else _moment(fact.edited),
    }


def _about(fact: Fact, here: str) -> str:
    if not fact.workspace:
        return "you"
    return "this workspace" if fact.workspace == here else one_line(fact.workspace, 60)


def _by(fact: Fact) -> str:
    return f"run {fact.run}" if fact.run else "you"


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
