"""A desk with a workspace on it, and the tools to work on its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from runtime.messages import ToolCall
from runtime.policy.paths import Workspace
from runtime.tools import ToolBox, ToolContext
from runtime.tools.memory import Memory
from runtime.tools.registry import built_in


@attrs.define(eq=False)
class Desk:
    """One actor at work: `said` runs a tool that must succeed, `fault` one that must not; `changes` were reported."""

    folder: Path
    ctx: ToolContext
    box: ToolBox = attrs.Factory(lambda: ToolBox(built_in()))
    changes: list[tuple[str, bytes | None, bytes | None, str]] = attrs.Factory(
        list[tuple[str, "bytes | None", "bytes | None", str]]
    )

    def hear(self, path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
        self.changes.append((path, before, after, diff))

    async def said(self, name: str, **arguments: Any) -> str:
        result = await self.box.run(ToolCall("c", name, arguments), self.ctx)
        assert not result.is_error, result.content
        return result.content

    async def fault(self, name: str, **arguments: Any) -> str:
        result = await self.box.run(ToolCall("c", name, arguments), self.ctx)
        assert result.is_error, result.content
        assert "Traceback" not in result.content
        return result.content

    def put(self, path: str, content: bytes | str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    async def known(self, path: str, content: bytes | str) -> Path:
        """A file that the actor has read."""
        file = self.put(path, content)
        await self.said("read_file", path=path)
        return file

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def after_restart(self, seen: dict[str, str]) -> Desk:
        """The same desk for another process, that has on record what the actor knew then."""
        memory = Memory()
        memory.restore(seen, ())
        other = Desk(self.folder, attrs.evolve(self.ctx, memory=memory))
        other.ctx = attrs.evolve(other.ctx, changed=other.hear)
        return other


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Workspace(tmp_path) as workspace:
        desk = Desk(tmp_path, ToolContext(workspace))
        desk.ctx = attrs.evolve(desk.ctx, changed=desk.hear)
        yield desk
