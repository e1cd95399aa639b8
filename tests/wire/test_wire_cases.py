"""The cases of the three wires: what a response means, however its bytes were cut."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.messages import Reasoning, Text

CASES = Path(__file__).parents[1] / "cases" / "wire"
CUTS = 64


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


def body(case: dict[str, Any]) -> bytes:
    chunks: list[str] = case["chunks"]
    return b"".join(base64.b64decode(c) if case["encoding"] == "base64" else c.encode() for c in chunks)


ALL = [load(path) for path in sorted((CASES / "cases").glob("*.json"))]
RECORDINGS = sorted((CASES / "recordings").glob("*.sse"))
each_case = pytest.mark.parametrize("case", ALL, ids=[case["name"] for case in ALL])
each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])


@pytest.fixture(name="shown")
def shown_fixture(decode: Any, written: Any) -> Callable[[dict[str, Any], list[bytes]], dict[str, Any]]:
    def shown(case: dict[str, Any], chunks: list[bytes]) -> dict[str, Any]:
        n = case.get("request", {}).get("n", 1)
        reply, error, _ = decode(case["wire"], chunks, case["status"], case["headers"], n)
        found: dict[str, Any] = written(reply, error)
        return found

    return shown


@each_case
def test_a_response_means_what_its_case_expects(case: dict[str, Any], shown: Any) -> None:
    """A response decodes to what its case expects, or to one of the readings the case allows."""
    found = shown(case, [body(case)])
    allowed = [case["expect"], *({**case["expect"], **other} for other in case.get("expect_alternatives", []))]
    assert any(all(found[key] == value for key, value in expected.items()) for expected in allowed), found


@each_case
def test_the_same_bytes_give_the_same_message_in_any_cut(case: dict[str, Any], shown: Any) -> None:
    """The bytes of a response in one piece, one by one, and cut in two anywhere give one and the same message."""
    data = body(case)
    whole = shown(case, [data])
    assert shown(case, [data[i : i + 1] for i in range(len(data))]) == whole
    places = list(range(1, len(data)))
    if not os.environ.get("ELENCO_FULL"):
        places = random.Random(case["name"]).sample(places, min(CUTS, len(places)))
    for place in places:
        assert shown(case, [data[:place], data[place:]]) == whole, place


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=st.sampled_from(ALL), choice=st.randoms(use_true_random=False), pieces=st.integers(3, 40))
def test_many_cuts_at_once_change_nothing(case: dict[str, Any], choice: random.Random, pieces: int, shown: Any) -> None:
    """A response that arrives in many pieces, empty ones among them, means what it means whole."""
    data = body(case)
    places = sorted(choice.randrange(len(data) + 1) for _ in range(pieces))
    chunks = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert shown(case, chunks) == shown(case, [data])


@each_recording
def test_recordings_of_a_real_server_decode_in_any_cut(path: Path, decode: Any, written: Any) -> None:
    """What a real server sent decodes alike whole and in odd pieces."""
    data = path.read_bytes()
    whole = written(*decode("openai-chat", [data])[:2])
    step = random.Random(path.name)
    for _ in range(4):
        chunks: list[bytes] = []
        at = 0
        while at < len(data):
            size = step.randrange(1, 200)
            chunks.append(data[at : at + size])
            at += size
        assert written(*decode("openai-chat", chunks)[:2]) == whole


def test_recordings_say_how_they_ended(decode: Any, written: Any) -> None:
    """A finished recording has its finish, an empty one under HTTP 200 is truncated."""
    ends: dict[str, Any] = {}
    for path in RECORDINGS:
        shown = written(*decode("openai-chat", [path.read_bytes()])[:2])
        ends[path.stem.split("-")[0]] = shown["finish"] or shown["error"]["kind"]
    assert ends == {
        "1": "stop",
        "2": "stop",
        "3": "tool_calls",
        "4": "stop",
        "5": "length",
        "6": "truncated",
        "7": "stop",
        "8": "length",
    }


@each_case
def test_shown_deltas_add_up_to_the_reply(case: dict[str, Any], decode: Any) -> None:
    """What was shown while a reply streamed is its text, its reasoning and nothing else."""
    if not case["headers"].get("content-type", "").startswith("text/event-stream"):
        return
    reply, _, deltas = decode(case["wire"], [body(case)], case["status"], case["headers"])
    if reply is None:
        return
    text = "".join(delta.text for delta in deltas if delta.kind == "text")
    reasoning = "".join(delta.text for delta in deltas if delta.kind == "reasoning")
    assert text == "".join(part.text for part in reply.parts if isinstance(part, Text))
    assert reasoning == "".join(part.text for part in reply.parts if isinstance(part, Reasoning))
