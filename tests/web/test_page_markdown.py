"""What a reader gets of pages as they are in the web: code, tables, links and letters arrive whole."""

from __future__ import annotations

import pytest

from runtime.tools.web_text import readable_text


def shown(html: str) -> str:
    found = readable_text(f"<html>{html}".encode(), "text/html; charset=utf-8", "https://site.test/docs/page.html")
    assert found is not None
    return found.text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ('<pre><code class="language-python hljs">a = 1\n\n\n\nb</code></pre>', "```python\na = 1\n\n\n\nb\n```"),
        ('<div class="highlight-rust"><div class="highlight"><pre>fn</pre></div></div>', "```rust\nfn\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<table><tr><td><pre>1\n2</pre><td><pre>a\nb</pre></table>", "```\n1\n2\n```\n\n```\na\nb\n```"),
        (
            "<table><tr><th>a<th>b|c<tr><td>1<td><code>x|y</code></table>",
            "| a | b\\|c |\n| --- | --- |\n| 1 | `x\\|y` |",
        ),
        (
            "<table><tr><td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("<details><summary>More</summary>Inside</details>", "More\n\nInside"),
        ('<h2>Use <a href="#use">¶</a></h2>', "## Use"),
        ('See <a href="/a (b)">it</a>', "See [it](https://site.test/a%20%28b%29)"),
        ('<base href="/other/"><a href="x">it</a>', "[it](https://site.test/other/x)"),
        ("10<sup>6</sup>", "10^6^"),
        ("<form><p>Within a form</form>", "Within a form"),
    ],
)
def test_a_page_is_good_markdown_for_a_reader(html: str, markdown: str) -> None:
    """Code keeps its language, blank lines and fences, tables their columns, links their targets."""
    assert shown(html) == markdown


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"<html>caf\xc3\xa9 \xff", "text/html; charset=utf-8", "café \ufffd"),
        (b"<html>\x93a\x94 \xe9", "text/html; charset=iso-8859-1", "“a” é"),
        ("<html>é“".encode("utf-16"), "text/html", "é“"),
        ("<html>日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本"),
        (b"<html>abc", "text/html; charset=zlib", "abc"),
        (b"<html>ab-" + b"bcdefgh9" * 100_000, "text/html; charset=punycode", "ab-" + "bcdefgh9" * 100_000),
    ],
    ids=["broken byte", "windows", "utf-16", "shift_jis", "zlib", "punycode"],
)
def test_letters_are_read_in_any_encoding(body: bytes, content_type: str, text: str) -> None:
    """One broken byte spoils no page, names mean what browsers mean by them, and what is no character set is none."""
    found = readable_text(body, content_type)
    assert found is not None
    assert found.text == text
