"""`elenco approve`, `deny`, `answer`, `say`, `cancel`, `hold`, `continue`, `compact`: to a live run, or kept for it."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from typing import TYPE_CHECKING, Any, cast

from runtime.errors import UsageError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, open_state
from runtime.messages import JsonObject

from .streams import as_text
from .which import find, refuse_unbegun

if TYPE_CHECKING:
    from runtime.watch.commands import Command


def run(arguments: argparse.Namespace) -> int:
    """Deliver one command. Raises ElencoError where it makes no sense or comes too late."""
    folder = find(open_state(arguments.state), arguments.run)
    refuse_unbegun(folder)
    if arguments.command in ("approve", "deny", "answer"):
        from .undecided import check_decision

        check_decision(folder, arguments.command, arguments.id, getattr(arguments, "text", ""))
    if (edited := _edited(getattr(arguments, "arguments", None))) is not None:
        from .undecided import check_edited

        check_edited(folder, arguments.id, edited)
    import trio

    from runtime.watch.unattended import deliver

    answer = trio.run(deliver, folder, _command(arguments), lambda: secrets.token_hex(3))
    recorded = "recorded" in answer
    print(_done(arguments, folder.id, recorded=recorded), file=sys.stderr)
    if recorded and arguments.command == "answer" and _of_another_party(folder, arguments.id):
        print(
            f"it was asked within a call that has broken off: the answer counts if that call is made again, which "
            f"elenco resume {folder.id}{in_state()} --confirm-unknown lets you decide",
            file=sys.stderr,
        )
    return 0


def _of_another_party(folder: RunFolder, id: str) -> bool:
    """Whether a question came from whoever a call speaks to, such as an MCP server, and not from the agent."""
    from runtime.events import QuestionAsked
    from runtime.journal.read import RunReader

    with RunReader(folder) as reader:
        asked = [record.event for record in reader.records_of(("question.asked",), 1, reader.last_seq())]
    return any(each.id == id and each.within != each.call_id for each in asked if isinstance(each, QuestionAsked))


def _command(arguments: argparse.Namespace) -> Command:
    from runtime.watch.commands import Answer, Approve, Cancel, Compact, Continue, Deny, Hold, Say

    match arguments.command:
        case "approve":
            edited = _edited(arguments.arguments)
            return Approve(id=arguments.id, scope=arguments.scope, arguments=edited, by="you")
        case "deny":
            return Deny(id=arguments.id, why=as_text(arguments.why or ""), by="you")
        case "answer":
            return Answer(id=arguments.id, text=as_text(arguments.text), by="you")
        case "say":
            return Say(text=as_text(arguments.text), actor=arguments.actor, interrupt=arguments.interrupt, by="you")
        case "hold":
            return Hold(actor=arguments.actor, by="you")
        case "compact":
            return Compact(actor=arguments.actor, by="you")
        case "continue":
            return Continue(actor=arguments.actor, by="you")
        case _:
            return Cancel(actor=arguments.actor, by="you")


def _edited(text: str | None) -> JsonObject | None:
    if text is None:
        return None
    try:
        found: Any = json.loads(as_text(text))
    except ValueError as error:
        raise UsageError(f"--arguments is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError('--arguments must be a JSON object, such as \'{"path": "notes.md"}\'')
    return cast("JsonObject", found)


def _done(arguments: argparse.Namespace, run: str, *, recorded: bool) -> str:
    """What was done, and for a run that no process works on, how it goes on."""
    whom = getattr(arguments, "actor", None) or f"run {run}"
    later = f"   then: elenco resume {run}{in_state()}" if recorded else ""
    match arguments.command:
        case "approve" | "deny":
            word = "approved" if arguments.command == "approve" else "denied"
            return f"{word} {arguments.id}{later}"
        case "answer":
            return f"answered {arguments.id}{later}"
        case "say":
            return f"told {arguments.actor or 'the root agent'}; it reads it at its next step{later}"
        case "hold":
            back = f" --actor {arguments.actor}" if arguments.actor else ""
            return f"{whom} stops before its next step   go on: elenco continue {run}{in_state()}{back}{later}"
        case "continue":
            return f"{whom} goes on{later}"
        case "compact":
            return f"{arguments.actor or 'the root agent'} compacts before its next request{later}"
        case _:
            return f"cancelled: {whom}" + (f"   its report: elenco resume {run}{in_state()}" if recorded else "")
