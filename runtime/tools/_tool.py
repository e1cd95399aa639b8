"""A tool: a function a model may call, with what its author can honestly say about its effects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

import attrs

from runtime.events import Event
from runtime.messages import Image, JsonObject
from runtime.model import ToolSpec

from ._signature import SignatureError as SignatureError
from ._signature import read_signature
from .memory import Memory

if TYPE_CHECKING:
    from runtime.memory.facts import Facts
    from runtime.policy.paths import Workspace
    from runtime.policy.subjects import Subject
    from runtime.reaper import Reaper
    from runtime.sandbox.box import Confined

    from .jobs import Jobs
    from .results import ResultStore

Effects: TypeAlias = Literal["none", "idempotent", "once"]
PathUse: TypeAlias = Literal["read", "write", "list", "delete"]
PathUses: TypeAlias = Mapping[str, PathUse | tuple[PathUse, ...]]

MAX_RESULT_CHARS = 30_000
TIMEOUT = 600.0
"""Seconds a call may take where its tool says nothing else."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@attrs.frozen
class Output:
    """What a tool gives back: text for the model, and `data` for programs that read the log."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    data: JsonObject | None = None


class ToolError(Exception):
    """An ordinary failure whose text is meant for the model. `transient` says that the same call may work later."""

    def __init__(self, text: str, *, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


class Changed(Protocol):
    """Hears that a file was changed: content before (None: it was not there) and after (None: it is gone)."""

    def __call__(self, path: str, before: bytes | None, after: bytes | None, diff: str) -> None: ...


class Original(Protocol):
    """What a file held when the run began. Raises ToolError where nobody knows any more."""

    def __call__(self, path: str, now: bytes | None) -> bytes | None: ...


def _ignore_text(text: str) -> None:
    del text


def _ignore_event(event: Event) -> None:
    del event


def _ignore_change(path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
    del path, before, after, diff


def _unchanged(path: str, now: bytes | None) -> bytes | None:
    del path
    return now


def _readable(path: str) -> bool:
    del path
    return True


def _any_public(host: str) -> bool:
    del host
    return True


def _no_private(host: str) -> bool:
    del host
    return False


async def _nobody(text: str, options: Sequence[str]) -> str:
    del text, options
    raise ToolError("there is nobody to ask")


@attrs.frozen(eq=False)
class ToolContext:
    """What a running tool may touch. Its callables may be called from the tool's own thread as well.

    `call_id` stays the same when a call is tried again: pass it on as an idempotency key. `output` shows text while the
    tool runs, `changed` records a changed file, `report` puts an event into the log. `readable` tells for a path
    relative to the workspace whether a tool that looks at many files may look at this one. `memory` is the actor's own,
    kept between calls. `original` gives what a file held when the run began. `ask` waits for a human's answer to a
    question with options to choose from. `may_fetch` tells whether rules let this host be asked without a question,
    `may_fetch_private` whether they name it, so that it may be one of a private network. `reaper` starts processes that
    end with their call, `sandbox` commands in their walls, `jobs` those that go on after their call; all three are for
    async tools, in a run alone. `facts` is the memory that outlives the run, for sync tools: it blocks.
    `results` are those the run has kept in full; `opens` tells whether the actor may read the one under a handle.
    """

    workspace: Workspace
    call_id: str = ""
    actor: str = ""
    output: Callable[[str], None] = _ignore_text
    changed: Changed = _ignore_change
    report: Callable[[Event], None] = _ignore_event
    readable: Callable[[str], bool] = _readable
    memory: Memory = attrs.field(factory=Memory)
    original: Original = _unchanged
    ask: Callable[[str, Sequence[str]], Awaitable[str]] = _nobody
    may_fetch: Callable[[str], bool] = _any_public
    may_fetch_private: Callable[[str], bool] = _no_private
    reaper: Reaper | None = None
    sandbox: Confined | None = None
    jobs: Jobs | None = None
    facts: Facts | None = None
    results: ResultStore | None = None
    opens: Callable[[str], bool] = _readable


Preview: TypeAlias = Callable[[ToolContext, JsonObject], str]


def _progress(tool: Tool) -> bool:
    return tool.effects != "none"


@attrs.frozen(eq=False)
class Tool:
    """A tool as the runtime knows it.

    `run` is sync (it gets a thread) or async, takes the arguments by name, and the ToolContext first if its first
    parameter is called `ctx`. It returns a str or an Output, or raises ToolError. `effects`: `none` changes nothing,
    `idempotent` may run twice, `once` may not. `poll`: its job is to look at what another party changes. `progress`:
    it changes the world outside the agent's head (default: effects is not none). `retries` counts further attempts
    after a transient failure. `check` tells by the arguments, after an interruption, what became of a call: its
    result as text, True where it took effect, False where it did not and may run now, None where nobody knows.
    `paths` names the arguments that are paths in the workspace, or computes from the arguments a mapping of paths; the
    values are what the call does to each, one use or several. `delegates` marks a tool whose work is done by another
    actor, `private` one that touches only the agent's own notes and results. `begins_on_record` is False for one that
    sees to that itself: its first effect waits until the journal is durable. `like` is a lasting tool with the same
    parameters, for tools that are made anew for each actor. `timeout` is in seconds, None for as long
    as the run lasts; delegations have none of their own. `subject` tells permission rules what a call is about where
    paths do not. `preview` shows a human who is asked what the call would do, from its checked arguments; it changes
    nothing, may block (it gets a thread), and raises ToolError for a call that cannot succeed.

    Raises ValueError for what contradicts itself.
    """

    name: str
    description: str
    parameters: JsonObject
    run: Callable[..., Any]
    effects: Effects = "once"
    poll: bool = False
    progress: bool = attrs.field(default=attrs.Factory(_progress, takes_self=True))
    retries: int = 0
    check: Callable[[JsonObject], Any] | None = None
    paths: PathUses | Callable[[JsonObject], PathUses] = attrs.field(factory=dict[str, PathUse | tuple[PathUse, ...]])
    max_result_chars: int = MAX_RESULT_CHARS
    delegates: bool = False
    private: bool = False
    begins_on_record: bool = True
    like: Tool | None = None
    timeout: float | None = TIMEOUT
    subject: Callable[[JsonObject], Subject] | None = None
    preview: Preview | None = None
    convert: Callable[[JsonObject], Mapping[str, Any]] | None = None
    takes_context: bool = attrs.field(init=False)
    is_async: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"tool name {self.name!r}: use 1 to 64 letters, digits, _ and -")
        if self.retries and self.effects == "once":
            raise ValueError(f"{self.name}: only a tool with effects none or idempotent may be retried")
        object.__setattr__(self, "takes_context", _first_parameter(self.run) == "ctx")
        object.__setattr__(self, "is_async", is_async(self.run))

    @property
    def read_only(self) -> bool:
        return self.effects == "none"

    @property
    def mutates(self) -> bool:
        return self.progress and not self.read_only

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.parameters)

    def uses(self, arguments: JsonObject) -> tuple[tuple[str, PathUse], ...]:
        """The paths a call with these arguments names, as it writes them, and what it does to each."""
        uses = self.paths(arguments) if callable(self.paths) else self.paths
        found: list[tuple[str, PathUse]] = []
        for name, use in uses.items():
            path = name if callable(self.paths) else arguments.get(name)
            if isinstance(path, str):
                each: tuple[PathUse, ...] = use if isinstance(use, tuple) else (use,)
                found.extend((path, one) for one in each)
        return tuple(found)


@lru_cache(maxsize=256)
def answered_for(tool: Tool) -> Tool:
    """A tool handed over in code: when it changes nothing and names no paths, its author has answered for it."""
    return attrs.evolve(tool, private=True) if tool.read_only and not tool.paths else tool


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects = "once",
    poll: bool = False,
    progress: bool | None = None,
    retries: int = 0,
    check: Callable[[JsonObject], Any] | None = None,
    paths: PathUses | Callable[[JsonObject], PathUses] | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
    timeout: float | None = TIMEOUT,
    delegates: bool = False,
    private: bool = False,
    subject: Callable[[JsonObject], Subject] | None = None,
    preview: Preview | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects = "once",
    poll: bool = False,
    progress: bool | None = None,
    retries: int = 0,
    check: Callable[[JsonObject], Any] | None = None,
    paths: PathUses | Callable[[JsonObject], PathUses] | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
    timeout: float | None = TIMEOUT,
    delegates: bool = False,
    private: bool = False,
    subject: Callable[[JsonObject], Subject] | None = None,
    preview: Preview | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a Tool of a function: its type hints give the schema, its Google-style docstring the descriptions.

    Raises SignatureError for a signature that JSON Schema cannot express.
    """

    def make(function: Callable[..., Any]) -> Tool:
        signature = read_signature(function)
        return Tool(
            name=name or function.__name__,
            description=description or signature.description,
            parameters=signature.parameters,
            run=function,
            effects=effects,
            poll=poll,
            progress=effects != "none" if progress is None else progress,
            retries=retries,
            check=check,
            paths=paths or {},
            max_result_chars=max_result_chars,
            timeout=timeout,
            delegates=delegates,
            private=private,
            subject=subject,
            preview=preview,
            convert=signature.convert,
        )

    return make if function is None else make(function)


def _first_parameter(run: Callable[..., Any]) -> str | None:
    if isinstance(run, FunctionType) and run.__code__.co_argcount and not run.__dict__:  # nothing wrapped
        return run.__code__.co_varnames[0]
    return next(iter(inspect.signature(run).parameters), None)


def is_async(run: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(getattr(run, "__call__", None))  # noqa: B004
