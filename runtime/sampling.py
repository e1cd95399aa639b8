"""Replies of an agent's own model for somebody else within a call: for an MCP server that asks. Paid by its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .events import BudgetRefused, BudgetReserved
from .limits.budget import Ask, Refused
from .limits.estimate import byte_length
from .messages import Message, Text, Usage, size_of
from .model import Delta, ModelRequest, ModelSettings, ProviderError, Reply
from .questions import ask_human
from .tools import ToolError
from .turn import BYTES_PER_TOKEN, Shown, settle, used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .agent import Agent

MOST_OUTPUT = 4096


@attrs.frozen
class SampleRequest:
    """What is to be answered; the output is bounded by `max_tokens` and by the agent's own cap."""

    messages: tuple[Message, ...]
    system: str = ""
    max_tokens: int = MOST_OUTPUT
    temperature: float | None = None


@attrs.frozen
class Sample:
    """An answer. `cut` says that it reached its bound."""

    text: str
    model: str
    cut: bool = False


@attrs.define(eq=False)
class Peer:
    """What a call may ask of its actor on another's behalf: its human, as often as needed, and its model."""

    agent: Agent
    call_id: str
    _asked: int = 0

    async def ask(self, text: str, options: Sequence[str] = ()) -> str:
        """A human's answer. Raises ToolError where nobody is there; the run is not suspended.

        A call that is made again after a crash and asks the same gets the answer given meanwhile. A cancelled call
        leaves no question open.
        """
        run = self.agent.run
        self._asked += 1
        part = f"{self.call_id}.{self._asked}"
        earlier = run.questions.of_call(self.agent.path, part)
        if any(each.asked.text != run.veil.text(text) for each in earlier):
            run.questions.withdraw(self.agent.path, part)
            earlier = []
        answered = any(each.is_answered() for each in earlier)
        if not answered and run.settings.headless and run.settings.humans.answer is None:
            raise ToolError("there is nobody to ask")
        try:
            return await ask_human(self.agent, part, text, options)
        finally:
            run.questions.withdraw(self.agent.path, part)

    async def sample(self, request: SampleRequest) -> Sample:
        """One reply of the actor's model, without tools, within its budget; it takes no step.

        Raises ToolError: the budget has no room, or the provider fails. A cancelled call is settled by what was
        streamed.
        """
        agent, run = self.agent, self.agent.run
        wanted = max(1, min(request.max_tokens, agent.model.output_cap(agent.definition.max_output_tokens)))
        asked = ModelRequest(
            model=agent.model.name,
            system=(request.system,) if request.system else (),
            messages=request.messages,
            max_output_tokens=wanted,
            settings=ModelSettings(request.temperature),
            agent=agent.definition.name,
            actor=f"{agent.path}#{self.call_id}",
            turn=agent.turn,
        )
        size = sum(map(size_of, request.messages)) + byte_length(request.system)
        tokens = agent.model.provider.count(asked) or size // BYTES_PER_TOKEN + 1
        ask = Ask(tokens, wanted, agent.model.price_for(tokens), purpose="summary")
        grant = await run.gate.reserve(agent.path, ask)
        if isinstance(grant, Refused):
            run.append(BudgetRefused(actor=agent.path, limit=grant.limit, scope=grant.scope, message=grant.message))
            raise ToolError(f"the budget has no room for it: {grant.message}")
        run.append(
            BudgetReserved(
                actor=agent.path,
                id=grant.id,
                input=grant.input_tokens,
                output_cap=grant.output_cap,
                cost_usd=grant.cost_usd,
                purpose="summary",
            )
        )
        shown = Shown()

        def emit(deltas: Sequence[Delta]) -> None:
            shown.size += sum(len(delta.text) for delta in deltas)

        sent = False
        partial: Reply | None = None
        try:
            await run.journal.barrier()
            sent = True
            partial = reply = await agent.model.provider.complete(
                attrs.evolve(asked, max_output_tokens=grant.output_cap), emit
            )
        except ProviderError as error:
            partial = error.partial
            raise ToolError(f"the model gave no answer: {error.message}") from error
        finally:
            usage = used(grant, shown, partial, whole=True) if sent else Usage()
            settle(agent, agent.model, grant, usage, partial.cost_usd if partial is not None else None, replied=False)
            agent.model.provider.forget(asked.actor)
        text = "".join(part.text for part in reply.parts if isinstance(part, Text))
        return Sample(text, agent.model.full_name, reply.finish == "length")
