"""Pure modules stay pure, and the kernel has never heard of a language model: their imports are read and checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
RIM = {"trio", "httpx", "httpx_sse", "h11", "mcp", "anyio", "socket", "subprocess", "sqlite3", "threading"}
CLOCK_AND_CHANCE = {"time", "random", "secrets"}

PURE = [
    "actors/_restart.py",
    "actors/_waits.py",
    "runtime/messages.py",
    "runtime/conversation.py",
    "runtime/choice.py",
    "runtime/events.py",
    "runtime/report.py",
    "runtime/model.py",
    "runtime/record.py",
    "runtime/frontmatter.py",
    "runtime/leniency.py",
    "runtime/skills/document.py",
    *(f"runtime/foreign/{name}.py" for name in ("names", "rules", "taking", "claude", "opencode", "models")),
    "runtime/definitions.py",
    "runtime/prices.py",
    *(
        f"runtime/context/{name}.py"
        for name in ("prompt", "window", "compaction", "summary", "excerpt", "squeeze", "joined", "filling")
    ),
    "runtime/cli/context_page.py",
    *(f"runtime/handover/{name}.py" for name in ("attachment", "brief", "sources", "trail")),
    *(f"runtime/memory/{name}.py" for name in ("fact", "words")),
    "runtime/output/answer.py",
    "runtime/output/forbidden.py",
    "runtime/output/schema.py",
    "runtime/output/words.py",
    "runtime/context/bm25.py",
    "runtime/tools/schedule.py",
    "runtime/policy/rules.py",
    *(
        f"runtime/sandbox/{name}.py"
        for name in ("walls", "filter", "view", "entry", "environment", "capture", "settings")
    ),
    "runtime/policy/trust.py",
    "runtime/policy/decision.py",
    "runtime/policy/grants.py",
    *(str(path.relative_to(TOP)) for path in sorted(TOP.glob("runtime/policy/shell/*.py"))),
    *(f"runtime/dash/{name}.py" for name in ("admission", "row_lines")),
    "runtime/editor/servers.py",
    "runtime/providers/pieces.py",
    "runtime/providers/redaction.py",
    "runtime/providers/retry.py",
    *(f"runtime/journal/{name}.py" for name in ("replay", "run_steps", "actor_steps")),
    "runtime/telemetry/spans.py",
    "runtime/telemetry/metrics.py",
    "runtime/journal/overview.py",
    "runtime/journal/budgets.py",
    *(f"runtime/watch/{name}.py" for name in ("commands", "lines", "recorded", "joining")),
    *(f"runtime/chat/{name}.py" for name in ("blocks", "commands", "discreet", "figures", "view")),
    "runtime/cli/choices.py",
    *(f"runtime/dash/{name}.py" for name in ("spending", "portrait", "compare", "headers")),
    *(f"runtime/hooks/{name}.py" for name in ("moments", "answers", "matchers", "settings", "environment")),
    *(f"runtime/mcps/{name}.py" for name in ("entry", "frames", "forms", "content", "offer", "pacing")),
    *(str(path.relative_to(TOP)) for path in sorted(TOP.glob("runtime/wire/*.py"))),
    *(str(path.relative_to(TOP)) for path in sorted(TOP.glob("runtime/limits/**/*.py"))),
]

SLOW = {"mcp", "textual", "rich", "starlette", "uvicorn", "jsonschema", "pydantic"}


def imports(path: Path, *, top_only: bool = False) -> Iterator[str]:
    """Every module a file imports, by its full dotted name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_imports_no_rim_no_clock_and_no_chance(name: str) -> None:
    """A pure module imports no rim, no clock and no chance."""
    roots = {module.split(".")[0] for module in imports(TOP / name)}
    assert set() == roots & (RIM | CLOCK_AND_CHANCE)


def test_the_kernel_does_not_know_the_runtime() -> None:
    """Nothing in actors/ imports runtime/."""
    for path in sorted((TOP / "actors").glob("**/*.py")):
        assert "runtime" not in {module.split(".")[0] for module in imports(path)}, path


def test_slow_packages_are_imported_where_they_are_used() -> None:
    """No module of ours imports a slow package at its top; the chat's screen alone stands on Textual."""
    for package in ("actors", "runtime"):
        for path in sorted((TOP / package).glob("**/*.py")):
            roots = {module.split(".")[0] for module in imports(path, top_only=True)}
            allowed = {"textual"} if path.parent == TOP / "runtime/chat/screen" else set[str]()
            assert set() == roots & SLOW - allowed, path
