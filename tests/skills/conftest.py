"""Skills on disk: the shared cases with their links and pipes, and a stage on which agents use some."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

CASES = Path(__file__).parent.parent / "cases" / "skills"
FILLER = "This line is filler text for a very large body and means nothing at all.\n"
LARGE = {
    "body-5mb": "---\nname: body-5mb\ndescription: Five megabytes of body.\n---\n# Start of body\n" + FILLER * 71_000,
    "dash-flood": "---\nname: dash-flood\ndescription: No closing marker in a large file.\n" + FILLER * 20_000,
    "huge-front": "---\nname: huge-front\ndescription: Big frontmatter.\nmetadata:\n"
    + "".join(f"  k{number:05}: v\n" for number in range(60_000))
    + "---\nBody\n",
}
"""The large ones of the cases are made here, like the others' links and pipes."""

Skills: TypeAlias = Callable[..., Path]


def stored(path: str) -> str:
    """Under which name the cases keep a file: no tool shall pick them up from where they lie."""
    return "/".join(f"dot-{part[1:]}" if part.startswith(".") else part for part in path.split("/"))


@pytest.fixture(scope="session")
def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CASES / "expected.json").read_text())["skills"]
    return found


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, cases: list[dict[str, Any]]) -> Path:
    """A project and a home full of skills, good and bad."""
    root = tmp_path_factory.mktemp("cases")
    for case in cases:
        if case.get("made_by_setup"):
            continue
        file = root / case["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.parent.name in LARGE:
            file.write_text(LARGE[file.parent.name])
        else:
            shutil.copyfile(CASES / "tree" / stored(case["path"]), file)
    for step in json.loads((CASES / "expected.json").read_text())["setup"]:
        path = root / step["path"]
        match step["op"]:
            case "mkdir":
                path.mkdir(parents=True, exist_ok=True)
            case "file":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step["content"])
            case "symlink":
                path.symlink_to(step["target"])
            case _:
                os.mkfifo(path)
    return root


@pytest.fixture
def write_skill() -> Skills:
    """Write a skill: `write_skill(folder, body, allowed=…, files={…})`."""

    def write(
        folder: Path,
        body: str = "Do it.",
        *,
        description: str = "Does something.",
        allowed: str = "",
        files: dict[str, str] | None = None,
        more: str = "",
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        tools = f"allowed-tools: {allowed}\n" if allowed else ""
        front = f"---\nname: {folder.name}\ndescription: {description}\n{tools}{more}---\n"
        (folder / "SKILL.md").write_text(f"{front}{body}\n")
        for name, content in (files or {}).items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return folder

    return write
