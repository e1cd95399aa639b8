"""The tool search_web: a few hits of a search engine. The built-in back end asks a SearXNG server of the user's.

Another one is any object with a `host` and a `search`; `search_web_tool` makes the tool over it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import attrs
import trio

from runtime.messages import JsonObject
from runtime.policy.subjects import HostSubject, Subject

from ._text import counted
from ._tool import Tool, ToolError, tool
from .web_http import get, host_of, read_url

if TYPE_CHECKING:
    from runtime.config import SearchConfig

MAX_HITS = 20
MAX_SECONDS = 20.0
_MAX_BYTES = 2_000_000
_MAX_QUERY = 400
_EXCERPT_CHARS = 400


@attrs.frozen
class Hit:
    """One page that was found."""

    title: str
    url: str
    excerpt: str = ""


class SearchEngine(Protocol):
    """Who is asked. `host` is what permission rules decide about, "" where nobody has set one up."""

    @property
    def host(self) -> str: ...

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """The best hits first, `count` at most. Raises ToolError. A cancelled call leaves no connection open."""
        ...


@attrs.frozen
class SearxNG:
    """A SearXNG server, asked over its JSON interface; its settings must allow `json` under `search.formats`.

    It may be in a private network: the user has named it.
    """

    config: SearchConfig

    @property
    def host(self) -> str:
        return host_of(self.config.base_url)

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        url = read_url(f"{self.config.base_url}/search").copy_merge_params({"q": query, "format": "json"})
        if self.config.language:
            url = url.copy_merge_params({"language": self.config.language})
        with trio.move_on_after(MAX_SECONDS):
            page = await get(url, max_bytes=_MAX_BYTES, private_allowed=lambda _: True, accept="application/json")
            where = f"the search server {self.config.base_url}"
            match page.status:
                case 200:
                    return hits_of(page.body, where)[:count]
                case 403:
                    raise ToolError(f"{where} refuses JSON; in its settings.yml add json to search.formats")
                case 429 | 500 | 502 | 503 | 504:
                    raise ToolError(f"{where} answered {page.status} {page.reason}", transient=True)
                case _:
                    raise ToolError(f"{where} answered {page.status} {page.reason}".rstrip())
        raise ToolError(f"{self.config.base_url} did not answer within {MAX_SECONDS:g} s", transient=True)


@attrs.frozen
class NoEngine:
    """Nobody has said where to search."""

    host: str = ""

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """Raises ToolError always."""
        raise ToolError("no search server is set up; a person can name one in elenco.yaml: search: {base_url: URL}")


def search_web_tool(engine: SearchEngine) -> Tool:
    """The tool search_web over one engine."""

    def subject(arguments: JsonObject) -> Subject:
        return HostSubject(engine.host, "search_web")

    def preview(_: object, arguments: JsonObject) -> str:
        if not engine.host:
            raise ToolError("no search server is set up; a person can name one in elenco.yaml: search: {base_url: URL}")
        return f"ask {engine.host} for: {arguments['query']}"

    @tool(effects="none", retries=1, timeout=MAX_SECONDS * 2 + 10, subject=subject, preview=preview)
    async def search_web(query: str, count: int = 8) -> str:
        """Search the web: title, address and a few words of each hit. fetch_url reads a whole page.

        Args:
            query: What to look for, as you would type it into a search engine.
            count: How many hits to show at most.
        """
        words = " ".join(query.split())
        if not words or len(words) > _MAX_QUERY:
            raise ToolError(f"a query has 1 to {_MAX_QUERY} characters")
        hits = await engine.search(words, max(1, min(count, MAX_HITS)))
        if not hits:
            return f"nothing found for: {words}"
        rows = [f"{number}. {hit.title}\n   {hit.url}{_below(hit.excerpt)}" for number, hit in enumerate(hits, 1)]
        return "\n".join([f"{counted(len(hits), 'hit', 'hits')} for: {words}", *rows])

    return search_web


@lru_cache(maxsize=8)
def search_web_of(config: SearchConfig | None) -> Tool:
    """The tool search_web over the engine that the settings name."""
    return search_web_tool(NoEngine() if config is None else SearxNG(config))


def _below(excerpt: str) -> str:
    return f"\n   {excerpt}" if excerpt else ""


def hits_of(body: bytes, where: str) -> list[Hit]:
    """The usable hits of an answer, each address once. Raises ToolError for what is no such answer."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ToolError(f"{where} did not answer with JSON; is it a SearXNG server?") from None
    results: Any = answer.get("results") if _is_object(answer) else None
    if not _is_list(results):
        raise ToolError(f"{where} answered without a list of results; is it a SearXNG server?")
    found: dict[str, Hit] = {}
    for hit in (_hit(each) for each in results if _is_object(each)):
        if hit.url.startswith(("http://", "https://")):
            found.setdefault(hit.url, hit)
    return list(found.values())


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _hit(result: dict[str, Any]) -> Hit:
    title, url, excerpt = (
        " ".join(value.split()) if isinstance(value := result.get(key), str) else ""
        for key in ("title", "url", "content")
    )
    return Hit(title[:200] or url, url, excerpt if len(excerpt) <= _EXCERPT_CHARS else excerpt[:_EXCERPT_CHARS] + "…")
