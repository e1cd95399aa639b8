"""A run with everything a page shows, for tests and pictures: parallel children, a loop, an approval, a long turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTILE = "<img src=x onerror=\"window.owned='yes'\"><script>window.owned='yes'</script>"
"""Markup that a model, a file's name and a tool's result may hold; it must stay text."""

FILES = {
    "README.md": "# Splitter\n\nWords are separated by blanks.\nEvery retry waits twice as long as the one before.\n",
    "src/parse.py": "def words(s: str) -> list[str]:\n    return s.split()\n",
    "docs/limits.md": "# Limits\n\nA run has at most ninety steps.\n\nEach child has its own beside them.\n",
    "docs/build.log": "".join(f"step {number}: ok\n" for number in range(1, 40)),
}


def prepare(workspace: Path, *, hostile: str = "", stall: float = 600.0, thinking: float = 0.0) -> str:
    """Write the files and the script into a workspace, and return the value of --model for it.

    `hostile` is put wherever a model or a file can put text; `stall` is how long the writer's turn takes, `thinking`
    how long every other one does.
    """
    for name, content in FILES.items():
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    if hostile:
        (workspace / hostile.replace("/", "_")).write_text(hostile)
    (workspace / "scene.json").write_text(json.dumps(_turns(hostile, stall, thinking)))
    return "scripted/scene.json"


def _turns(hostile: str, stall: float, thinking: float) -> dict[str, Any]:
    def read(path: str) -> dict[str, Any]:
        return {"name": "read_file", "arguments": {"path": path}}

    def turn(text: str, *calls: dict[str, Any], tokens: tuple[int, int], **more: Any) -> dict[str, Any]:
        usage = {"input": tokens[0], "output": tokens[1], "cached_input": tokens[0] // 2}
        return {"text": text + hostile, "calls": list(calls), "usage": usage, "stall": thinking, **more}

    release = "# Release notes\n\n- Words are split at blanks.\n- A retry waits twice as long as the one before.\n"
    return {
        "coordinator": [
            turn(
                "I let the files be looked at and the limits be checked side by side.",
                {
                    "name": "delegate_to_researcher",
                    "arguments": {"task": "How are words split? Quote the code." + hostile},
                },
                {"name": "delegate_to_reviewer", "arguments": {"task": "Check what docs/limits.md says about limits."}},
                {"name": "list_files", "arguments": {"path": "."}},
                tokens=(2100, 180),
                reasoning="The task has two independent parts.\nBoth can go on at once." + hostile,
            ),
            turn(
                "Both have reported; I write the notes.",
                {"name": "write_file", "arguments": {"path": "docs/notes.md", "content": release + hostile}},
                tokens=(4300, 240),
            ),
            turn(
                "Now the writer makes a text of it.",
                {"name": "delegate_to_writer", "arguments": {"task": "Two sentences for the release page."}},
                tokens=(5200, 60),
            ),
            turn("Words are split at blanks [src/parse.py:2]. The limits are as documented.", tokens=(5600, 90)),
            {"text": "Nothing more.", "repeat": 20},
        ],
        "researcher": [
            turn("I look for it.", {"name": "search_text", "arguments": {"pattern": "split"}}, tokens=(900, 40)),
            turn("I wait for the build.", read("docs/build.log"), tokens=(1500, 30), repeat=12),
            turn("Words are split at blanks: `return s.split()` [src/parse.py:2]", tokens=(3100, 70)),
            {"text": "Nothing more.", "repeat": 20},
        ],
        "reviewer": [
            turn("I read both.", read("docs/limits.md"), read("README.md"), read("src/parse.py"), tokens=(1200, 50)),
            turn("Two statements hold.", tokens=(2000, 40)),
            {"text": "Nothing more.", "repeat": 20},
        ],
        "writer": [
            turn("It splits words at blanks.", tokens=(800, 40), reasoning="Short and plain.", stall=stall),
            {"text": "Nothing more.", "repeat": 20},
        ],
    }
