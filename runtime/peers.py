"""Messages between agents that are at work side by side: sent by a tool, read before the receiver's next step.

Nobody waits for an answer, so no two agents can wait for each other. A message costs its sender a step and enters the
receiver's history as a report of a child does; it is no human's word, and takes nothing back that a loop guard counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import did_you_mean
from .events import MessageReceived, MessageSent
from .messages import UserMessage, size_of
from .record import message_of
from .tools import Output, Tool, ToolContext, ToolError
from .tools.delegate import tool_name
from .tools.results import fitting

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import RunState

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
        subject=sender.family.subject(receiver, name),
    )


def _send(sender: Agent, name: str, text: str, to: str, call_id: str) -> str:
    """Put the words on record and into the receivers' hands; who got them. Raises ToolError.

    A call that is made again after a crash sends nothing twice.
    """
    if not text.strip():
        raise ToolError("the text is empty: nothing was sent")
    run = sender.run
    at_work = {
        agent.path: agent
        for agent in run.live.values()
        if agent.definition.name == name and agent is not sender and not agent.standing.too_late
    }
    if not at_work:
        raise ToolError(f"no {name} is at work beside you: nothing was sent")
    chosen = [agent for path, agent in at_work.items() if to in ("", path, _short(path))]
    if not chosen:
        short = [_short(path) for path in at_work]
        raise ToolError(f"no '{to}' is at work{did_you_mean(to, short)}; there is: {', '.join(short)}")
    for agent in chosen:
        id = f"m{sender.number}-{sender.turn}-{call_id}-{agent.number}"
        if id not in run.told:
            run.told.add(id)
            message = MessageSent(actor=sender.path, id=id, to=agent.path, text=text, kind="message")
            run.append(message)
            agent.unread = (*agent.unread, message)
            agent.background.stir()
    return f"delivered to {', '.join(_short(agent.path) for agent in chosen)}"


def take_messages(agent: Agent, room: int) -> list[UserMessage]:
    """What peers have sent, as messages for the history, recorded as received; about `room` bytes all together."""
    waiting, agent.unread = agent.unread, ()
    found: list[UserMessage] = []
    for place, message in enumerate(waiting):
        agent.trail.open(message.id)
        text = fitting(
            message.text,
            room // (len(waiting) - place),
            lambda whole, id=message.id: agent.run.results.keep(id, whole),  # type: ignore[misc]
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
    return path.rpartition("/")[2]
