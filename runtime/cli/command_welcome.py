"""`elenco` alone: what it is, what would answer, what to type first. Nothing slow is loaded, nothing is made."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from runtime import shipped
from runtime.errors import ElencoError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State, state_path
from runtime.known import KNOWN, OFFLINE, ModelFlags, default_model

from .advice import ago, next_command
from .parser import COMMANDS
from .version import VERSION
from .visible import one_line

WIDE = 48
WORKSPACE_PLACES = ("agents", ".agents/agents")
TRY = 'elenco run "What does this project do?"'


def run(arguments: argparse.Namespace) -> int:
    """Print the first screen."""
    model, why = _model()
    print(f"Elenco {VERSION.rpartition('.')[0]}: a cast of agents whose runs always end.")
    print(f"  model    {model}   {why}")
    print(f"  cast     {_cast()}")
    note = "no key needed" if model == OFFLINE else ""
    print(f"Try now    {TRY:<{WIDE}}{note}".rstrip())
    if more := [f"elenco {name}" for name in ("chat", "dash") if name in COMMANDS]:
        print(f"           {'        '.join(more)}")
    if model == OFFLINE:
        print(
            "Connect    export ANTHROPIC_API_KEY=…   (or OPENAI_…, OPENROUTER_…), or --base-url URL --wire openai-chat"
        )
    last = _last_run(arguments.state)
    print(f"More       elenco --help      elenco doctor{'' if last else '      last run: none'}")
    if last:
        print(f"last run   {last}")
    return 0


def _model() -> tuple[str, str]:
    """The model a run would use, and why that one."""
    try:
        named = _from_settings()
    except ElencoError:
        return "unknown", "the settings have a fault: elenco check"
    model = default_model(ModelFlags(), named, os.environ)
    if named:
        return one_line(named, 60), "from the settings"
    if model == OFFLINE:
        return model, "no key found: quotes your files, invents nothing"
    return model, f"key in {KNOWN[model.partition('/')[0]].key_env}"


def _from_settings() -> str | None:
    files = [Path("elenco.yaml")]
    if config := _user_folder():
        files.append(config / "config.yaml")
    if not any(file.is_file() for file in files):
        return None
    from runtime.outline import settings_of

    here, own = settings_of(Path())
    return here.model or own.model


def _user_folder() -> Path | None:
    if base := os.environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "elenco"
    return Path(home) / ".config" / "elenco" if (home := os.environ.get("HOME")) else None


def _cast() -> str:
    home = shipped.folder("agents")
    own = [name for place in WORKSPACE_PLACES if Path(place).resolve() != home for name in _names(Path(place))]
    team = [name for name in _names(home) if name not in own]
    if "coordinator" in team:
        team.remove("coordinator")
        text = f"coordinator > {', '.join(team)}"
    else:
        text = ", ".join(team)
    if own:
        mine = f"{', '.join(own[:6])}{f' and {len(own) - 6} more' if len(own) > 6 else ''} (here)"
        text = f"{mine}, {text}" if text else mine
    return f"{one_line(text, 200):<{WIDE}}(shipped; elenco agents)" if not own else f"{text}   (elenco agents)"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name.removesuffix(".md") for name in os.listdir(folder) if name.endswith(".md"))
    except OSError:
        return []


def _last_run(flag: str | None) -> str:
    path = state_path(flag, os.environ, os.path.expanduser("~"))
    if path is None or not (path / "index.db").exists():
        return ""
    from runtime.journal import index
    from runtime.journal.lock import is_owned
    from runtime.journal.looking import flaw

    state = State(path)
    try:
        row = max(index.rows(state).values(), key=lambda row: row.started, default=None)
        if row is None:
            return ""
        owned = row.ended is None and is_owned(state.run(row.id).lock)
        if row.ended is None and not owned and not _began(state.run(row.id)):
            return f"{row.id} never began   elenco delete {row.id}{in_state()}"
    except (ElencoError, OSError):
        return ""
    if row.ended is not None and (found := flaw(state.run(row.id).journal)):
        return f"{row.id} is damaged: {found}   elenco runs --check{in_state()}"
    status = row.status or ("running" if owned else "interrupted" if row.pid else "waiting")
    said = f"{status}: {row.reason}" if row.reason else status
    when = ago(row.ended or row.started, time.time())
    return f"{row.id} {said}, {when}   {next_command(row.id, status, row.reason)}"


def _began(folder: RunFolder) -> bool:
    from runtime.journal.database import Database

    if not folder.journal.exists():
        return False
    database = Database.for_reader(folder.journal)
    try:
        return database.last_seq() > 0
    finally:
        database.close()
