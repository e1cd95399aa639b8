"""Long results: shortened within their limit, kept within theirs, and paged without a gap."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runtime.messages import ToolCall
from runtime.policy.paths import Workspace
from runtime.tools import ToolBox, ToolContext
from runtime.tools.results import ResultStore, page, read_result, shorten

TEXTS = st.text(alphabet="ab\n😀", max_size=600)


@given(TEXTS, st.integers(200, 500))
def test_a_shortened_text_is_head_and_tail(text: str, limit: int) -> None:
    """Within the limit the text is itself; beyond, both ends are pieces of it and the marker counts what is missing."""
    short = shorten(text, limit, "h")
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
        return
    head, _, rest = short.partition("\n[... ")
    count, _, tail = rest.partition(" ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(count.split(" ")[0]) == len(text) - len(head) - len(tail)
    assert f"start={len(head)}" in count


@given(TEXTS, st.integers(1, 100))
def test_pages_follow_without_gap_or_overlap(text: str, chars: int) -> None:
    """Reading on from each page's end gives the whole text back."""
    read = ""
    at = 0
    while True:
        piece = page(text, at, chars)
        assert piece.start == at
        read += piece.text
        at = piece.end
        if at >= piece.whole:
            break
        assert piece.text
    assert read == text


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("x", max_size=12)), max_size=12))
def test_the_store_keeps_the_newest_within_its_limit(puts: list[tuple[str, str]]) -> None:
    """What is kept is the longest run of newest texts that fits, the first one of each handle."""
    store = ResultStore(limit=20)
    model: dict[str, str] = {}
    for handle, text in puts:
        assert store.keep(handle, text) == handle
        model.setdefault(handle, text)
        while sum(map(len, model.values())) > 20:
            del model[next(iter(model))]
    assert tuple(model) == store.handles
    assert all(store.get(handle) == text for handle, text in model.items())


def test_a_text_larger_than_the_store_is_not_kept() -> None:
    """There is no handle for what cannot be read later."""
    store = ResultStore(limit=3)
    assert store.keep("a", "xxxx") is None
    assert store.get("a") is None


async def test_read_result_pages_through_what_was_kept(tmp_path: Path) -> None:
    """The tool shows a piece and where to go on; an unknown handle is an error that names the known ones."""
    store = ResultStore()
    store.keep("r1", "0123456789")
    box = ToolBox([read_result])
    ctx = ToolContext(Workspace(tmp_path), results=store)
    first = await box.run(ToolCall("c", "read_result", {"handle": "r1", "start": 2, "chars": 3}), ctx)
    assert first.content == "234\n[characters 2 to 5 of 10; go on with start=5]"
    last = await box.run(ToolCall("c", "read_result", {"handle": "r1", "start": 5}), ctx)
    assert last.content == "56789\n[characters 5 to 10 of 10; this is the end]"
    unknown = await box.run(ToolCall("c", "read_result", {"handle": "r2"}), ctx)
    assert unknown.is_error
    assert "kept: r1" in unknown.content
