"""What of a run waits for a decision, told to somebody who did not say which one, or what to answer."""

from __future__ import annotations

from runtime.errors import UsageError
from runtime.events import ApprovalRequested, QuestionAsked
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State
from runtime.journal.read import info, load
from runtime.messages import JsonObject

from .card import brief
from .visible import one_line


def check_decision(folder: RunFolder, command: str, id: str | None, text: str | None) -> None:
    """Raises UsageError that lists what waits, where `approve`, `deny` or `answer` names none or has no text."""
    if id is not None and text is not None:
        return
    of = QuestionAsked if command == "answer" else ApprovalRequested
    waiting = undecided(folder)
    found = [each for each in waiting if isinstance(each, of)]
    if not found:
        kind = "question" if of is QuestionAsked else "approval"
        other = "elenco approve" if of is QuestionAsked else "elenco answer"
        ids = ", ".join(each.id for each in waiting)
        rest = f"; it waits for {ids}: {other} {folder.id}{in_state()}" if waiting else ""
        raise UsageError(f"no {kind} is waited for in run {folder.id}{rest}")
    known = id if any(each.id == id for each in found) else found[0].id
    example = (
        f'elenco answer {folder.id} {known}{in_state()} "…"'
        if command == "answer"
        else f"elenco {command} {folder.id} {known}{in_state()}"
    )
    what = "the answer" if known == id else "the id of what is to be decided"
    raise UsageError("\n".join([f"give {what}: {example}", *(f"  {_told(each)}" for each in found)]))


def check_edited(folder: RunFolder, id: str, arguments: JsonObject) -> None:
    """Raises UsageError where a waiting call's tool could not be run with these arguments. Blocks."""
    from runtime.tools import Arguments

    state = load(folder, histories=False)
    request = state.requests.get(id)
    actor = state.actors.get(request.actor) if request is not None else None
    if request is None or actor is None:
        return
    shown = next((each for each in actor.tools if each["name"] == request.name), None)
    if shown is None:
        return
    schema = Arguments(shown["parameters"])
    if isinstance(schema.fit(request.arguments), list):
        return  # The tool goes by other names than its model was shown.
    if isinstance(faults := schema.fit(arguments), list):
        raise UsageError("\n".join([f"--arguments do not fit {request.name}:", *(f"  {fault}" for fault in faults)]))


def undecided(folder: RunFolder) -> list[ApprovalRequested | QuestionAsked]:
    """The approvals and questions nobody has answered, oldest first. Blocks. Raises JournalError."""
    waits = info(State(folder.path.parent.parent), folder.id).waits_for
    state = load(folder, histories=False)
    pending: list[ApprovalRequested | QuestionAsked] = [*state.pending_approvals, *state.pending_questions]
    return [each for each in pending if each.id in waits]


def _told(each: ApprovalRequested | QuestionAsked) -> str:
    who = each.actor.rpartition("/")[2]
    if isinstance(each, QuestionAsked):
        options = "".join(f"  {number}. {one_line(option, 60)}" for number, option in enumerate(each.options, 1))
        return f"{each.id}  {who} asks: {one_line(each.text, 160)}{options}"
    return f"{each.id}  {who} wants {one_line(each.name, 70)}  {one_line(brief(each.arguments), 160)}".rstrip()
