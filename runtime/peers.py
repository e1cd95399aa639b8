"""Messages between agents that are at work side by side: sent by a tool, read before the receiver's next step.

Nobody waits for an answer, so no two agents can wait for each other. A message costs its sender a step and enters the
receiver's history as a report of a child does; it is no human's word, and takes nothing back that a loop guard counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .errors import did_you_mean
from .events import MessageReceived, MessageSent, Record
from .journal.replay import fold
from .messages import UserMessage, size_of
from .record import message_of
from .tools import Output, Tool, ToolContext, ToolError
from .tools.delegate import tool_name
from .tools.results import fitting

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import RunState
    from .run import Run

TELLS = "message_"


def message_tool(sender: Agent, receiver: str) -> Tool:
    """The tool `message_<agent>`: words for whoever works from that agent's file in this run."""

    async def run(ctx: ToolContext, text: str, to: str = "") -> Output:
        return Output(_send(sender, receiver, text, to, ctx.call_id))

    name = tool_name(TELLS, receiver)
    return Tool(
        name=name,
        description=f"Tell {receiver} something while it is at work beside you. It reads it before its next step; "
        "no answer is waited for.",
        parameters={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "All it must know: it sees nothing of this conversation."},
                "to": {"type": "string", "description": "Which one, such as writer-2; without it, all at work."},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
        run=run,
        effects="idempotent",
        progress=False,
        begins_on_record=False,
        subject=sender.family.subject(receiver, name),
    )


def _send(sender: Agent, name: str, text: str, to: str, call_id: str) -> str:
    """Put the words on record and into the receivers' hands; who got them. Raises ToolError.

    A call that is made again after a crash sends nothing twice, and reaches who was at work then and will go on.
    """
    if not text.strip():
        raise ToolError("the text is empty: nothing was sent")
    run = sender.run
    call = f"m{sender.number}-{sender.turn}-{call_id}-"
    at_work = {**_waiting(run, name), **_live(run, name)}
    at_work.pop(sender.path, None)
    chosen = {path: number for path, number in at_work.items() if to in ("", path, _short(path))}
    if to and len(chosen) > 1:
        raise ToolError(f"several are called {to}: {', '.join(chosen)}; give one of these")
    for path, number in chosen.items():
        if (id := f"{call}{number}") not in run.told:
            run.told.add(id)
            message = MessageSent(actor=sender.path, id=id, to=path, text=text, kind="message")
            run.append(message)
            _hand_over(run, message)
    reached = [*chosen, *(path for path in _told_before(run, call) if path not in chosen)]
    if reached:
        return f"delivered to {', '.join(map(_short, reached))}"
    if not at_work:
        raise ToolError(f"no {name} is at work beside you: nothing was sent")
    known = [*map(_short, at_work)]
    raise ToolError(f"no '{to}' is at work{did_you_mean(to, known)}; there is: {', '.join(known)}")


def _live(run: Run, name: str) -> dict[str, int]:
    """Who works from that agent's file and will take another step; path to number."""
    return {
        agent.path: agent.number
        for agent in run.live.values()
        if agent.definition.name == name and not agent.standing.too_late
    }


def _waiting(run: Run, name: str) -> dict[str, int]:
    """Who was at work in an earlier process and has not been taken up yet."""
    actors = run.recovered.actors if run.recovered is not None else {}
    return {
        path: actor.number
        for path, actor in actors.items()
        if actor.agent == name
        and not actor.wrapping_up
        and path not in run.taken_up
        and all(each.report is None for each in actors.values() if f"{path}/".startswith(f"{each.path}/"))
    }


def _hand_over(run: Run, message: MessageSent) -> None:
    agent = run.live.get(message.to)
    if agent is not None:
        agent.unread = (*agent.unread, message)
        agent.background.stir()
    elif run.recovered is not None:  # It finds the message when it is taken up.
        fold(run.recovered, Record(run.recovered.seq, run.recovered.at, message))


def _told_before(run: Run, call: str) -> list[str]:
    """Who has got the words of this very call, as an earlier process has it on record."""
    actors = run.recovered.actors.values() if run.recovered is not None else ()
    return [actor.path for actor in actors if f"{call}{actor.number}" in run.told]


def take_messages(agent: Agent, room: int) -> list[UserMessage]:
    """What peers have sent, as messages for the history, recorded as received; about `room` bytes all together."""
    waiting, agent.unread = agent.unread, ()
    found: list[UserMessage] = []
    for place, message in enumerate(waiting):
        agent.trail.open(message.id)
        text = fitting(
            message.text,
            room // (len(waiting) - place),
            partial(agent.run.results.keep, message.id),
        )
        received = MessageReceived(actor=agent.path, id=message.id, sender=message.actor, text=text)
        agent.run.append(received)
        found.append(message_of(received))
        room -= size_of(found[-1])
    return found


def recall_messages(agent: Agent, record: RunState) -> None:
    """Take over what peers had sent and an earlier process's agent had not read."""
    agent.unread = tuple(
        message for message in record.undelivered.values() if message.to == agent.path and message.kind == "message"
    )


def _short(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]
