"""The cast as an MCP server: a tool for each agent, each call a run of its own, over pipes or streamable HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import trio

from runtime.asgi import App, Receive, Scope, Send, serve
from runtime.definitions import Definition
from runtime.errors import ElencoError, first_of
from runtime.events import ActorFinished, ActorStarted, Event, ModelFinished, RunFinished, ToolStarted
from runtime.journal.elsewhere import in_state
from runtime.library import RunHandle, Runtime, WaitingForHuman
from runtime.limits.limits import Limits
from runtime.pipes import pipes
from runtime.report import Report

from .session import quieten
from .transports import Witness, lines

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    Context: TypeAlias = ServerRequestContext[Any, Any]

LOOPBACK = "127.0.0.1"
PATH = "/mcp"
CANCELLING = 5.0
"""Seconds a run has to end in when its call is cancelled."""
MOST_TOLD = 160
"""Characters of one step of progress."""
LAST_STEPS = 1.0
"""Seconds a client has to take the steps that are still on their way when the run has its report."""
INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "description": "What to do: everything the agent has to know, for it knows no more.",
        },
        "continue_run": {
            "type": "string",
            "description": "The id of an earlier run of this agent: it goes on with what was said there.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}
OUTPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "run": {"type": "string", "description": "The run's id, for continue_run and for `elenco show`."},
        "status": {"type": "string", "enum": ["completed", "stopped", "failed", "cancelled", "waiting"]},
        "reason": {"type": ["string", "null"]},
        "steps": {"type": "integer"},
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "cost_usd": {"type": ["number", "null"]},
    },
    "required": ["run", "status"],
}


@attrs.frozen
class Terms:
    """What every run is given: limits, allow rules, whether questions are answered with yes."""

    limits: Limits = Limits()
    allow: tuple[str, ...] = ()
    yes: bool = False


def cast_server(runtime: Runtime, agents: Mapping[str, Definition], terms: Terms) -> Server[Any]:
    """The server over some agents; a call that its client cancels cancels its run and all below it."""
    from mcp import types
    from mcp.server.lowlevel import Server

    from runtime.cli.version import VERSION

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        del context, params
        tools = [
            types.Tool(
                name=agent.name,
                description=" ".join(part for part in (agent.description, agent.when_to_use) if part),
                input_schema=dict(INPUT),
                output_schema=dict(OUTPUT),
            )
            for agent in agents.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        agent = agents.get(params.name)
        given = params.arguments or {}
        task, continues = given.get("task"), given.get("continue_run")
        if agent is None:
            return _refused(f"there is no agent {params.name!r} here; there are: {', '.join(agents)}")
        if not isinstance(task, str) or not task.strip():
            return _refused("give it a task")
        if continues is not None and not isinstance(continues, str):
            return _refused("continue_run is the id of a run, a text")
        try:
            run = runtime.run(
                agent.name, task, limits=terms.limits, allow=terms.allow, yes=terms.yes, continues=continues
            )
            return await _to_its_end(context, run)
        except ElencoError as error:
            return _refused(str(error))
        except BaseExceptionGroup as group:
            if (fault := first_of(group, ElencoError)) is None:
                raise
            return _refused(str(fault))

    return Server("elenco", version=VERSION, on_list_tools=list_tools, on_call_tool=call_tool)


async def _to_its_end(context: Context, run: AbstractAsyncContextManager[RunHandle]) -> types.CallToolResult:
    """A run to its result, each step told as progress. When the call is cancelled, so is the run, and on record so."""
    kept, telling = trio.CancelScope(shield=True), trio.CancelScope()
    over = False

    async def watch(handle: RunHandle) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            kept.deadline = trio.current_time() + CANCELLING
            if not over:
                telling.cancel()
                handle.cancel()
            raise

    result = _refused("the run could not be ended in time")
    async with trio.open_nursery() as nursery:
        with kept:
            async with run as handle:
                nursery.start_soon(watch, handle)
                result = await _followed(context, handle, telling)
                over = True
        nursery.cancel_scope.cancel()
    return result


async def _followed(context: Context, handle: RunHandle, telling: trio.CancelScope) -> types.CallToolResult:
    async def tell() -> None:
        with telling:
            await _tell(context, handle)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
            report = await handle.report()
            telling.deadline = trio.current_time() + LAST_STEPS
        return _result(handle.id, report)
    except BaseExceptionGroup as group:
        if (waiting := first_of(group, WaitingForHuman)) is None:
            raise
        return _waiting(handle.id, waiting)


async def _tell(context: Context, handle: RunHandle) -> None:
    steps = 0
    async for record in handle.events():
        told = step_text(record.event)
        if told:
            steps += 1
            await context.session.report_progress(steps, None, told)
        if isinstance(record.event, RunFinished):
            return


def step_text(event: Event) -> str:
    """A step of a run in one line for who waits for its end, "" for what is none."""
    who = event.actor.rpartition("/")[2]
    match event:
        case ActorStarted(task=task):
            said = f"{who} begins: {task}"
        case ToolStarted(name=name):
            said = f"{who}: {name}"
        case ModelFinished(text=text) if text.strip():
            said = f"{who}: {text}"
        case ActorFinished(report=report) if "/" in event.actor:
            said = f"{who} {report.get('status')}"
        case _:
            return ""
    flat = " ".join(said.split())
    return flat if len(flat) <= MOST_TOLD else f"{flat[: MOST_TOLD - 1]}…"


def _result(run: str, report: Report) -> types.CallToolResult:
    text = report.text or report.detail
    if report.status == "stopped":
        text = f"{text}\n\n(Stopped before the end: {report.reason}. {report.detail})".strip()
    elif report.status != "completed":
        text = f"{report.status}: {report.detail}\n\n{report.text}".strip()
    facts = {
        "run": run,
        "status": report.status,
        "reason": report.reason,
        "steps": report.steps,
        "input_tokens": report.usage.input,
        "output_tokens": report.usage.output,
        "cost_usd": report.cost_usd,
    }
    return _answer(text, facts, is_error=report.status in ("failed", "cancelled"))


def _waiting(run: str, waiting: WaitingForHuman) -> types.CallToolResult:
    text = f"{waiting}   then elenco resume {run}{in_state()}"
    return _answer(text, {"run": run, "status": "waiting", "reason": str(waiting)}, is_error=True)


def _answer(text: str, facts: Mapping[str, Any], *, is_error: bool) -> types.CallToolResult:
    from mcp import types

    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=dict(facts), is_error=is_error)


def _refused(text: str) -> types.CallToolResult:
    from mcp import types

    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


# --- how it is reached -------------------------------------------------------------------------------------------


async def serve_pipes(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until the input ends; nothing else is written there."""
    quieten()
    async with pipes() as (send, receive):
        async with lines(send, receive, Witness()) as (from_client, to_client):
            await server.run(from_client, to_client, server.create_initialization_options())


async def serve_http(server: Server[Any], port: int, token: str, told: Callable[[str], None]) -> None:
    """Serve over streamable HTTP on this machine, to requests that say they mean it; `told` hears the address.

    A page in a browser is refused by its origin, a name that leads here by its host. With a `token`, every request has
    to bring it. Raises OSError where the port is taken. A cancelled call closes all connections at once.
    """
    quieten()
    app: Any = server.streamable_http_app(host=LOOPBACK, streamable_http_path=PATH)
    listeners = await trio.open_tcp_listeners(port, host=LOOPBACK)
    bound: int = listeners[0].socket.getsockname()[1]
    told(f"http://{LOOPBACK}:{bound}{PATH}")
    await serve(_guarded(app, token), listeners)


def _guarded(app: App, token: str) -> App:
    """The application for those who bring the token."""
    if not token:
        return app
    import hmac

    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope.get("headers") or ())
        if scope["type"] == "http" and not hmac.compare_digest(headers.get(b"authorization", b""), wanted):
            head = {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
            await send(head)
            await send({"type": "http.response.body", "body": b"a token is needed\n"})
            return
        await app(scope, receive, send)

    return guarded
