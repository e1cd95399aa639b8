"""What an answer must not hold is found wherever it stands, told by name and place, and never repeated."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.output.forbidden import faults_in_text, faults_in_value, found_in, masked

BOTH = ("email", "key")
ADDRESSES = (
    "ada@example.com",
    "ada.lovelace+tag@mail.example.co.uk",
    "jürgen@bücher.de",
    "a_b-c@xn--bcher-kva.example",
    "x@a.io",
    "o'neill@example.org",
)
NO_ADDRESSES = (
    "@decorator",
    "name@1.2.3",
    "user@localhost",
    "a @ b.com",
    "half@",
    "git log --author=@me",
    "npm i left-pad@1.3.0",
    "5@home",
    "a@b",
)
KEYS = {
    "sk-ant-api03-" + "a" * 40: "an Anthropic key",
    "sk-or-v1-" + "0" * 64: "an OpenRouter key",
    "sk-proj-" + "Ab1_" * 12: "an API key",
    "sk-" + "A1" * 24: "an API key",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc": "a Stripe key",
    "AKIA" + "IOSFODNN7EXAMPLE": "an AWS access key",
    "ghp_" + "a1" * 18: "a GitHub token",
    "github_pat_" + "11AA22bb_" * 5: "a GitHub token",
    "glpat-" + "x" * 20: "a GitLab token",
    "xoxb-" + "123456789012-abcdefABCDEF": "a Slack token",
    "AIza" + "B" * 35: "a Google API key",
    "gsk_" + "q" * 40: "a Groq key",
    "xai-" + "z9" * 30: "an xAI key",
    "hf_" + "Hh" * 17: "a Hugging Face token",
    "npm_" + "n" * 36: "an npm token",
    "pypi-" + "AgEIcHlwaS5vcmc" * 3: "a PyPI token",
    "SG." + "a" * 22 + "." + "b" * 43: "a SendGrid key",
    "123456789:" + "A" * 35: "a Telegram bot token",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "c2lnbmF0dXJl": "a signed web token",
    "-----BEGIN OPENSSH PRIVATE " + "KEY-----": "a private key",
    "-----BEGIN " + "PRIVATE KEY-----": "a private key",
}
NO_KEYS = (
    "sk-learn is a library",
    "risk-averse",
    "task-" + "a" * 30,
    "AKIA is a prefix",
    "ghp_short",
    "hf_",
    "eyJ.eyJ.x",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_found_whole(address: str) -> None:
    """An e-mail address is found from its first to its last character, whatever stands around it."""
    for before, behind in (("", ""), ("<", ">"), ("write to ", ", please"), ("mailto:", ".")):
        text = f"{before}{address}{behind}"
        assert [address] == [text[each.start : each.end] for each in found_in(text, ["email"])]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_only_looks_like_an_address_is_none(text: str) -> None:
    """Decorators, versions and names of hosts are no addresses."""
    assert [] == found_in(text, ["email"])


@pytest.mark.parametrize(("key", "what"), KEYS.items())
def test_a_credential_is_told_by_its_kind(key: str, what: str) -> None:
    """A key of a well-known shape is found, named, and not repeated."""
    text = f"use\n  token={key}"
    (line,) = faults_in_text(text, ["key"])
    assert f"line 2, column {9}: holds {what}, which is forbidden" == line
    assert key not in line


@pytest.mark.parametrize("text", NO_KEYS)
def test_ordinary_words_are_no_credentials(text: str) -> None:
    """What merely begins like a key is none."""
    assert [] == found_in(text, ["key"])


def test_only_what_is_forbidden_is_looked_for() -> None:
    """A kind that the rules do not name may stand in an answer."""
    text = f"ada@example.com {next(iter(KEYS))}"
    assert ["an e-mail address"] == [each.what for each in found_in(text, ["email"])]
    assert ["an Anthropic key"] == [each.what for each in found_in(text, ["key"])]
    assert [] == found_in(text, [])


def test_a_value_is_searched_in_all_its_texts() -> None:
    """In a JSON value keys and texts are looked at as they are meant, not as they are written."""
    value = {"people": [{"mail": "ada@example.com"}, {"b@example.com": 1}], "n": 3}
    assert [
        "people[0].mail: holds an e-mail address, which is forbidden",
        "a key in people[1]: holds an e-mail address, which is forbidden",
    ] == faults_in_value(value, ["email"])


def test_what_is_masked_says_what_stood_there() -> None:
    """A text handed on without having been taken has the kind in the place of what was forbidden."""
    text = f"ask ada@example.com, token {next(iter(KEYS))}!"
    assert "ask [an e-mail address], token [an Anthropic key]!" == masked(text, BOTH)
    assert text == masked(text, [])


PIECES = st.sampled_from(
    [*ADDRESSES, *NO_ADDRESSES, *KEYS, *NO_KEYS, "@", ".", " ", "\n", "-", "a" * 70, "sk-", "@@", "x@y.", "é", "\u200b"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_nothing_forbidden_is_left_after_masking(text: str) -> None:
    """Whatever a text holds: findings do not overlap, and in the masked text there is none."""
    found = found_in(text, BOTH)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert [] == found_in(masked(text, BOTH), BOTH)


@pytest.mark.parametrize(
    "text", ["@" * 200_000, "a" * 200_000, "a@" * 100_000, "a." * 100_000 + "@", "eyJ" * 70_000, "sk-" * 70_000]
)
def test_no_text_makes_the_search_slow(text: str) -> None:
    """A long hostile text is searched as fast as any other: what it costs grows with its length alone."""
    assert isinstance(faults_in_text(text, BOTH), list)
