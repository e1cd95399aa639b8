"""The blog example, as a user runs it: two tools, few steps, parallel reads, and a line that says what it cost."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime import open_runtime
from runtime.events import Event, ToolFinished, ToolStarted

BLOG = Path(__file__).parent.parent.parent / "examples" / "blog"
SCRIPT = """
blog:
  - text: I look for posts on crusts.
    calls: [{name: search_posts, arguments: {query: a crust that sings when bread cools}}]
    usage: {input: 700, output: 30}
  - calls:
      - {name: read_post, arguments: {slug: a-crust-that-sings}}
      - {name: read_post, arguments: {slug: bread-without-kneading}}
      - {name: read_post, arguments: {slug: ../agents/blog}}
    usage: {input: 1100, output: 40}
  - text: "Let the bread cool on a rack [a-crust-that-sings]."
    usage: {input: 1600, output: 25}
"""


@pytest.fixture
def blog() -> Any:
    spec = importlib.util.spec_from_file_location("blog_example", BLOG / "blog.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT)
    return file


def test_the_program_answers_and_says_what_it_cost(script: Path, tmp_path: Path) -> None:
    """Run as a program, it prints the answer and one line with steps, tokens and cost."""
    arguments = [BLOG / "blog.py", "How do I get a good crust?", "--model", f"scripted/{script}", "--state", tmp_path]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(BLOG.parent.parent)}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        "Let the bread cool on a rack [a-crust-that-sings].",
        "completed: 3 steps, 3495 tokens, $0.0000",
        "",
    ]


def test_a_model_that_cannot_be_asked_is_one_line(tmp_path: Path) -> None:
    """Without the key of the model that was named, the program says so in one line and fails."""
    arguments = [BLOG / "blog.py", "crust?", "--model", "anthropic/claude-sonnet-5.5", "--state", tmp_path]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(BLOG.parent.parent)}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no key for anthropic: ")
    assert done.stderr.count("\n") == 1


async def test_the_reads_of_one_reply_run_side_by_side(blog: Any, script: Path, tmp_path: Path) -> None:
    """All reads are begun before the first ends; a slug that leads elsewhere is an error the model reads."""
    tools = blog.blog_tools(BLOG / "posts")
    events: list[Event] = []
    async with (
        open_runtime(BLOG, tools=tools, model=f"scripted/{script}", state=str(tmp_path)) as runtime,
        runtime.run("blog", "crust?") as run,
    ):
        async for record in run.events():
            events.append(record.event)
        report = await run.report()
    assert report.status == "completed"
    calls = [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert [type(event) for event in calls[2:]] == [ToolStarted] * 3 + [ToolFinished] * 3
    search, *reads = [event for event in calls if isinstance(event, ToolFinished)]
    assert search.result.split("\n")[0] == "a-crust-that-sings: A crust that sings"
    assert sum(event.is_error for event in reads) == 1
    assert {event.result.split("\n")[0] for event in reads} == {
        "# A crust that sings",
        "# Bread without kneading",
        "there is no post '../agents/blog'; search_posts finds them",
    }


def test_a_search_shows_the_five_best_posts(blog: Any, tmp_path: Path) -> None:
    """Slug, title and the fitting sentence of five posts at most, the best first; nothing found is said."""
    search, read = blog.blog_tools(BLOG / "posts")
    lines = search.run("bread crust steam flour water").split("\n")
    assert lines[0::2] == [
        "bread-without-kneading: Bread without kneading",
        "a-crust-that-sings: A crust that sings",
        "soup-from-peels: Soup from peels",
        "keeping-a-starter: Keeping a sourdough starter alive",
    ]
    assert lines[1].startswith("  Mix 400 g of flour, 300 g of water")
    assert search.run("quantum") == "no post fits"
    for number in range(8):
        (tmp_path / f"p{number}.md").write_text(f"---\ntitle: Bread {number}\n---\nBread.\n")
    (tmp_path / "bare.md").write_text("No head, but bread.\n")
    many, _ = blog.blog_tools(tmp_path)
    assert len(many.run("bread").split("\n")) == 2 * blog.HITS
    assert read.run("repairing-a-chair").startswith("# Repairing a chair that wobbles\n\nOld glue")


def test_the_agent_has_few_steps_and_tokens() -> None:
    """The agent's file bounds steps and tokens, and names just the two tools."""
    from runtime.cast import find

    definition = find(BLOG).get("blog")
    assert (definition.caps.max_steps, definition.caps.token_budget) == (8, 50_000)
    assert definition.tools == ("search_posts", "read_post")
