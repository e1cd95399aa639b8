"""Tools that a person writes in the playground: their code is a text, and runs nowhere but in walls.

A text is looked at without running it for its syntax alone. Everything else, also which tools it has, is asked of a
child process in the sandbox (`boxed`), one for each question and each call: no network, the workspace to read, and to
write only where the tool says that it changes something and the actor's walls allow it. What comes out of the walls is
no more trusted than what any server sends.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from runtime.errors import Fault
from runtime.messages import JsonObject
from runtime.policy.decision import Sandbox as Level
from runtime.policy.subjects import PlainSubject, Subject
from runtime.sandbox.box import Confined, Sandbox, SandboxError
from runtime.tools import Output, Tool, ToolContext, ToolError

FILE = "tools.py"
MOST_CODE = 64 * 1024
"""Characters of a text."""
MOST_TOOLS = 32
MOST_ANSWER = 4 << 20
"""Bytes of an answer from within the walls."""
MOST_PRINTED = 100_000
PATIENCE = 20.0
"""Seconds a text has to say which tools it holds."""
TIMEOUT = 600.0
DRAIN = 0.3
"""Seconds for what a tool has printed last, where something it left holds the pipe open."""
_PROGRAM = Path(__file__).with_name("boxed.py")
_RUNTIME = Path(__file__).parent.parent
_SIGNATURES = _RUNTIME / "tools" / "_signature.py"


@attrs.frozen
class Described:
    """The tools of a text, as models and rules see them, or what keeps it from being used."""

    tools: tuple[Tool, ...] = ()
    faults: tuple[Fault, ...] = ()


def faults_of(code: str) -> list[Fault]:
    """What is wrong with a text as far as its syntax tells; nothing of it is run."""
    if len(code) > MOST_CODE:
        return [Fault(FILE, 1, f"at most {MOST_CODE} characters are taken")]
    lines = code.split("\n")
    try:
        ast.parse(code, FILE)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), len(lines))
        return [Fault(FILE, line, error.msg, max(error.offset or 1, 1), lines[line - 1])]
    except (ValueError, RecursionError, MemoryError) as error:
        return [Fault(FILE, 1, str(error) or "nested too deeply")]
    if not names_in(code):
        return [Fault(FILE, 1, "no tool in it: a function with @tool above it is one", warning=True)]
    return []


@attrs.define(eq=False)
class _Written:
    """A text, and the boxes its tools run in, made with the first question of each run."""

    code: str
    boxes: Sandbox | None = None

    def walls(self, sandbox: Sandbox, *, writes: bool) -> Confined:
        """Boxes over the same workspace that always have walls, no network, and Python in them."""
        if self.boxes is None or self.boxes.reaper is not sandbox.reaper:
            folders = [str(_RUNTIME), *(os.path.dirname(path) for path in _attrs())]
            python = os.path.realpath(sys.base_prefix)
            if python != "/usr" and not python.startswith("/usr/"):
                folders.append(python)
            walls = attrs.evolve(sandbox.walls, read=(*sandbox.walls.read, *folders))
            self.boxes = Sandbox(
                sandbox.reaper, sandbox.workspace, walls, sandbox.hidden, sandbox.scratch, sandbox.environ
            )
        level: Level = "workspace-write" if writes else "read-only"
        return attrs.evolve(self.boxes.under(level, "none"), talks=True)


def names_in(code: str) -> tuple[str, ...]:
    """What the tools of a text are called as far as its syntax tells; nothing of it is run."""
    if len(code) > MOST_CODE:
        return ()
    try:
        tree = ast.parse(code, FILE)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(
        _name_of(node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if _called_tool(decorator)
    )


def _called_tool(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == "tool"


def _name_of(node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> str:
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    names = (keyword.value for keyword in given if keyword.arg == "name")
    return next((str(each.value) for each in names if isinstance(each, ast.Constant)), node.name)


async def describe(code: str, sandbox: Sandbox, taken: Sequence[str]) -> Described:
    """Ask a text in walls which tools it holds; names that are `taken` are not given a second time.

    Raises SandboxError where there are no walls. A cancelled call leaves no process.
    """
    if wrong := tuple(fault for fault in faults_of(code) if not fault.warning):
        return Described(faults=wrong)
    written = _Written(code)
    answer: JsonObject = {"faults": [{"text": f"it did not come to an end within {PATIENCE:.0f} s"}]}
    with trio.move_on_after(PATIENCE):
        walls = written.walls(sandbox, writes=False)
        answer = await _ask(walls, {"do": "describe", "code": code}, _ignore) or {"error": "it gave no answer"}
    faults = [_placed(each, code) for each in _list(answer.get("faults"))]
    if error := answer.get("error"):
        faults.append(Fault(FILE, 1, str(error)))
    found: dict[str, Tool] = {}
    for each in _list(answer.get("tools"))[:MOST_TOOLS]:
        name = str(each.get("name", ""))
        try:
            if name in taken:
                raise ValueError(f"there is a tool {name} already: choose another name")
            if name in found:
                raise ValueError(f"two tools are called {name}")
            found[name] = _tool(written, each)
        except (ValueError, TypeError) as error:
            faults.append(_placed({"line": each.get("line"), "text": str(error)}, code))
    return Described(tuple(found.values()), tuple(faults))


def _tool(written: _Written, spec: Mapping[str, Any]) -> Tool:
    """The Tool a description stands for. Raises ValueError, TypeError for one that cannot be."""
    name, parameters = spec.get("name"), spec.get("parameters")
    effects, retries = spec.get("effects", "once"), spec.get("retries", 0)
    timeout = spec.get("timeout", TIMEOUT)
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise TypeError("its description is none")
    if effects not in ("none", "idempotent", "once"):
        raise ValueError(f"{name}: effects are none, idempotent or once")
    if not isinstance(retries, int) or not 0 <= retries <= 5:
        raise ValueError(f"{name}: retries are a number from 0 to 5")
    if not isinstance(timeout, int | float) or not 0 < timeout <= TIMEOUT:
        raise ValueError(f"{name}: timeout is a number of seconds, at most {TIMEOUT:.0f}")
    changes = effects != "none"
    digest = hashlib.sha256(written.code.encode(errors="replace")).hexdigest()[:12]

    async def run(ctx: ToolContext, **arguments: Any) -> Output:
        return await _call(ctx, written, name, arguments, changes=changes)

    def about(arguments: JsonObject) -> Subject:
        # Nobody has answered for this code: what it says of its effects spares no question.
        del arguments
        return PlainSubject(name, changes=changes, code=f"{FILE}:{digest}")

    def preview(ctx: ToolContext, arguments: JsonObject) -> str:
        del ctx
        return f"{name}({json.dumps(arguments, ensure_ascii=False)})\n({FILE}, in walls without network)"

    return Tool(
        name=name,
        description=str(spec.get("description", ""))[:4000],
        parameters=cast("JsonObject", parameters),
        run=run,
        effects=effects,
        poll=spec.get("poll") is True,
        progress=spec.get("progress", changes) is True,
        retries=retries,
        timeout=float(timeout),
        subject=about,
        preview=preview,
    )


async def _call(
    ctx: ToolContext, written: _Written, name: str, arguments: Mapping[str, Any], *, changes: bool
) -> Output:
    if ctx.sandbox is None:
        raise ToolError("tools of one's own are run in a run alone")
    walls = written.walls(ctx.sandbox.sandbox, writes=changes and ctx.sandbox.level != "read-only")
    order = {"do": "call", "code": written.code, "tool": name, "arguments": dict(arguments)}
    try:
        answer = await _ask(walls, order, ctx.output)
    except SandboxError as error:
        raise ToolError(str(error)) from error
    if answer is None:
        raise ToolError(f"{name} ended without an answer")
    for fault in _list(answer.get("faults")):
        raise ToolError(str(_placed(fault, written.code)))
    if "error" in answer:
        raise ToolError(str(answer["error"]), transient=answer.get("transient") is True)
    data = answer.get("data")
    shown = cast("JsonObject", data) if isinstance(data, dict) else None
    return Output(str(answer.get("text", "")), is_error=answer.get("is_error") is True, data=shown)


def _attrs() -> tuple[str, str]:
    import attr

    return str(attr.__file__), str(attrs.__file__)


async def _ask(walls: Confined, order: Mapping[str, Any], printed: Callable[[str], None]) -> JsonObject | None:
    """Have one order carried out in a process of its own; None where it gave no answer. Raises SandboxError."""
    box = await walls.start(_command())
    process = box.process
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    paths = [str(_RUNTIME.parent), str(Path(_attrs()[0]).parent.parent)]
    line = json.dumps({**order, "file": FILE, "path": paths, "signatures": str(_SIGNATURES)}).encode() + b"\n"
    answer = b""
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_show, process.stderr, printed)
            nursery.start_soon(_tell, process.stdin, line)
            while len(answer) <= MOST_ANSWER and (piece := await process.stdout.receive_some()):
                answer += piece
            nursery.cancel_scope.deadline = trio.current_time() + DRAIN
    finally:
        await process.end(0.0)
    try:
        found: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None


def _command() -> str:
    # The interpreter itself: what a virtual environment links to it with is not there.
    return f"exec {shlex.quote(os.path.realpath(sys.executable))} -I -S -B {shlex.quote(str(_PROGRAM))}"


async def _tell(stream: trio.lowlevel.FdStream, line: bytes) -> None:
    try:
        await stream.send_all(line)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def _show(stream: trio.lowlevel.FdStream, printed: Callable[[str], None]) -> None:
    left = MOST_PRINTED
    while data := await stream.receive_some():
        if left > 0:
            printed(data[:left].decode(errors="replace"))
            left -= len(data)


def _ignore(text: str) -> None:
    del text


def _list(value: Any) -> list[Mapping[str, Any]]:
    found: list[Any] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [each for each in found if isinstance(each, dict)]


def _placed(told: Mapping[str, Any], code: str) -> Fault:
    lines = code.split("\n")
    line, column = told.get("line"), told.get("column")
    number = min(max(line, 1), len(lines)) if isinstance(line, int) else 1
    return Fault(
        FILE, number, str(told.get("text", ""))[:1000], column if isinstance(column, int) else 1, lines[number - 1]
    )
