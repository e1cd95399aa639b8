"""Long replies are laid out in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.chat.blocks import LONGEST, blocks

LINES = st.lists(
    st.sampled_from(["", "plain words", "# head", "```python", "```", "~~~", "  ```", "````", "x" * 30, "- item"]),
    max_size=40,
)


@given(st.text(alphabet="ab \n", max_size=300), st.integers(5, 50))
def test_pieces_without_code_joined_are_the_text(text: str, longest: int) -> None:
    """Nothing is lost or doubled where no code block is cut."""
    assert text == "".join(blocks(text, longest))


@given(LINES, st.integers(20, 80))
def test_every_piece_closes_the_code_it_opens(lines: list[str], longest: int) -> None:
    """A cut within code closes it above and opens it again below, so each piece but the last is Markdown by itself."""
    text = "\n".join(lines)
    pieces = blocks(text, longest)
    for piece in pieces[:-1]:
        assert "" == _open_fence(piece)
    assert _open_fence(text) == (_open_fence(pieces[-1]) if pieces else "")


def test_a_piece_has_hardly_more_than_the_longest() -> None:
    """A long reply comes in pieces that can be laid out at once, also one without a line break."""
    for text in ("word " * 20_000, "word\n" * 20_000, "```\n" + "code\n" * 20_000):
        assert max(map(len, blocks(text))) <= LONGEST + 20


def _open_fence(text: str) -> str:
    """The naive way: line by line, the mark of the block that is open at the end."""
    mark = ""
    for line in text.split("\n"):
        bare = line.lstrip(" ") if len(line) - len(line.lstrip(" ")) <= 3 else line
        run = bare[: len(bare) - len(bare.lstrip(bare[:1]))] if bare[:1] in ("`", "~") else ""
        if len(run) < 3:
            continue
        if not mark:
            mark = run
        elif run.startswith(mark) and not bare[len(run) :].strip():
            mark = ""
    return mark
