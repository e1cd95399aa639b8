"""Model servers that refuse, are busy, fail or die: what a person reads, which exit code, how often it was tried."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Answer: TypeAlias = tuple[int, Mapping[str, str], Sequence[bytes], bool]
Serve: TypeAlias = Callable[..., tuple[str, list[Any]]]

KEY = "sk-Zz9-never-show-this"
STREAM = {"content-type": "text/event-stream"}


def chat(*texts: str, usage: bool = True) -> list[bytes]:
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    if usage:
        end["usage"] = {"prompt_tokens": 1200, "completion_tokens": 34}
    return [*(b"data: %s\n\n" % json.dumps(each).encode() for each in (*chunks, end)), b"data: [DONE]\n\n"]


def refusal(status: int, message: str, **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message, "type": "x"}}).encode()
    return status, {"content-type": "application/json", **headers}, [body], False


GOOD: Answer = (200, STREAM, chat("It is ", "there."), False)


@pytest.fixture
def ask(elenco: Run) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Ask the writer, who has no tools, over a base URL."""

    def run(url: str, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return elenco("run", "writer", "Hello", "--model", "lab/fake-1", "--base-url", url, *words, **options)

    return run


def test_any_compatible_server_answers_and_the_cost_is_unknown(ask: Run, serve: Serve) -> None:
    """A reply over the loopback is the answer; tokens are counted and an unknown price is said, never shown as 0."""
    url, seen = serve(GOOD)
    done = ask(url, env={"LAB_API_KEY": KEY})
    assert (0, "It is there.\n") == (done.returncode, done.stdout)
    assert "completed   1 step, 1.2k tokens, cost unknown (no price for lab/fake-1), " in done.stderr
    assert "offline" not in done.stderr
    path, headers, body = seen[0]
    assert ("/v1/chat/completions", f"Bearer {KEY}", "fake-1") == (path, headers["authorization"], body["model"])
    assert KEY not in done.stderr


def test_prices_of_the_settings_are_used(ask: Run, serve: Serve, place: Path) -> None:
    """A price under `models:` gives a cost, in the closing line and in the list."""
    (place / "ws" / "elenco.yaml").write_text("models:\n  lab/fake-1: {input: 10, output: 100}\n")
    url, _ = serve(GOOD)
    assert "1.2k tokens, $0.015, " in ask(url).stderr


def test_a_near_miss_of_a_known_model_is_doubted_and_asked(elenco: Run, serve: Serve, place: Path) -> None:
    """A model nearly named as a known one is doubted in one line before it is asked; check warns at its place."""
    url, seen = serve(GOOD)
    (place / "ws" / "elenco.yaml").write_text(
        f"model: lab/sonet-5\nproviders: {{lab: {{base_url: '{url}'}}}}\nmodels: {{lab/sonnet-5: {{window: 100000}}}}\n"
    )
    told = "lab/sonet-5 is not in the model table; did you mean 'lab/sonnet-5'?"
    done = elenco("run", "writer", "Hello")
    assert (0, "It is there.\n", "sonet-5") == (done.returncode, done.stdout, seen[0][2]["model"])
    assert 1 == done.stderr.count(told)
    checked = elenco("check")
    assert 0 == checked.returncode
    assert f"elenco.yaml:1:8: warning: {told}" in checked.stdout
    refused = elenco("run", "writer", "Hello", "--cost-budget", "1")
    assert (2, f"error: cost_budget cannot be kept: {told}") == (refused.returncode, refused.stderr.strip())


def test_refused_key_is_told_at_once_and_never_tried_again(ask: Run, serve: Serve) -> None:
    """A refused key: exit 1, its variable and the cure in two lines, one request, no part of the key anywhere."""
    url, seen = serve(refusal(401, f"Incorrect API key provided: {KEY}"))
    done = ask(url, env={"LAB_API_KEY": KEY})
    assert (1, "") == (done.returncode, done.stdout)
    error, cure = done.stderr.rstrip().split("\n")[-2:]
    assert "error: lab refused the key in LAB_API_KEY (401). Not retried." == error
    assert re.fullmatch(r"       set another, then: elenco resume \w+", cure)
    assert 1 == len(seen)
    assert KEY not in done.stderr


def test_missing_key_is_asked_for(ask: Run, serve: Serve) -> None:
    """A server that wants a key and was sent none: the variable to set is named."""
    url, _ = serve(refusal(401, "no key"))
    done = ask(url)
    assert 1 == done.returncode
    assert "error: lab wants a key (401): set LAB_API_KEY" in done.stderr


def test_busy_server_is_asked_again_and_the_wait_is_shown(ask: Run, serve: Serve) -> None:
    """429 with retry-after, then a reply: completed, with a line that says which try comes when."""
    url, seen = serve(refusal(429, "slow down", **{"retry-after": "0"}), GOOD)
    done = ask(url)
    assert (0, "It is there.\n", 2) == (done.returncode, done.stdout, len(seen))
    assert re.search(r"^… lab: .*slow down.*; try 2 of 4 in 1 s$", done.stderr, re.MULTILINE)


def test_server_that_keeps_failing_is_given_up(ask: Run, serve: Serve) -> None:
    """500 again and again: exit 1 after a bounded number of tries, with the server's own words and how to go on."""
    url, seen = serve(refusal(500, "on \x1b[31mfire", **{"retry-after": "0"}))
    done = ask(url)
    assert (1, "") == (done.returncode, done.stdout)
    assert 4 == len(seen)
    assert "on \\x1b[31mfire" in done.stderr
    assert re.search(r"^failed   0 steps, .*   run (\w+)   go on: elenco resume \1$", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr


def test_unknown_model_is_told_at_once(ask: Run, serve: Serve) -> None:
    """404 is never tried again."""
    url, seen = serve(refusal(404, "The model `fake-1` does not exist"))
    done = ask(url)
    assert (1, 1) == (done.returncode, len(seen))
    assert "does not exist" in done.stderr
    assert f"; check the model's name and the address {url}\n" in done.stderr


def test_a_wire_without_a_server_is_refused(elenco: Run) -> None:
    """A dialect with nobody to speak it to is a mistake, not an answer of the offline model."""
    done = elenco("run", "writer", "Hello", "--wire", "openai-chat")
    assert (2, "") == (done.returncode, done.stdout)
    assert "error: --wire is the dialect of a server: name it as well: --base-url URL --model NAME\n" == done.stderr


def test_stream_that_dies_is_asked_again(ask: Run, serve: Serve) -> None:
    """A connection cut in the middle of a reply: what came is withdrawn, the next try is the answer."""
    url, seen = serve((200, STREAM, chat("It is not")[:1], True), GOOD)
    done = ask(url)
    assert (0, "It is there.\n", 2) == (done.returncode, done.stdout, len(seen))
    assert "try 2 of " in done.stderr


def test_closed_port_is_told_within_six_seconds(ask: Run) -> None:
    """Nobody listens: the tries are announced, the end names the URL and the flag it came from."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    done = ask(url)
    assert (1, "") == (done.returncode, done.stdout)
    lines = done.stderr.split("\n")
    assert f"… {url} refused the connection; try 2 of 3 in 1 s" in lines
    assert re.search(rf"^error: nothing listens at {url} \(from --base-url\); 3 tries in [2-5] s$", done.stderr, re.M)


def test_a_key_that_cannot_be_sent_is_refused_before_anything_begins(elenco: Run) -> None:
    """A line end in a key is told in one line that does not show the key; no run is begun."""
    done = elenco("run", "writer", "Hello", "--model", "anthropic/any", env={"ANTHROPIC_API_KEY": "hid\nden"})
    why = "the key in ANTHROPIC_API_KEY is none: it holds a space, a line end or a strange character"
    assert (2, "", f"error: {why}\n") == (done.returncode, done.stdout, done.stderr)


def test_check_asks_only_who_has_a_key(elenco: Run, serve: Serve, place: Path) -> None:
    """models --check makes one call to each provider with a key, says what came of it, and shows no key."""
    good, asked = serve(GOOD)
    bad, refused = serve(refusal(401, "no"))
    (place / "ws" / "elenco.yaml").write_text(
        f"model: lab/fake-1\nproviders:\n  lab: {{base_url: {good}, key_env: LAB_KEY}}\n"
        f"  other: {{base_url: {bad}, key_env: OTHER_KEY}}\n  third: {{base_url: {bad}, key_env: THIRD_KEY}}\n"
        "models:\n  other/m: {input: 1, output: 1}\n  third/m: {input: 1, output: 1}\n"
    )
    done = elenco("models", "--check", env={"LAB_KEY": KEY, "OTHER_KEY": KEY})
    assert 1 == done.returncode
    assert re.search(r"^✓ lab/fake-1   answered in .*, 1200 tokens in, 34 out$", done.stdout, re.MULTILINE)
    assert "✗ other/m   other refused the key in OTHER_KEY (401). Not retried." in done.stdout
    assert (1, 1) == (len(asked), len(refused))
    assert KEY not in done.stdout + done.stderr


def test_models_tells_which_keys_are_set_and_shows_none(elenco: Run, place: Path) -> None:
    """The list names each provider's variable and whether it is set, own models and prices first; nobody is asked."""
    (place / "ws" / "elenco.yaml").write_text(
        "providers:\n  lab: {base_url: 'http://127.0.0.1:9/v1'}\n"
        "models:\n  lab/big: {window: 64000, input: 1, output: 2}\n"
    )
    done = elenco("models", env={"OPENAI_API_KEY": KEY})
    assert 0 == done.returncode
    assert "OPENAI_API_KEY is set" in done.stdout
    assert "LAB_API_KEY not set" in done.stdout
    assert re.search(r"^lab/big +64k +\? +1 +2 +- +yours$", done.stdout, re.MULTILINE)
    assert KEY not in done.stdout + done.stderr
    parsed = [json.loads(line) for line in elenco("models", "--json").stdout.splitlines()]
    assert {"provider": "lab", "key_variable": "LAB_API_KEY", "key_is_set": False} in parsed
