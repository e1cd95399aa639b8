"""A check written in Python, `module:function`: where it should be, looked at without running any of it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from runtime.errors import did_you_mean

_NAME = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")


def fault_of_check(check: str, workspace: Path | None) -> str:
    """Why a check cannot be called, as far as files tell; "" where nothing speaks against it. Blocks.

    The module is looked for in the workspace, then among what is installed.
    """
    found = _NAME.fullmatch(check)
    if found is None:
        return f"'{check}' names no function: write module:function, such as checks:summary"
    module, function = found[1], found[2]
    file = _file_of(module, workspace)
    if file is None:
        where = " in the workspace or among what is installed" if workspace is not None else ""
        return f"there is no module '{module}'{where}"
    if file.suffix != ".py":
        return ""
    try:
        tree = ast.parse(file.read_bytes())
    except OSError as error:
        return f"{file.name} cannot be read: {error.strerror}"
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{file.name}{line}: not valid Python"
    for name, node in _names(tree.body):
        if name == "*":
            return ""
        if name == function:
            return f"{check} is an async function; a check is a plain one" if node == "async" else ""
    known = [name for name, _ in _names(tree.body)]
    return f"{file.name} has no function '{function}'{did_you_mean(function, known)}"


def _file_of(module: str, workspace: Path | None) -> Path | None:
    parts = module.split(".")
    if workspace is not None:
        base = workspace.joinpath(*parts)
        for file in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if file.is_file():
                return file
    # Looking for what lies inside a package would run the package, so it is found by its files.
    try:
        top = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError, AttributeError):
        return None
    if top is None:
        return None
    if len(parts) == 1:
        return Path(top.origin) if top.origin not in (None, "built-in", "frozen") else Path(parts[0])
    for folder in top.submodule_search_locations or ():
        base = Path(folder).joinpath(*parts[1:])
        for file in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if file.is_file():
                return file
    return None


def _names(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """What a module's top level defines, and whether it is an async function; what is conditional counts as well."""
    for node in body:
        match node:
            case ast.AsyncFunctionDef(name=name):
                yield name, "async"
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, ""
            case ast.Assign(targets=targets):
                yield from ((each.id, "") for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, ""
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                yield from ((each.asname or each.name.split(".")[0], "") for each in names)
            case ast.If() | ast.Try() | ast.With():
                yield from _names(node.body)
                yield from _names(getattr(node, "orelse", []))
                for handler in getattr(node, "handlers", []):
                    yield from _names(handler.body)
            case _:
                pass
