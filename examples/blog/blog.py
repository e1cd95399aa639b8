"""Ask a folder of blog posts: two tools, one agent, and a line that says what the answer cost.

python examples/blog/blog.py "How do I get a good crust?"
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import trio

from runtime import ElencoError, Report, Tool, ToolError, open_runtime, tool

HERE = Path(__file__).parent
HITS = 5
EXCERPT = 160
WORD = re.compile(r"\w{3,}")


def blog_tools(folder: Path) -> list[Tool]:
    """The two tools over the posts in a folder; the name of a file, without .md, is a post's slug."""

    @tool(effects="none")
    def search_posts(query: str) -> str:
        """Find the posts that fit a question best: slug, title and an excerpt of five at most.

        Args:
            query: A few words that the posts may use.
        """
        wanted = set(words(query))
        posts = [(file.stem, *read(file)) for file in sorted(folder.glob("*.md"))]
        scores = {slug: score(wanted, title, text) for slug, title, text in posts}
        best = sorted((post for post in posts if scores[post[0]]), key=lambda post: -scores[post[0]])[:HITS]
        return "\n".join(f"{slug}: {title}\n  {excerpt(text, wanted)}" for slug, title, text in best) or "no post fits"

    @tool(effects="none")
    def read_post(slug: str) -> str:
        """Read a whole post.

        Args:
            slug: The post's slug, as search_posts gives it.
        """
        file = folder / f"{slug}.md"
        if file.parent != folder or not file.is_file():
            raise ToolError(f"there is no post {slug!r}; search_posts finds them")
        title, text = read(file)
        return f"# {title}\n\n{text}"

    return [search_posts, read_post]


def read(file: Path) -> tuple[str, str]:
    """A post's title and text; what stands between two lines of dashes at its head is about the post."""
    text = file.read_text(encoding="utf-8")
    head = ""
    if text.startswith("---\n"):
        _, head, text = text.split("---\n", 2)
    title = re.search(r"^title: (.*)$", head, re.MULTILINE)
    return (title[1] if title else file.stem), text.strip()


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def score(wanted: set[str], title: str, text: str) -> float:
    """How well a post fits: each word of the question counts once, three times in the title; ties go to the shorter."""
    found = len(wanted & set(words(text))) + 3 * len(wanted & set(words(title)))
    return found and found + 1 / len(text)


def excerpt(text: str, wanted: set[str]) -> str:
    """The sentence that fits best, on one line."""
    sentences = re.split(r"(?<=[.:?!])\s+", " ".join(text.split()))
    return max(sentences, key=lambda sentence: len(wanted & set(words(sentence))))[:EXCERPT]


def cost_line(report: Report) -> str:
    """What the answer cost; an unknown price is said to be unknown."""
    dollars = "cost unknown" if report.cost_usd is None else f"${report.cost_usd:.4f}"
    return f"{report.status}: {report.steps} steps, {report.usage.total} tokens, {dollars}"


async def ask(
    question: str, model: str | None = None, state: str | None = None, posts: Path = HERE / "posts"
) -> Report:
    """The report on one question. Raises ElencoError."""
    async with (
        open_runtime(HERE, tools=blog_tools(posts), model=model, state=state) as runtime,
        runtime.run("blog", question) as run,
    ):
        return await run.report()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question")
    parser.add_argument("--model", help="PROVIDER/MODEL; by default the first provider with a key")
    parser.add_argument("--state", help="the folder that records of runs are kept in")
    given = parser.parse_args()
    try:
        report = trio.run(ask, given.question, given.model, given.state)
    except ElencoError as error:
        sys.exit(f"error: {error}")
    print(report.text)
    print(cost_line(report))


if __name__ == "__main__":
    main()
