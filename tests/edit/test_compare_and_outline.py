"""What differs, and what is in a file."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools.symbols import outline

SOURCES: dict[str, tuple[str, list[str]]] = {
    "a.py": (
        "import x\n\n@deco\nclass A(B):\n    def m(self, a: int) -> str:\n        def inner(): ...\n        return ''\n"
        "\n"
        "async def f(\n    one,\n    two,\n):\n    pass\n",
        [
            "4-7\tclass A(B)",
            "5-7\t  def m(self, a: int) -> str",
            "6\t    def inner()",
            "9-13\tasync def f( one, two, )",
        ],
    ),
    "a.js": (
        "export class A {\n  run(x) {\n    return x;\n  }\n  go = () => 1;\n}\n"
        "function f(a) {}\nconst g = async (b) => {\n};\n",
        ["1-6\tclass A", "2-4\t  run(x)", "5\t  go = () =>", "7\tfunction f(a)", "8-9\tg = async (b) =>"],
    ),
    "a.ts": (
        "interface I { a: number }\ntype T = string;\nenum E { A }\n"
        "export abstract class C<T> { abstract m(): void; }\n",
        [
            "1\tinterface I",
            "2\ttype T = string;",
            "3\tenum E",
            "4\tabstract class C<T>",
            "4\t  abstract m(): void",
        ],
    ),
    "a.tsx": ("export function App(): JSX.Element {\n  return <b>x</b>;\n}\n", ["1-3\tfunction App(): JSX.Element"]),
    "a.go": (
        "package p\n\ntype S struct {\n\ta int\n}\n\nfunc (s *S) M(x int) error {\n\treturn nil\n}\nfunc F() {}\n",
        ["3-5\tS struct", "7-9\tfunc (s *S) M(x int) error", "10\tfunc F()"],
    ),
    "a.rs": (
        "pub struct S;\nimpl S {\n    pub fn new() -> Self { S }\n}\n"
        "trait T { fn m(&self); }\nmod m {\n    enum E { A }\n}\n",
        [
            "1\tpub struct S;",
            "2-4\timpl S",
            "3\t  pub fn new() -> Self",
            "5\ttrait T",
            "5\t  fn m(&self);",
            "6-8\tmod m",
            "7\t  enum E",
        ],
    ),
    "a.md": (
        "---\ntitle: x\n---\n# One\n\n```\n# no heading\n```\n\n## Two `c`\n\ntext\n\nThree\n=====\n",
        ["4-13\t# One", "10-13\t  ## Two `c`", "14-15\t# Three"],
    ),
    "A.java": (
        "public final class A {\n    interface B {}\n}\nenum C { X }\n",
        ["1\tpublic final class A", "2\t  interface B", "4\tenum C"],
    ),
}


@pytest.mark.parametrize("name", SOURCES)
async def test_the_symbols_of_a_file_are_shown_with_their_lines(desk: Any, name: str) -> None:
    """Classes, functions and headings, nested as in the file; other languages by pattern, and it is said."""
    source, rows = SOURCES[name]
    desk.put(name, source)
    head, *shown = (await desk.said("file_outline", path=name)).split("\n")
    assert shown == rows
    assert ("by pattern, may miss some" in head) == (name == "A.java")


async def test_broken_source_is_said_to_be_broken(desk: Any) -> None:
    """What can be read of a file with syntax errors is shown, with a note; a file without symbols says so."""
    desk.put("b.py", "def ok():\n    pass\n\ndef broken(:\n")
    assert "with syntax errors: may miss some" in await desk.said("file_outline", path="b.py")
    desk.put("c.txt", "just words\n")
    assert "no symbols found (by pattern" in await desk.said("file_outline", path="c.txt")
    desk.put("many.py", "def f(): pass\n" * 700)
    assert (await desk.said("file_outline", path="many.py")).endswith("[100 more not shown]")


async def test_deeply_nested_source_does_not_overflow(desk: Any) -> None:
    """Ten thousand brackets are no reason to fail."""
    desk.put("d.py", "x = " + "[" * 10_000 + "]" * 10_000 + "\ndef f(): pass\n")
    assert "def f()" in await desk.said("file_outline", path="d.py")


@given(st.text(max_size=200), st.sampled_from(["Python", "JavaScript", "TypeScript", "Go", "Rust", "Markdown", ""]))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_outline_within_its_lines(text: str, language: str) -> None:
    """No text makes the outline fail, and every symbol lies within the file."""
    symbols, how = outline(text, language)
    total = text.count("\n") + 1
    assert how
    assert all(1 <= symbol.first <= symbol.last <= total for symbol in symbols)


async def test_two_files_are_compared(desk: Any) -> None:
    """The diff leads from the first file to the second."""
    desk.put("a", "one\ntwo\n")
    desk.put("b", "one\n2\n")
    assert await desk.said("diff", path="a", other="b") == "--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert "are the same" in await desk.said("diff", path="a", other="./a")
    assert "does not exist" in await desk.fault("diff", path="a", other="c")


async def test_a_file_is_compared_with_its_beginning(desk: Any) -> None:
    """Without another file, the diff is what the run has changed, also for new and removed files."""
    begun: dict[str, bytes | None] = {"f": b"one\n", "gone": b"x\n", "new": None}
    desk.ctx = attrs.evolve(desk.ctx, original=begun.get)
    desk.put("f", "two\n")
    desk.put("new", "n\n")
    desk.put("same", "s\n")
    assert "-one\n+two" in await desk.said("diff", path="f")
    assert "--- /dev/null" in await desk.said("diff", path="new")
    assert "+++ /dev/null" in await desk.said("diff", path="gone")
    assert "same is as it was when the run began" == await desk.said("diff", path="same")
    assert "does not exist" in await desk.fault("diff", path="never")
