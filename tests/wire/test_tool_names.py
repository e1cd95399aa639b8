"""Tool names towards providers: legal, stable, and traceable to the exact server and tool."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.names import ToolNames, expose, exposed_name

ALL: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "names" / "cases.json").read_text(encoding="utf-8")
)["cases"]


def servers_of(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(row["name"], row["tools"]) for row in rows]


def mapped(found: ToolNames) -> dict[tuple[str, str], str]:
    return {(entry.server, entry.tool): entry.name for entry in found.names}


@pytest.mark.parametrize("case", ALL, ids=[case["id"] for case in ALL])
def test_names_meet_what_each_case_requires(case: dict[str, Any]) -> None:
    """The names of a set of servers are legal, different, ordered by nothing, and lead back."""
    servers = servers_of(case["servers"])
    found = expose(servers, case["builtin"])
    names = mapped(found)
    assert len(names) == case["exposed"]
    assert sorted((r.server, r.tool) for r in found.refused) == sorted(tuple(pair) for pair in case["refuse"])
    assert all(r.why for r in found.refused)
    assert all(re.fullmatch(case["require"]["pattern"], name) for name in names.values())
    assert not set(names.values()) & set(case["builtin"])
    assert found.origins() == {name: pair for pair, name in names.items()}
    for row in case.get("readable", []):
        assert row["name_contains"] in names[row["server"], row["tool"]]
    later = mapped(expose(servers + servers_of(case.get("added_later", [])), case["builtin"]))
    assert {pair: later[pair] for pair in names} == names
    shuffled = [(name, random.Random(1).sample(tools, len(tools))) for name, tools in servers[::-1]]
    assert mapped(expose(shuffled, case["builtin"])) == names


TEXTS = st.text(st.sampled_from("ab_-. é1\ud83d"), max_size=12) | st.text(max_size=80)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12, unique=True), st.sets(TEXTS, max_size=5))
def test_any_names_become_legal_and_different(pairs: list[tuple[str, str]], builtin: set[str]) -> None:
    """Whatever servers and tools are called, no two names meet and none is a built-in one."""
    found = expose([(server, [tool]) for server, tool in pairs], builtin)
    assert len(found.origins()) == len(pairs)
    for entry in found.names:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry.name)
        assert entry.name not in builtin
        assert exposed_name(entry.server, entry.tool, builtin) == entry.name


@given(st.lists(st.text(st.sampled_from("ab_"), min_size=1, max_size=4), min_size=2, max_size=2), st.data())
def test_plain_names_never_meet(words: list[str], data: st.DataObject) -> None:
    """Underscores inside names do not make two pairs look alike."""
    other = data.draw(st.lists(st.text(st.sampled_from("ab_"), min_size=1, max_size=4), min_size=2, max_size=2))
    if words != other:
        assert exposed_name(*words) != exposed_name(*other)


def test_a_tool_dressed_up_as_a_hashed_name_gets_a_hash_of_its_own() -> None:
    """Nobody can take another's name by knowing the scheme."""
    hashed = exposed_name("a.b", "list")
    server, _, tool = hashed.partition("_")
    assert exposed_name(server, tool) != hashed
