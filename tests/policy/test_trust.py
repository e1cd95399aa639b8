"""Trust: what a workspace would switch on counts only as it was when a person agreed to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.config import ProviderConfig
from runtime.config import read as read_config
from runtime.definitions import read as read_agent
from runtime.policy.trust import (
    Survey,
    Switch,
    Trust,
    bare_agent,
    bare_config,
    counts,
    notice,
    sends_key_away,
    switches_of_agent,
    switches_of_config,
)
from runtime.trust import agree, agreed, all_agreed, is_trusted, revoke, survey

SETTINGS = """\
permissions: {allow: ["write_file(docs/**)"], ask: [fetch_url], deny: [delete_file]}
providers: {lab: {base_url: "https://models.example/v1"}, here: {base_url: "http://127.0.0.1:9/v1"}}
"""
AGENT = """\
---
name: poet
description: x
tools: [read_file]
permissions: {allow: ["shell(make *)"], deny: [write_file]}
output: {check: "checks:verse", max_chars: 100}
---
Write.
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with an agent and settings, and a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    workspace = tmp_path / "ws"
    (workspace / "agents").mkdir(parents=True)
    (workspace / "elenco.yaml").write_text(SETTINGS)
    (workspace / "agents" / "poet.md").write_text(AGENT)
    (workspace / "checks.py").write_text("def verse(text): return None\n")
    return workspace


def test_every_kind_of_switch_is_found_with_the_file_that_says_so() -> None:
    """Allow rules, Python and servers for keys are found; what forbids, asks or stays on this machine is none."""
    found = [*switches_of_config(read_config(SETTINGS, "elenco.yaml"), "elenco.yaml")]
    found += switches_of_agent(read_agent(AGENT, "agents/poet.md"), "agents/poet.md")
    assert [
        ("allow rule", "write_file(docs/**)", "elenco.yaml"),
        ("key", "providers.lab: its server is sent the key that is set for it", "elenco.yaml"),
        ("allow rule", "shell(make *)", "agents/poet.md"),
        ("Python", "checks:verse", "agents/poet.md"),
    ] == [(each.kind, each.text, each.file) for each in found]


def test_without_trust_only_what_narrows_is_left() -> None:
    """Without trust, deny, ask and limits stay; allow rules and Python go, and a foreign server gets no key."""
    config = bare_config(read_config(SETTINGS, "elenco.yaml"))
    assert ((), ("fetch_url",), ("delete_file",)) == (
        config.permissions.allow,
        config.permissions.ask,
        config.permissions.deny,
    )
    assert {"lab": True, "here": False} == {name: each.keyless for name, each in config.providers.items()}
    agent = bare_agent(read_agent(AGENT, "agents/poet.md"))
    assert ((), ("write_file",)) == (agent.permissions.allow, agent.permissions.deny)
    assert agent.output is not None
    assert (None, 100) == (agent.output.check, agent.output.max_chars)


@pytest.mark.parametrize(
    ("url", "away"),
    [
        ("http://localhost:1/v1", False),
        ("http://127.8.0.1/v1", False),
        ("http://[::1]:9/v1", False),
        ("https://models.example/v1", True),
        ("http://localhost.example/v1", True),
        ("http://127.0.0.1@models.example/v1", True),
        ("http://[", True),
        ("http://10.0.0.4/v1", True),
    ],
)
def test_a_key_goes_away_where_the_server_is_not_this_machine(url: str, away: bool) -> None:
    """A key goes away where the server is not this machine, however its address is dressed."""
    assert away == sends_key_away(ProviderConfig(url))


def test_a_workspace_without_switches_needs_no_trust() -> None:
    """A workspace without switches needs nobody's word; one with any needs the very same."""
    rule = Switch("allow rule", "write_file", "elenco.yaml")
    found = Survey("/ws", (rule,), {"elenco.yaml": "1"})
    assert counts(Survey("/ws"), None)
    assert not counts(found, None)
    assert counts(found, Trust("/ws", {"elenco.yaml": "1"}))
    assert not counts(found, Trust("/ws", {"elenco.yaml": "2"}))
    assert not counts(found, Trust("/ws", {"elenco.yaml": "1", "agents/a.md": "3"}))
    assert not counts(found, Trust("/other", {"elenco.yaml": "1"}))
    assert "1 allow rule of its files left out" in notice(found)
    assert "elenco trust" in notice(found)


def test_a_change_to_any_file_with_a_say_asks_again(place: Path) -> None:
    """A change to settings, to an agent with a switch, or to the Python it names asks again; any other does not."""
    assert not is_trusted(place)
    agree(survey(place))
    assert is_trusted(place)
    (place / "README.md").write_text("new")
    (place / "agents" / "plain.md").write_text("---\nname: plain\ndescription: x\ntools: []\n---\nx\n")
    assert is_trusted(place)
    for name in ("elenco.yaml", "agents/poet.md", "checks.py"):
        agree(survey(place))
        assert is_trusted(place)
        before = (place / name).read_text()
        (place / name).write_text(before + "\n")
        assert not is_trusted(place), name
        (place / name).write_text(before)
        assert is_trusted(place), name


def test_a_new_switch_asks_again(place: Path) -> None:
    """A new agent with an allow rule, and a new server in .mcp.json, ask again."""
    agree(survey(place))
    (place / ".mcp.json").write_text('{"mcpServers": {"time": {"command": "./serve.sh"}}}')
    assert not is_trusted(place)
    (place / "serve.sh").write_text("echo")
    agree(survey(place))
    assert is_trusted(place)
    (place / "serve.sh").write_text("echo more")
    assert not is_trusted(place)
    (place / ".mcp.json").write_text("{broken")
    (place / "agents" / "next.md").write_text(AGENT.replace("name: poet", "name: next"))
    assert not is_trusted(place)


def test_trust_is_the_folders_not_the_names(place: Path) -> None:
    """Trust holds under every name of the same folder, and not for another folder with the same files."""
    agree(survey(place))
    link = place.parent / "link"
    link.symlink_to(place)
    assert is_trusted(link)
    place.rename(place.parent / "moved")
    assert not is_trusted(place.parent / "moved")


def test_trust_is_kept_outside_and_private(place: Path) -> None:
    """What was agreed to is in the user's own folder, readable by the user alone, and can be taken back."""
    agree(survey(place))
    files = list((place.parent / "home" / ".config" / "elenco" / "trusted").iterdir())
    assert [0o600] == [file.stat().st_mode & 0o777 for file in files]
    assert 0o700 == files[0].parent.stat().st_mode & 0o777
    assert [os.path.realpath(place)] == [each.workspace for each in all_agreed()]
    assert revoke(place)
    assert not is_trusted(place)
    assert agreed(place) is None
    assert not revoke(place)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"workspace": 3}', '{"workspace": "/elsewhere", "files": {}}'])
def test_a_record_that_cannot_be_read_agrees_to_nothing(place: Path, content: str) -> None:
    """A record that is broken, or speaks of another folder, agrees to nothing."""
    agree(survey(place))
    next((place.parent / "home" / ".config" / "elenco" / "trusted").iterdir()).write_text(content)
    assert not is_trusted(place)
