"""What we answer a server that asks back, within a call it works on, and what we hear from it unasked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from runtime.messages import AssistantMessage, Message, Text, UserMessage
from runtime.tools import ToolError

from .content import message_blocks
from .forms import DECLINE, Misfit, fields_of, filled, question

if TYPE_CHECKING:
    from mcp import types
    from mcp.client.session import ClientRequestContext, IncomingMessage

    from .behind import Behind
    from .link import Link

T = TypeVar("T")

MOST_TRIES = 3
SHOWN = 600
"""Characters of a request to the model that a person is shown."""
REFUSED = -1
"""The code for what a person, or a setting, has refused."""


class Answers:
    """The callbacks of one server's session. `changed` hears that its tools are others now.

    What is asked belongs to the call under way; of several, to the newest. With none, or with nobody and no model
    behind the call, it is refused.
    """

    def __init__(self, link: Link, folder: str, changed: Callable[[], None]) -> None:
        self._link = link
        self._folder = folder
        self._changed = changed

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """The one folder there is: the workspace."""
        from mcp import types

        del context
        root = types.Root.model_validate({"uri": Path(self._folder).as_uri(), "name": "workspace"})
        return types.ListRootsResult(roots=[root])

    async def hear(self, message: IncomingMessage) -> None:
        """A notification, or what could not be read as one."""
        from mcp import types

        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """A human's answer to a form or to a request to open an address; `cancel` where there is none."""
        from mcp import types

        del context
        try:
            if isinstance(params, types.ElicitRequestURLParams):
                return await self._within(lambda peer: self._visit(peer, params.message, params.url))
            schema: Any = params.requested_schema
            return await self._within(lambda peer: self._fill_in(peer, params.message, dict(schema)))
        except ToolError:
            return types.ElicitResult(action="cancel")

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """A reply of the model of the agent whose call it is, within that agent's budget."""
        from mcp import types

        del context
        try:
            return await self._within(lambda peer: self._reply(peer, params))
        except ToolError as refused:
            return types.ErrorData(code=REFUSED, message=str(refused))

    async def _within(self, work: Callable[[Behind], Awaitable[T]]) -> T:
        """Do the work in the task of the call under way, so that it ends with the call. Raises ToolError."""
        calls = self._link.origin()
        if not calls:
            raise ToolError("no call is under way")
        calling = calls[-1]
        peer = calling.peer
        if peer is None:
            raise ToolError("there is nobody to ask")
        return await calling.within(lambda: work(peer))

    async def _fill_in(self, peer: Behind, message: str, schema: dict[str, Any]) -> types.ElicitResult:
        from mcp import types

        fields = fields_of(schema)
        misfit = ""
        for _ in range(MOST_TRIES):
            text, options = question(self._link.name, message, fields, misfit)
            try:
                content = filled(fields, await peer.ask(text, options))
            except Misfit as problem:
                misfit = f"That does not fit: {problem}."
                continue
            if content is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content=dict(content))
        return types.ElicitResult(action="cancel")

    async def _visit(self, peer: Behind, message: str, url: str) -> types.ElicitResult:
        from mcp import types

        text = f"The MCP server {self._link.name} asks you to open {url}\n{message}"
        answer = await peer.ask(text, ("done", DECLINE))
        return types.ElicitResult(action="decline" if answer.casefold() == DECLINE else "accept")

    async def _reply(self, peer: Behind, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        from mcp import types

        from runtime.sampling import SampleRequest

        messages = tuple(_messages(params.messages))
        if self._link.entry.sampling == "ask":
            shown = "\n".join(message.text for message in messages if isinstance(message, UserMessage))[:SHOWN]
            name = self._link.name
            text = f"The MCP server {name} wants an answer of your model, on your budget, to:\n{shown}"
            if await peer.ask(text, ("yes", "no")) != "yes":
                raise ToolError("the user refused")
        request = SampleRequest(messages, params.system_prompt or "", params.max_tokens, params.temperature)
        sample = await peer.sample(request)
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=sample.text),
            model=sample.model,
            stop_reason="maxTokens" if sample.cut else "endTurn",
        )


def _messages(given: Iterable[types.SamplingMessage]) -> Iterable[Message]:
    for message in given:
        content = message.content
        blocks = content if isinstance(content, list) else [content]
        text, images = message_blocks([block.model_dump(mode="json", by_alias=True) for block in blocks])
        if message.role == "user":
            yield UserMessage(text, images=images)
        else:
            yield AssistantMessage((Text(text),))
