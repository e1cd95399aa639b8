"""`--record`: what went over the wire as wire cases that replay to the same message, and no key in any byte written."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli import debug_wire
from runtime.errors import UsageError
from runtime.events import ModelFinished, ModelRequested
from runtime.providers.http import Exchange
from runtime.providers.recording import recorder
from runtime.providers.redaction import MARK, BytesRedactor, Redactor
from runtime.wire import WIRES, WireName

CASES = sorted((Path(__file__).parents[1] / "cases" / "wire" / "cases").glob("*.json"))
RUN = [sys.executable, "-m", "runtime.cli", "run", "solo", "the task", "--model", "lab/m", "--no-input", "--json"]
KEY = "sk-planted-0123456789/abcdef"


def replayed(lines: Iterable[str]) -> list[dict[str, Any]]:
    """What `elenco debug stream` says to cases, without their names."""
    out = io.StringIO()
    assert debug_wire.stream(lines, out) == 0
    return [{**json.loads(line), "name": ""} for line in out.getvalue().splitlines()]


def recorded(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.iterdir())]


def files_below(folder: Path) -> list[bytes]:
    """Everything that was written, the journal among it."""
    found = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "journal.db" in {path.name for path in found}
    return list(found.values())


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


@pytest.mark.parametrize("path", CASES[::7], ids=[path.stem for path in CASES[::7]])
async def test_a_recorded_case_replays_to_the_same_message(
    path: Path, run: Any, server: Any, answer: Any, say: Any, tmp_path: Path
) -> None:
    """The exchanges of a run, recorded, give `elenco debug stream` the very replies and errors the run had."""
    case = load(path)
    pieces = [base64.b64decode(c) if case["encoding"] == "base64" else c.encode() for c in case["chunks"]]
    soon = {**case["headers"], "retry-after-ms": "1"}
    server.answers(answer(tuple(pieces), case["status"], soon), answer(say(case["wire"], "done")))
    outcome = await run(case["wire"], record=tmp_path / "record")
    files = recorded(tmp_path / "record")
    assert len(files) == len(server.seen) == len(outcome.of(ModelRequested))
    assert [file["request"] for file in files] == [seen.json for seen in server.seen]
    original = json.dumps({**case, "headers": soon, "request": None})
    first, *rest = replayed(json.dumps(file) for file in files)
    assert [first] == replayed([original])
    finished = outcome.of(ModelFinished)
    assert [reply["text"] for reply in (first, *rest) if reply["error"] is None] == [event.text for event in finished]


async def test_what_broke_is_recorded_as_far_as_it_came(
    run: Any, server: Any, answer: Any, say: Any, tmp_path: Path
) -> None:
    """A stream that was reset is recorded up to there, bytes that are no UTF-8 included, and replays as truncated."""
    broken = (b'data: {"choices":[{"delta":{"content":"caf\xc3', b'\xa9"}}]}\n\n: \xff\n\n')
    server.answers(answer(broken, then="reset", pause=0.001), answer(say("openai-chat", "done")))
    await run(record=tmp_path / "record")
    first, second = recorded(tmp_path / "record")
    assert (first["encoding"], second["encoding"]) == ("base64", "utf8")
    assert b"".join(map(base64.b64decode, first["chunks"])) == b"".join(broken)
    replies = replayed(json.dumps(file) for file in (first, second))
    assert [(reply["text"], reply["error"]) for reply in replies] == [
        ("café", {"kind": "truncated", "retryable": True}),
        ("done", None),
    ]


@pytest.mark.parametrize("wire", WIRES)
async def test_no_key_is_ever_written(
    wire: WireName, server: Any, answer: Any, say: Any, call: Any, tmp_path: Path
) -> None:
    """Whatever a server does with the key it was sent, no file, event or line of the program holds it."""
    workspace = tmp_path / "workspace"
    (workspace / "agents").mkdir(parents=True)
    (workspace / "agents" / "solo.md").write_text("---\nname: solo\ndescription: d\ntools: [list_files]\n---\nWork.\n")
    (workspace / "elenco.yaml").write_text(
        f"providers: {{lab: {{base_url: '{server.url}', wire: {wire}, key_env: LAB_KEY}}}}\n"
    )
    whole = b"".join(say(wire, f"your key is {KEY}, is it not?"))
    at = len(whole) // 2
    echo = {"x-echo": KEY, "set-cookie": f"key={KEY}", "content-type": "text/event-stream"}
    fault = json.dumps({"error": {"type": "overloaded_error", "message": f"{KEY} must wait"}}).encode()
    server.answers(
        answer(
            (fault.replace(b"/", b"\\/"),),
            503,
            {"retry-after-ms": "1", "content-type": "application/json", "x-echo": KEY},
        ),
        answer(call(wire, ("list_files", {"path": KEY})), 200, echo),
        answer((whole[:at], whole[at:]), 200, echo, pause=0.01),
    )
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "LAB_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY + "-the-other",
    }
    done = await trio.run_process(
        [*RUN, "--state", str(tmp_path / "state"), "--record", str(tmp_path / "record"), "--workspace", str(workspace)],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {seen.headers.get("authorization") or seen.headers.get("x-api-key") for seen in server.seen} <= {
        KEY,
        f"Bearer {KEY}",
    }
    assert len(list((tmp_path / "record").iterdir())) == len(server.seen) == 3
    everything = [*files_below(tmp_path), done.stdout, done.stderr]
    assert MARK.encode() in b"".join(everything)
    assert [KEY.encode() in data or b"0123456789\\/abc" in data for data in everything] == [False] * len(everything)


async def test_the_other_keys_of_the_environment_are_not_recorded(
    run: Any, server: Any, answer: Any, say: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of another provider, which some tool may have read, is taken out of requests and responses."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("GROQ_API_KEY", "short")
    server.answers(answer(say("openai-chat", f"a {KEY} and a short one")))
    outcome = await run(record=tmp_path / "record")
    [file] = recorded(tmp_path / "record")
    assert KEY not in json.dumps(file)
    assert outcome.report.text == "a [redacted] and a short one"


def test_recorders_of_one_folder_overwrite_nothing(tmp_path: Path) -> None:
    """Two runs may record into one folder, after earlier ones."""
    exchange = Exchange("a/very: odd ✓ name", b'{"model":"m"}', 200, {}, (b"x",))
    (tmp_path / "007-old.json").write_text("{}")
    first, second = (recorder(tmp_path, "openai-chat", []) for _ in range(2))
    for record in (first, second, first, second):
        record(exchange)
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == ["007-old.json", *(f"{number:03}-a-very-odd-name.json" for number in (8, 9, 10, 11))]


async def test_a_folder_that_cannot_be_written_is_told_before_the_run(run: Any, tmp_path: Path) -> None:
    """A --record folder that cannot be made is a usage error, not a crash."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--record"):
        await run(record=tmp_path / "file" / "record")


