"""The tools of one agent: what it may call, whether a call fits, and the one place where a tool's fault ends."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import trio

from runtime.errors import Cancelled, ElencoError, JournalError, did_you_mean
from runtime.messages import JsonObject, ResultKind, ToolCall, ToolResult
from runtime.model import ToolSpec

from ._arguments import Arguments
from ._tool import Output, Tool, ToolContext, ToolError, is_async
from .results import shorten
from .schedule import Kind

THREAD_GRACE = 2.0
MAX_PREVIEW_CHARS = 20_000
MOST_SPECS = 64
_TOOK_EFFECT = "it took effect before the interruption; what it answered is lost"
_TRANSIENT = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
    }
)


@attrs.frozen
class Problem:
    """Why a call is not run, in words for the model that made it."""

    text: str


def _never_kept(call_id: str, text: str) -> str | None:
    del call_id, text
    return None


def _no_wait(attempt: int) -> float:
    del attempt
    return 0.0


def _always() -> bool:
    return True


def _as_it_is(text: str) -> str:
    return text


def _nothing_known(name: str) -> str:
    del name
    return ""


def _ignore(*_: object) -> None:
    pass


@attrs.frozen(eq=False)
class RunHooks:
    """What the owner of a call wants to hear. None of them may block.

    `failed` gets the exception, with its traceback, that became an error result. `retried` gets the call, the number
    of the attempt that failed (from 0), the seconds until the next and the message. `backoff` gives those seconds;
    `may_retry` counts the next attempt, or says that there is none.
    `keep` stores the full text of a result that is too long and answers with a handle for `read_result`.
    `data` gets what a tool's Output carries for programs. `veil` takes out of a result what must not be told.
    """

    failed: Callable[[ToolCall, Exception], None] = _ignore
    retried: Callable[[ToolCall, int, float, str], None] = _ignore
    backoff: Callable[[int], float] = _no_wait
    may_retry: Callable[[], bool] = _always
    keep: Callable[[str, str], str | None] = _never_kept
    data: Callable[[ToolCall, JsonObject], None] = _ignore
    veil: Callable[[str], str] = _as_it_is


NO_HOOKS = RunHooks()


@attrs.frozen
class LeftOut:
    """A tool no provider would take, and why."""

    name: str
    why: str


class ToolBox:
    """A fixed set of tools with different names, each with a schema that every provider takes.

    One whose schema cannot be put right is `left_out`: it is not there for the model, and stops nothing else.
    `missing` tells why a tool that is called and not here cannot be, "" where nothing is known of it.
    Raises ValueError when two tools have the same name.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        threads: trio.CapacityLimiter | None = None,
        missing: Callable[[str], str] = _nothing_known,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._missing = missing
        self._threads = threads
        self._shapes: dict[str, Shape] = {}
        left_out: list[LeftOut] = []
        for tool in tools:
            if tool.name in self._shapes:
                raise ValueError(f"two tools are called {tool.name!r}")
            shape = self._shapes[tool.name] = _shape_of(tool)
            shown = shape.shown
            if shown.schema is None:
                left_out.append(LeftOut(tool.name, shown.why))
            else:
                self._tools[tool.name] = tool
        self.left_out = tuple(left_out)
        self._specs = tuple(self._shapes[tool.name].spec(tool) for tool in self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model sees them, in the order given."""
        return self._specs

    def effects_of(self, call: ToolCall) -> Kind:
        """What `schedule.rounds` asks; an unknown tool has no effects, for its call is never run."""
        tool = self._tools.get(call.name)
        if tool is None:
            return "none"
        return "delegation" if tool.delegates else tool.effects

    def check(self, call: ToolCall) -> Problem | JsonObject:
        """The arguments to run a call with, under the tool's own names, or why it cannot run.

        A call may name its arguments as the model was shown them, or as the tool does.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            if why := self._missing(call.name):
                return Problem(f"there is no tool {call.name!r}: {why}. Your tools: {known}")
            hint = did_you_mean(call.name, self._tools) or "."
            return Problem(f"there is no tool {call.name!r}{hint} Your tools: {known}")
        if call.arguments is None:
            why = call.arguments_error or "they are no JSON object"
            return Problem(f"{call.name} was not run: its arguments cannot be read: {why}. Send one JSON object.")
        shape = self._shapes[call.name]
        fitted = shape.check.fit(shape.shown.rename(call.arguments))
        if isinstance(fitted, list):
            faults = "\n".join(f"- {fault}" for fault in fitted)
            return Problem(f"{call.name} was not run: its arguments do not fit\n{faults}")
        return shape.shown.restore(fitted)

    async def run(
        self,
        call: ToolCall,
        ctx: ToolContext | None,
        hooks: RunHooks = NO_HOOKS,
        arguments: JsonObject | None = None,
    ) -> ToolResult:
        """Run one call to its result. Whatever a tool raises becomes an error result, never a traceback.

        `ctx` may be None for a tool that takes none; `arguments` are what `check` gave for this call, if it was asked.
        Only what is no fault of a tool passes through: a journal that cannot be written, and cancellation.

        A cancelled call of an async tool stops where it is. A sync tool's thread cannot be stopped: the call waits
        THREAD_GRACE seconds for it, then leaves it behind; its next use of the context, or of
        `trio.from_thread.check_cancelled()`, ends it. Either way there is no result, and nobody can say here whether
        the call took effect.
        """
        fitted = self.check(call) if arguments is None else arguments
        if isinstance(fitted, Problem):
            return _result(call, fitted.text, "error")
        tool = self._tools[call.name]
        attempt = 0
        while True:
            try:
                output = _output(await self._once(tool, fitted, ctx))
            except (JournalError, Cancelled):
                raise
            except Exception as error:  # noqa: BLE001  # the one place where a tool's fault ends
                if attempt < tool.retries and is_transient(error) and hooks.may_retry():
                    wait = hooks.backoff(attempt)
                    hooks.retried(call, attempt, wait, _message(error))
                    await trio.sleep(wait)
                    attempt += 1
                    continue
                hooks.failed(call, error)
                return _result(call, self._fitting(tool, call, _message(error), hooks), "error")
            if output.data is not None:
                hooks.data(call, output.data)
            text = self._fitting(tool, call, output.text, hooks)
            result = _result(call, text, "error" if output.is_error else "ok")
            return attrs.evolve(result, images=output.images) if output.images else result

    async def preview(self, call: ToolCall, arguments: JsonObject, ctx: ToolContext) -> str | Problem:
        """What a call with checked arguments would do, as a human reads it, "" where its tool cannot say.

        A Problem is why it cannot succeed. A cancelled call changes nothing.
        """
        tool = self._tools[call.name]
        if tool.preview is None:
            return ""
        try:
            text = await _in_thread(functools.partial(tool.preview, ctx, _converted(tool, arguments)), self._threads)
        except (ToolError, ElencoError) as error:
            return Problem(str(error))
        except Exception as error:  # noqa: BLE001  # a tool's fault, which its run will show as well
            return f"no preview: {_message(error)}"
        return shorten(_encodable(str(text)), MAX_PREVIEW_CHARS)

    async def outcome(self, call: ToolCall, arguments: JsonObject) -> str | bool | None:
        """What became of a call that was cut off, by its tool's own `check`: its result, False where it did nothing.

        None: nobody knows; the tool brings no check, or the check itself failed. A cancelled call changes nothing.
        """
        check = self._tools[call.name].check
        if check is None:
            return None
        try:
            if is_async(check):
                found: object = await check(arguments)
            else:
                found = await trio.to_thread.run_sync(check, arguments, abandon_on_cancel=True)
        except Exception:  # noqa: BLE001  # a check that fails knows nothing
            return None
        return found if isinstance(found, str) else False if found is False else _TOOK_EFFECT if found else None

    async def _once(self, tool: Tool, arguments: JsonObject, ctx: ToolContext | None) -> object:
        kwargs = _converted(tool, arguments)
        if not tool.takes_context:
            if tool.is_async:
                return await tool.run(**kwargs)
            return await _in_thread(functools.partial(tool.run, **kwargs), self._threads)
        assert ctx is not None, tool.name
        if tool.is_async:
            return await tool.run(ctx, **kwargs)
        return await _in_thread(functools.partial(tool.run, _from_thread(ctx), **kwargs), self._threads)

    def _fitting(self, tool: Tool, call: ToolCall, text: str, hooks: RunHooks) -> str:
        text = hooks.veil(_encodable(text))
        if len(text) <= tool.max_result_chars:
            return text or "(no output)"
        return shorten(text, tool.max_result_chars, hooks.keep(call.id, text))


class Shape:
    """A tool's schema as it is sent, the check of calls by it, made with the first of them, and how models see it."""

    def __init__(self, parameters: JsonObject) -> None:
        from runtime.wire.schemas import prepare

        self.shown = prepare(parameters)
        self._specs: dict[tuple[str, str], ToolSpec] = {}

    @functools.cached_property
    def check(self) -> Arguments:
        return Arguments(self.shown.schema or {})

    def spec(self, tool: Tool) -> ToolSpec:
        """The same one for all tools of this shape with its name and description."""
        found = self._specs.get((tool.name, tool.description))
        if found is None:
            if len(self._specs) >= MOST_SPECS:
                self._specs = {}
            found = ToolSpec(tool.name, tool.description, self.shown.schema or {})
            self._specs[tool.name, tool.description] = found
        return found


_SHAPES: WeakKeyDictionary[Tool, Shape] = WeakKeyDictionary()


def _shape_of(tool: Tool) -> Shape:
    """Worked out once for all agents that have the tool, or one like it."""
    key = tool.like or tool
    found = _SHAPES.get(key)
    if found is None:
        found = _SHAPES[key] = Shape(key.parameters)
    return found


def is_transient(error: BaseException) -> bool:
    """Whether the same call may work a moment later."""
    if isinstance(error, ToolError):
        return error.transient
    return isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno in _TRANSIENT)


