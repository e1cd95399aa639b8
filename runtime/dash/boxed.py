"""The program inside the walls around tools that were written in the playground: one order in, one answer out.

It reads one JSON line and answers with one. Standard output is the answer's alone: what a tool prints goes to standard
error. It stands by itself, for in there is nothing of Elenco but this, the reader of signatures, and attrs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

MODULE = "tools"
_OPTIONS = ("name", "description", "effects", "poll", "progress", "retries", "max_result_chars", "timeout")


class ToolError(Exception):
    """An ordinary failure whose text is meant for the model, as in `runtime.tools`."""

    def __init__(self, text: str, *, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


class Output:
    """What a tool gives back, as in `runtime.tools`, without images."""

    def __init__(self, text: str, is_error: bool = False, data: Any = None) -> None:
        self.text = text
        self.is_error = is_error
        self.data = data


def main() -> None:
    """Do what the order says: `describe` the tools of a text, or `call` one of them."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = order["path"]
    answer = _carried_out(order)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        text = json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"error": f"what it gave back is no JSON: {error}"})
    answers.write(f"{text}\n")
    answers.flush()
    os._exit(0)  # a thread the tool has left behind is nobody's business any more


def _carried_out(order: dict[str, Any]) -> dict[str, Any]:
    written: list[tuple[Callable[..., Any], dict[str, Any]]] = []
    _offer_decorator(written)
    try:
        module = types.ModuleType(MODULE)
        sys.modules[MODULE] = module
        exec(compile(order["code"], order["file"], "exec"), module.__dict__)
    except BaseException as error:  # noqa: BLE001  # somebody's text may end in any way while it is loaded
        return {"faults": [_fault(error, order["file"])]}
    read_signature = _signatures(order["signatures"])
    if order["do"] == "describe":
        return _described(written, read_signature)
    for function, options in written:
        if options.get("name", function.__name__) == order["tool"]:
            return _called(function, read_signature(function).convert, order)
    return {"error": f"there is no tool {order['tool']} in it"}


def _offer_decorator(written: list[tuple[Callable[..., Any], dict[str, Any]]]) -> None:
    def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        def take(function: Callable[..., Any]) -> Callable[..., Any]:
            written.append((function, options))
            return function

        return take if function is None else take(function)

    stand_in = types.ModuleType("runtime.tools")
    for name, value in (("tool", tool), ("ToolError", ToolError), ("Output", Output)):
        setattr(stand_in, name, value)
    sys.modules["runtime.tools"] = stand_in


def _signatures(path: str) -> Callable[[Callable[..., Any]], Any]:
    spec = importlib.util.spec_from_file_location("runtime.tools._signature", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: Callable[[Callable[..., Any]], Any] = module.read_signature
    return found


def _described(
    written: list[tuple[Callable[..., Any], dict[str, Any]]], read_signature: Callable[[Callable[..., Any]], Any]
) -> dict[str, Any]:
    tools: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    for function, options in written:
        line = getattr(getattr(function, "__code__", None), "co_firstlineno", 1)
        for name in options:
            if name not in _OPTIONS:
                faults.append({"line": line, "text": f"{name} cannot be given to a tool that runs in walls of its own"})
        try:
            signature = read_signature(function)
        except Exception as error:  # noqa: BLE001  # a type hint may raise anything
            faults.append({"line": line, "text": str(error)})
            continue
        if signature.takes_context:
            faults.append({"line": line, "text": "there is no ctx here: the tool runs alone in its walls"})
        tools.append(
            {
                "name": function.__name__,
                "description": signature.description,
                "parameters": signature.parameters,
                "line": line,
                **{key: value for key, value in options.items() if key in _OPTIONS},
            }
        )
    return {"tools": tools, "faults": faults}


def _called(
    function: Callable[..., Any], convert: Callable[[Any], Any] | None, order: dict[str, Any]
) -> dict[str, Any]:
    try:
        arguments = order["arguments"] if convert is None else convert(order["arguments"])
        value = function(**arguments)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except ToolError as error:
        return {"error": str(error), "transient": error.transient}
    except BaseException as error:  # noqa: BLE001  # and so may a tool
        told = _fault(error, order["file"])
        return {"error": f"{told['text']}  ({order['file']}:{told['line']})"}
    match value:
        case Output():
            return {"text": value.text, "is_error": value.is_error, "data": value.data}
        case str():
            return {"text": value}
        case None:
            return {"text": "done"}
        case _:
            return {"text": json.dumps(value, ensure_ascii=False, default=repr)}


async def _awaited(value: Any) -> Any:
    return await value


def _fault(error: BaseException, file: str) -> dict[str, Any]:
    """What went wrong, at the innermost line of the text that was written."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return {"line": error.lineno or 1, "column": error.offset or 1, "text": error.msg}
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return {"line": (lines[-1] if lines else 1) or 1, "text": f"{type(error).__name__}: {error}".rstrip(": ")}


if __name__ == "__main__":
    main()