async def test_a_record_that_fails_is_told(run: Any, server: Any, tmp_path: Path) -> None:
    """A recording that breaks off ends the run with a word about it: what was asked for is not silently missing."""
    folder = tmp_path / "record"
    outcome = run.outcome
    async with run.opened(outcome, record=folder):
        folder.rmdir()
    assert (outcome.report.status, "could not be recorded" in outcome.report.detail) == ("failed", True)


@given(secret=st.text("ab", min_size=1, max_size=6), text=st.text("abc", max_size=60), cuts=st.sets(st.integers(1, 59)))
def test_a_secret_is_found_however_it_is_cut(secret: str, text: str, cuts: set[int]) -> None:
    """In pieces or whole, what comes out is the text with the secret replaced, and nothing else is lost."""
    redactor = Redactor([secret])
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    found = [redactor.feed(text[a:b]) for a, b in pairwise(places)]
    assert "".join([*found, redactor.close()]) == text.replace(secret, MARK)


def test_a_secret_is_found_as_json_writes_it() -> None:
    """In a raw body a secret may be escaped; text that only looks like its beginning comes out in the end."""
    redactor = BytesRedactor(['k/ey"é'])
    assert redactor.feed(b'k/ey"\xc3\xa9 k\\/ey\\"\\u00e9 k/ey\\"\xc3\xa9 k/e') == b"[redacted] [redacted] [redacted] "
    assert redactor.close() == b"k/e"
