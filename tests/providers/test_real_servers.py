"""Every wire case over a real socket, in every delivery, through whole runs: each ends rightly, nothing stays open."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from trio.testing import MockClock

from runtime import wire
from runtime.events import ModelFailed, ModelFinished, ModelRetried, ModelWithdrawn
from runtime.limits.limits import Limits
from runtime.messages import Reasoning, Text, ToolCall, UserMessage
from runtime.model import Delta, ModelRequest, ProviderError, Reply
from runtime.providers.http import HttpProvider, Server
from runtime.providers.retry import MOST_RETRY_AFTER
from runtime.providers.transport import RoutedTransport

CASES = Path(__file__).parents[1] / "cases" / "wire" / "cases"
FULL = bool(os.environ.get("ELENCO_FULL"))
FINAL = ("content_filter", "refusal", "context_window")


@attrs.frozen
class Case:
    name: str
    wire: wire.WireName
    status: int
    headers: dict[str, str]
    pieces: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def means(self, pieces: tuple[bytes, ...]) -> Reply | ProviderError:
        """What the pure decoder makes of a body that ends, however it ends, after these pieces."""
        decoder = wire.decoder(self.wire, self.status, self.headers)
        for piece in pieces:
            decoder.feed(piece)
        try:
            return decoder.close()
        except ProviderError as error:
            return error


def load(path: Path) -> Case:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    pieces = (base64.b64decode(c) if data["encoding"] == "base64" else c.encode() for c in data["chunks"])
    return Case(data["name"], data["wire"], data["status"], data["headers"], tuple(p for p in pieces if p))


ALL = [load(path) for path in sorted(CASES.glob("*.json")) if path.stem != "147-two-choices"]  # we ask for one
each_case = pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
some = random.Random(3)


def sample(count: int) -> pytest.MarkDecorator:
    """So many cases of the default suite, the same each time; all of them in the full one."""
    chosen = ALL if FULL else some.sample(ALL, count)
    return pytest.mark.parametrize("case", chosen, ids=[case.name for case in chosen])


async def ask(server: Any, case: Case, request: ModelRequest) -> tuple[Reply | ProviderError, list[Delta]]:
    """One exchange through the provider; afterwards no connection is open."""
    transport = RoutedTransport(trust_env=False)
    provider = HttpProvider(Server("server", case.wire, wire.COMPATIBLE, server.url), transport)
    shown: list[Delta] = []
    found: Reply | ProviderError
    try:
        found = await provider.complete(request, shown.extend)
    except ProviderError as error:
        found = error
    await transport.aclose()
    assert transport.stats.open_now == 0
    await server.all_left()
    return found, shown


def same(found: Reply | ProviderError, expected: Reply | ProviderError) -> None:
    if isinstance(expected, Reply):
        assert found == expected
        return
    assert isinstance(found, ProviderError)
    assert (found.kind, found.retryable, found.status) == (expected.kind, expected.retryable, expected.status)
    assert found.partial == expected.partial


@pytest.fixture
def request_() -> ModelRequest:
    return ModelRequest("some-model", ("You are one.",), (UserMessage("the task"),), actor="solo")


@each_case
async def test_a_response_is_read_from_a_socket_in_its_very_pieces(
    case: Case, server: Any, answer: Any, request_: ModelRequest
) -> None:
    """A response that comes in its recorded pieces, one write each, and in one piece, is what its bytes mean."""
    expected = case.means(case.pieces)
    server.answers(answer(case.pieces, case.status, case.headers), answer((case.body,), case.status, case.headers))
    for _ in range(2):
        found, shown = await ask(server, case, request_)
        same(found, expected)
        if isinstance(found, Reply) and case.headers.get("content-type", "").startswith("text/event-stream"):
            texts = [part.text for part in found.parts if isinstance(part, Text | Reasoning)]
            assert "".join(d.text for d in shown if d.kind != "arguments") == "".join(texts)


@sample(24)
async def test_a_slow_server_says_the_same(case: Case, server: Any, answer: Any, request_: ModelRequest) -> None:
    """A response whose pieces come late, one after the other, is the same response."""
    server.answers(answer(case.pieces, case.status, case.headers, pause=0.001))
    found, _ = await ask(server, case, request_)
    same(found, case.means(case.pieces))


@sample(16)
async def test_a_server_that_writes_byte_by_byte_says_the_same(
    case: Case, server: Any, answer: Any, request_: ModelRequest
) -> None:
    """A response that comes in writes of one byte each is the same response."""
    pieces = tuple(case.body[at : at + 1] for at in range(len(case.body)))
    server.answers(answer(pieces, case.status, case.headers))
    found, _ = await ask(server, case, request_)
    same(found, case.means(case.pieces))


# --- whole runs ----------------------------------------------------------------------------------------------------


def calls_of(case: Case) -> list[str]:
    """The tools a case names in any of its prefixes: a run that ran one too early would be caught with it."""
    names: set[str] = set()
    for end in range(len(case.pieces) + 1):
        meant = case.means(case.pieces[:end])
        reply = meant if isinstance(meant, Reply) else meant.partial
        if reply is not None:
            names |= {part.name for part in reply.parts if isinstance(part, ToolCall)}
    return sorted(name for name in names if name and name.replace("_", "").replace("-", "").isalnum())


def check(outcome: Any, meant: Reply | ProviderError, shown: bool) -> None:
    """The run ended as the first response deserves; every later response is a plain `done`."""
    report = outcome.report
    retried, failed = outcome.of(ModelRetried), outcome.of(ModelFailed)
    finished = outcome.of(ModelFinished)
    if isinstance(meant, ProviderError):
        assert outcome.ran == [], "a call of a reply that never became whole"
        assert [event.kind for event in (retried or failed)] == [meant.kind]
        assert len(outcome.of(ModelWithdrawn)) == int(shown)
        if meant.retryable and (meant.retry_after or 0) <= MOST_RETRY_AFTER:
            assert (report.status, report.text, len(finished)) == ("completed", "done", 1)
            assert retried[0].wait >= (meant.retry_after or 0)
        elif meant.kind == "context_length":
            assert (report.status, report.reason, finished) == ("stopped", "context_window", [])
        else:
            assert (report.status, finished) == ("failed", [])
            assert report.detail == failed[0].message
        return
    assert not retried
    assert not failed
    calls = [part for part in meant.parts if isinstance(part, ToolCall)]
    if meant.finish in FINAL:
        assert (report.status, report.reason, outcome.ran) == ("stopped", meant.finish, [])
        return
    runnable = [(c.name, c.arguments) for c in calls if c.arguments is not None and c.name in outcome.tools]
    assert sorted(outcome.ran, key=str) == sorted(runnable, key=str)  # reading calls run side by side
    text = "".join(part.text for part in meant.parts if isinstance(part, Text))
    if calls or meant.finish in ("length", "pause") or not text.strip():
        assert (report.status, len(finished)) == ("completed", 2)
        assert report.text.endswith("done")
    else:
        assert (report.status, report.text, len(finished)) == ("completed", text, 1)


async def play(run: Any, server: Any, case: Case, first: Any, done: Any) -> Any:
    server.answers(first, done)
    return await run(case.wire, calls_of(case), limits=Limits(timeout=7200))


@each_case
async def test_a_run_ends_as_the_response_deserves(
    case: Case, run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock, open_files: Callable[[], Any]
) -> None:
    """A run goes on after a reply, tries again after a passing error, and stops at a final one."""
    before = open_files()
    first = answer(case.pieces, case.status, case.headers)
    outcome = await play(run, server, case, first, answer(say(case.wire, "done")))
    check(outcome, case.means(case.pieces), _shows(case, case.pieces))
    assert open_files() == before


def _shows(case: Case, pieces: tuple[bytes, ...]) -> bool:
    decoder = wire.decoder(case.wire, case.status, case.headers)
    return any(decoder.feed(piece) for piece in pieces)


def broken() -> list[Any]:
    found: list[Any] = []
    for case in ALL:
        boundaries = list(range(-1, len(case.pieces) + 1))
        for then in ("reset", "stall", "hang_up"):
            places = boundaries if FULL else some.sample(boundaries, 1)
            found += [pytest.param(case, place, then, id=f"{case.name}-{then}-{place}") for place in places]
    return found if FULL else some.sample(found, 200)


@pytest.mark.parametrize(("case", "place", "then"), broken())
async def test_a_broken_response_never_passes_for_a_whole_one(
    case: Case, place: int, then: str, run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """Reset, stalled or hung up at any piece, a response counts only if its wire's own end had come."""
    pieces = case.pieces[: max(place, 0)]
    meant = case.means(pieces)
    if place < 0:
        meant = ProviderError("truncated", "", retryable=True)
    first = answer(pieces, case.status, case.headers, then=then, head=place >= 0)
    outcome = await play(run, server, case, first, answer(say(case.wire, "done")))
    check(outcome, meant, place > 0 and _shows(case, pieces))
