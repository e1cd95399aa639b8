"""Secrets: known by value, taken out of texts, pieces, events and contents, and of nothing else."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.events import ToolFinished, ToolRequested, Warned
from runtime.journal.rows import encode_body
from runtime.secrecy import Veil, secrets_of, without_password

KEY = 'sk-pl"anted/0123456789'


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789", True),
        ("GITHUB_TOKEN", "ghp_0123456789", True),
        ("DB_PASSWORD", "correct horse battery", True),
        ("aws_secret_access_key", "wJalrXUtnFEMI", True),
        ("TOKEN", "short", False),
        ("SSH_KEY", "/root/.ssh/id_ed25519", False),
        ("GOOGLE_CREDENTIALS", "~/google-key.json", False),
        ("KEYBOARD", "en_US.UTF-8.qwerty", False),
        ("TOKENIZERS_PARALLELISM", "false-and-more", False),
        ("SECRET_BACKEND", "vault-in-the-cloud", False),
        ("MONKEY", "see-no-evil-hear", False),
    ],
)
def test_a_variable_is_secret_by_its_name_and_not_by_accident(name: str, value: str, secret: bool) -> None:
    """What a variable holds is a secret if its name ends in a word for one and the value is no path or short word."""
    assert ((value,) if secret else ()) == secrets_of({name: value})


def test_passwords_in_addresses_are_secrets_in_every_dress() -> None:
    """A password in an address is known as written, decoded, and as an Authorization header carries it."""
    found = secrets_of({"DATABASE_URL": "postgres://ada:p%40ssword@db/x"}, addresses=["http://bob:hunter22@h/v1"])
    assert {"p%40ssword", "p@ssword", "YWRhOnBAc3N3b3Jk", "hunter22", "Ym9iOmh1bnRlcjIy"} == set(found)
    assert () == secrets_of({}, addresses=["http://h/v1", "http://[", "http://me@h", "http://u:x@h"])


def test_keys_that_are_ordinary_words_stay() -> None:
    """A key of a local server that is a short word is no secret."""
    assert (KEY,) == secrets_of({}, ["none", "ollama", KEY])


def test_an_event_is_clean_in_every_field() -> None:
    """A secret is taken out of keys and values at any depth; an event without one stays the same object."""
    veil = Veil([KEY])
    event = ToolRequested(
        actor="a", call_id="c", name="t", arguments={"x": [KEY, {KEY: f"a{KEY}b"}]}, arguments_error=None
    )
    clean = veil.event(event)
    assert {"x": ["[redacted]", {"[redacted]": "a[redacted]b"}]} == clean.arguments
    assert isinstance(clean, ToolRequested)
    plain = Warned(text="nothing here")
    assert plain is veil.event(plain)
    finished = ToolFinished(
        actor="a", call_id="c", name="t", result=KEY, is_error=False, seconds=0.0, images=({"data": KEY},)
    )
    assert KEY not in repr(veil.event(finished))


PIECES = st.text(st.characters(codec=None, categories=None), max_size=4) | st.sampled_from(["\\", '"', "/", "\\u0041"])


@given(
    st.text(st.characters(codec=None, exclude_characters=string.ascii_lowercase + "_"), min_size=1, max_size=3),
    PIECES,
    PIECES,
    st.booleans(),
)
def test_no_secret_in_an_event_is_overlooked_in_its_json(secret: str, before: str, after: str, key: bool) -> None:
    """An event whose JSON cannot hold a secret holds none, whatever characters secret and event are made of."""
    veil = Veil([secret])
    text = f"{before}{secret}{after}"
    arguments = {text: 1} if key else {"x": [before, text]}
    event = ToolRequested(actor="a", call_id="c", name="t", arguments=arguments, arguments_error=None)
    assert event is not veil.event(event)
    assert veil.may_stand_in(encode_body(event))


def test_an_event_that_cannot_hold_a_secret_is_known_by_its_json() -> None:
    """The JSON of an event without the secret says so, also beside one that holds half of it."""
    veil = Veil([KEY])
    assert not veil.may_stand_in(encode_body(Warned(text="nothing here")))
    assert not veil.may_stand_in(encode_body(Warned(text=KEY[:-1])))


def test_contents_that_hold_a_secret_are_known_as_json_too() -> None:
    """A content holds a secret as it is, or as JSON writes it."""
    veil = Veil([KEY])
    assert veil.holds(f"KEY={KEY}".encode())
    assert veil.holds(json.dumps({"k": KEY}).encode())
    assert not veil.holds(KEY[:-1].encode())
    assert not Veil().holds(b"x")
    assert (False, True) == (bool(Veil([""])), bool(veil))


@given(st.lists(st.sampled_from(["sk-ab", "abcd", "s", "k-", "x", "sk-abcd"]), max_size=12), st.data())
def test_no_cut_lets_a_secret_through(texts: list[str], data: st.DataObject) -> None:
    """However a text is cut into pieces, what is shown holds no secret, and nothing else is lost."""
    secret = "sk-abcd"
    text = "".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    stream = Veil([secret]).stream()
    shown = "".join(stream.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    assert secret not in shown
    assert Veil([secret]).text(text) == shown + stream.close()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://a:b@h:1/v1", "http://…@h:1/v1"),
        ("https://h/v1?key=abc", "https://h/v1?…"),
        ("http://h/v1", "http://h/v1"),
        ("a:b@h", "…@h"),
        ("http://a:b@c@h/@x", "http://…@h/@x"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    """An address is shown without user, password and query."""
    assert shown == without_password(address)
