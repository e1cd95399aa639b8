"""What the guard looks for in long texts: the same as at every place, at a cost that grows with the text alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.limits.loops.errands import facts
from runtime.limits.loops.volatile import masked

EVERYWHERE = re.compile(r"[\w./\\-]*\d[\w./\\-]*|\w+(?:[./\\_]\w+)+|[a-z]+[A-Z]\w*")


@given(st.text("aabBZ1_-./\\ ,:=\"'é\n", max_size=30))
def test_facts_are_those_a_search_at_every_place_finds(text: str) -> None:
    """To look only where a run of letters begins misses no name, path or number."""
    assert {found.casefold().strip(".,/-\\") for found in EVERYWHERE.findall(text)} == facts(text)


@pytest.mark.parametrize("run", ["a", "-", "_", ".", "aB"])
def test_a_long_run_of_letters_holds_nobody_up(run: str) -> None:
    """A megabyte without a blank, which a tool may return, is looked through once and not from every place in it."""
    text = run * (1_000_000 // len(run))
    assert f"{text} age=~" == masked(f"{text} age=17")
    assert facts(text) <= {text[:20000].casefold().strip("-.")}