def _converted(tool: Tool, arguments: JsonObject) -> Mapping[str, Any]:
    if tool.convert is None:
        return arguments
    try:
        return tool.convert(arguments)
    except (ValueError, TypeError) as error:
        raise ToolError(f"{tool.name} was not run: {error}") from error


async def _in_thread(work: Callable[[], object], threads: trio.CapacityLimiter | None) -> object:
    ended = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def in_thread() -> object:
        try:
            return work()
        finally:
            with contextlib.suppress(trio.RunFinishedError):  # Left behind, and the run is over.
                token.run_sync_soon(ended.set)

    try:
        return await trio.to_thread.run_sync(in_thread, abandon_on_cancel=True, limiter=threads)
    except trio.Cancelled:
        with trio.move_on_after(THREAD_GRACE, shield=True):
            await ended.wait()
        raise


def _from_thread(ctx: ToolContext) -> ToolContext:
    """The same context for use in a thread: what it reports is reported on Trio's own."""

    def hop(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.partial(trio.from_thread.run_sync, function)

    return attrs.evolve(ctx, output=hop(ctx.output), changed=hop(ctx.changed), report=hop(ctx.report))


def _output(value: object) -> Output:
    match value:
        case Output():
            return value
        case str():
            return Output(value)
        case None:
            return Output("done")
        case _:
            return Output(json.dumps(value, ensure_ascii=False))


def _message(error: Exception) -> str:
    match error:
        case ToolError() | ElencoError():
            return str(error)
        case ExceptionGroup():
            return "; ".join(_message(each) for each in error.exceptions)
        case _:
            text = str(error)
            return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _encodable(text: str) -> str:
    """The text as it can travel in UTF-8: half a surrogate pair becomes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def _result(call: ToolCall, content: str, kind: ResultKind) -> ToolResult:
    return ToolResult(call.id, call.name, content, kind)
