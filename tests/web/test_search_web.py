"""search_web: hits of a SearXNG server, and what is told where there is none, or another kind of server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from runtime.app import plan
from runtime.config import SearchConfig, read
from runtime.errors import DefinitionError
from runtime.known import ModelFlags
from runtime.messages import ToolCall
from runtime.outline import RunOptions
from runtime.policy.subjects import HostSubject
from runtime.tools import Problem, ToolBox, ToolError
from runtime.tools.registry import built_in
from runtime.tools.web_search import Hit, NoEngine, SearxNG, hits_of, search_web_tool

RESULTS = [
    {"title": "Trio  docs", "url": "https://trio.example/", "content": "A friendly\nlibrary " + "x" * 500, "score": 3},
    {"title": "", "url": "https://b.example/", "content": None},
    {"title": "again", "url": "https://trio.example/"},
    {"title": "odd", "url": "javascript:alert(1)"},
    "no object",
]
JSON = (("content-type", "application/json"),)


async def test_hits_are_numbered_with_address_and_excerpt(reader: Any, web: Any) -> None:
    """Titles in one line, each address once, only addresses of the web; the query and the language are sent."""
    web.page("/search", json.dumps({"query": "q", "results": RESULTS}), headers=JSON)
    tool = search_web_tool(SearxNG(SearchConfig(web.url(""), "de")))
    result = await reader.use(tool, query="  trio & \n co ", count=5)
    assert not result.is_error, result.content
    head, *rows = result.content.split("\n")
    assert head == "2 hits for: trio & co"
    assert rows[:2] == ["1. Trio docs", "   https://trio.example/"]
    assert rows[2].startswith("   A friendly library xxx")
    assert rows[2].endswith("x…")
    assert rows[3:] == ["2. https://b.example/", "   https://b.example/"]
    asked = urlsplit(str(web.asked[0].target))
    assert asked.path == "/search"
    assert parse_qs(asked.query) == {"q": ["trio & co"], "format": ["json"], "language": ["de"]}


async def test_no_more_hits_than_asked_for(reader: Any, web: Any) -> None:
    """The count is kept to, and nothing found is said so."""
    many = [{"title": f"t{number}", "url": f"https://e.example/{number}"} for number in range(50)]
    web.page("/search", json.dumps({"results": many}), headers=JSON)
    tool = search_web_tool(SearxNG(SearchConfig(web.url(""))))
    assert (await reader.use(tool, query="x", count=3)).content.startswith("3 hits")
    assert (await reader.use(tool, query="x", count=1000)).content.startswith("20 hits")
    web.page("/search", json.dumps({"results": []}), headers=JSON)
    assert (await reader.use(tool, query="x")).content == "nothing found for: x"
    assert "1 to 400 characters" in (await reader.use(tool, query="  ")).content


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (403, "", "add json to search.formats"),
        (404, "", "answered 404"),
        (302, "", "answered 302"),
        (503, "", "answered 503"),
        (200, "<html>", "did not answer with JSON"),
        (200, "[]", "without a list of results"),
        (200, '{"results": {}}', "without a list of results"),
        (200, "[" * 100_000, "did not answer with JSON"),
    ],
)
async def test_another_kind_of_server_is_told(reader: Any, web: Any, status: int, body: str, why: str) -> None:
    """What is no SearXNG answer is an error with its cure."""
    web.page("/search", body, status=status, headers=(*JSON, ("location", "http://elsewhere.example/")))
    result = await reader.use(search_web_tool(SearxNG(SearchConfig(web.url("")))), query="x")
    assert result.is_error
    assert why in result.content
    assert len(web.asked) == (2 if status == 503 else 1)


async def test_with_no_server_the_cure_is_told_and_nobody_is_asked() -> None:
    """The tool is there without settings, and says what to set."""
    tool = search_web_tool(NoEngine())
    call = ToolCall("c", "search_web", {"query": "x"})
    found = await ToolBox([tool]).preview(call, {"query": "x"}, None)  # type: ignore[arg-type]  # it asks nothing of it
    assert isinstance(found, Problem)
    assert "search: {base_url: URL}" in found.text
    with pytest.raises(ToolError):
        await NoEngine().search("x", 1)


async def test_any_object_that_searches_is_an_engine(reader: Any) -> None:
    """Another back end needs a host and a search."""

    class Fixed:
        host = "search.example"

        async def search(self, query: str, count: int) -> Sequence[Hit]:
            await trio.lowlevel.checkpoint()
            return [Hit("one", "https://one.example/", query)][:count]

    tool = search_web_tool(Fixed())
    assert tool.subject is not None
    assert tool.subject({"query": "x"}) == HostSubject("search.example", "search_web")
    assert (await reader.use(tool, query="x")).content.endswith("1. one\n   https://one.example/\n   x")


def test_the_settings_name_the_server(tmp_path: Path) -> None:
    """`search: {base_url}` in elenco.yaml reaches the tool of a run."""
    (tmp_path / "elenco.yaml").write_text("search: {base_url: 'http://localhost:8888/', language: en}\n")
    ready = plan(RunOptions(agent="researcher", task="t", workspace=tmp_path, model=ModelFlags("offline/extract")))
    tool = ready.tools["search_web"]
    ready.workspace.close()
    assert tool.subject is not None
    assert tool.subject({}) == HostSubject("localhost", "search_web")
    assert {"fetch_url", "search_web"} <= {each.name for each in built_in()}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("search: {base_url: localhost}", "begins with http:// or https://"),
        ("search: {base_url: 'https://'}", "begins with http:// or https://"),
        ("search: {base_ulr: http://a}", "did you mean 'base_url'"),
        ("search: {language: en}", "needs a base_url"),
        ("search: 3", "mapping"),
        ("approvals: {timeout: 0}", "at least 1"),
        ("approvals: {timeout: soon}", "number of seconds"),
        ("approvals: {wait: 3}", "unknown key 'wait'"),
        ("context: {summary_model: ''}", "needs a model"),
    ],
)
def test_a_slip_in_the_settings_is_told_with_its_line(text: str, why: str) -> None:
    """Wrong values and unknown keys are faults of the file."""
    with pytest.raises(DefinitionError) as caught:
        read(text + "\n", "elenco.yaml")
    assert why in str(caught.value)
    assert str(caught.value).startswith("elenco.yaml:1:")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["results", "url", "title", "content"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_json_gives_hits_or_a_plain_error(answer: Any) -> None:
    """Whatever a server sends, there are hits with web addresses, or a ToolError."""
    try:
        hits = hits_of(json.dumps(answer).encode(), "server")
    except ToolError:
        return
    assert all(hit.url.startswith(("http://", "https://")) for hit in hits)
