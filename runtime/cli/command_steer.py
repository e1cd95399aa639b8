"""`elenco approve`, `deny`, `say`, `cancel`, `hold`, `continue`: to a live run, or recorded for its next process."""

from __future__ import annotations

import argparse
import secrets
import sys

import trio

from runtime.journal.folder import find_run, open_state
from runtime.watch.commands import Approve, Cancel, Command, Continue, Deny, Hold, Say
from runtime.watch.unattended import deliver


def run(arguments: argparse.Namespace) -> int:
    """Deliver one command. Raises ElencoError where it makes no sense or comes too late."""
    folder = find_run(open_state(arguments.state), arguments.run)
    command = _command(arguments)
    trio.run(deliver, folder, command, lambda: secrets.token_hex(3))
    print(_done(arguments, command), file=sys.stderr)
    return 0


def _command(arguments: argparse.Namespace) -> Command:
    match arguments.command:
        case "approve":
            return Approve(id=arguments.id, by="you")
        case "deny":
            return Deny(id=arguments.id, why=arguments.why or "", by="you")
        case "say":
            return Say(text=arguments.text, actor=arguments.actor, interrupt=arguments.interrupt, by="you")
        case "hold":
            return Hold(actor=arguments.actor, by="you")
        case "continue":
            return Continue(actor=arguments.actor, by="you")
        case _:
            return Cancel(actor=arguments.actor, by="you")


def _done(arguments: argparse.Namespace, command: Command) -> str:
    match command:
        case Approve() | Deny():
            word = "approved" if isinstance(command, Approve) else "denied"
            return f"{word} {command.id}   a waiting run goes on: elenco resume {arguments.run}"
        case Say():
            return f"told {command.actor or 'the root agent'}; it reads it at its next step"
        case _:
            return f"{arguments.command}: {getattr(command, 'actor', None) or 'the whole run'}"
