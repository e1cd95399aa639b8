"""What was typed before: recalled, and kept without keys where nobody else reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.chat.discreet import kept
from runtime.chat.screen.early import Early, read
from runtime.chat.typed import KEPT, Typed

KEY = "sk-ant-api03-" + "Ab1" * 12


def file_of(state: Path) -> Path:
    (found,) = (state / "chat").iterdir()
    return found


def test_a_key_that_was_typed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No known secret and nothing that looks like a key goes to the disk; for this chat it stays as it was typed."""
    monkeypatch.setenv("LAB_API_KEY", "kN0wn-and-secret-1234")
    typed = Typed.of(tmp_path, tmp_path)
    said = f"use {KEY} or kN0wn-and-secret-1234, password: hunter2-and-more"
    typed.add(said)
    assert said == typed.back("")
    file = file_of(tmp_path)
    assert 0o600 == file.stat().st_mode & 0o777
    assert 0o700 == file.parent.stat().st_mode & 0o777
    assert '"use [an Anthropic key] or [redacted], password: [redacted]"\n' == file.read_text()
    assert ["use [an Anthropic key] or [redacted], password: [redacted]"] == Typed.of(tmp_path, tmp_path).lines


def test_what_an_earlier_elenco_kept_is_cleaned(tmp_path: Path) -> None:
    """A file with a key in it, or that others may read, is written anew when a chat begins."""
    Typed.of(tmp_path, tmp_path).add("hello")
    file = file_of(tmp_path)
    file.write_text(json.dumps(f"my key: {KEY}") + "\n")
    file.chmod(0o644)
    assert ["my key: [an Anthropic key]"] == Typed.of(tmp_path, tmp_path).lines
    assert (KEY in file.read_text(), file.stat().st_mode & 0o777) == (False, 0o600)
    assert [file] == list(file.parent.iterdir())


@pytest.mark.parametrize(
    ("data", "early"),
    [
        (b"", Early()),
        (b"hello", Early((), "hello")),
        (b"one\ntwo\rthr", Early(("one", "two"), "thr")),
        (b"\n \n", Early()),
        ("ein Wort fü".encode()[:-1], Early((), "ein Wort f\ufffd")),
        (b"a\x1b[A\x1bOP\x1bx\x03\x11b\tc\x1b", Early((), "ab\tc")),
    ],
)
def test_keys_before_the_screen_are_lines_sent_and_one_begun(data: bytes, early: Early) -> None:
    """Enter sends, before as in the screen; keys that are no text are dropped."""
    assert early == read(data)


def test_each_line_is_recalled_once_and_the_oldest_are_forgotten(tmp_path: Path) -> None:
    """Going back shows the newest first, each once, and what was being typed comes again at the end."""
    typed = Typed.of(tmp_path, tmp_path)
    for text in ("one", "two", "one"):
        typed.add(text)
    assert ["one", "two", None] == [typed.back("now") for _ in range(3)]
    assert ["one", "now", None] == [typed.forth() for _ in range(3)]
    for number in range(2 * KEPT + 1):
        typed.add(str(number))
    again = Typed.of(tmp_path, tmp_path)
    assert (KEPT, "1000") == (len(again.lines), again.lines[-1])
    assert KEPT == len(file_of(tmp_path).read_text().splitlines())


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("what is a token?", "what is a token?"),
        ("set max_tokens: 100000 please", "set max_tokens: 100000 please"),
        ("the password is long", "the password is long"),
        ("API_KEY=abcdefgh12 run", "API_KEY=[redacted] run"),
        ('{"token": "abcdefgh12"}', '{"token": "[redacted]"}'),
        ("curl -H 'Authorization: Bearer abcdefgh12'", "curl -H 'Authorization: Bearer [redacted]'"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAA==\n-----END RSA PRIVATE KEY-----\nwhat is it?",
            "[a private key]\nwhat is it?",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow", "[a private key]"),
    ],
)
def test_keys_are_known_by_their_shape_and_by_their_name(text: str, clean: str) -> None:
    """What has the shape of a key goes, and a value whose name says what it is; words about keys stay."""
    assert clean == kept(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_surroundings_bring_a_known_secret_to_the_disk(before: str, after: str) -> None:
    """Whatever stands around a known secret, it goes."""
    assert "kN0wn-and-secret" not in kept(f"{before}kN0wn-and-secret{after}", ["kN0wn-and-secret"])
