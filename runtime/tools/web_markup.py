"""HTML as Markdown: a browser's parser makes the markup whole first, so that what follows sees no broken page.

markdownify recurses and, for two shapes of a page, looks back over everything before: such pages are simplified.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import Tag


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BLOCKS = _names(
    "p div section article main header footer aside blockquote pre ul ol li dl dt dd table caption thead tbody tfoot tr"
    " td th h1 h2 h3 h4 h5 h6 hr br figure figcaption details summary address fieldset legend center"
)
_INLINE = _names("a b strong i em u s del code kbd samp q sub sup span abbr cite mark small time var")
_LEFT_OUT = _names("script style title nav menu button select textarea template svg math iframe object noscript dialog")
_ATTRIBUTES = {
    "*": {"hidden", "style"},
    "a": {"href"},
    "ol": {"start"},
    "td": {"colspan"},
    "th": {"colspan"},
    "pre": {"class"},
    "code": {"class"},
    "div": {"class"},
}
_PARAGRAPHS = ("summary", "legend", "center", "figcaption")  # blocks that markdownify takes for words of a line
_CELLS = ("table", "thead", "tbody", "tfoot", "tr", "td", "th")
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?-|highlight-source-|highlight-|brush:\s*)([a-zA-Z][\w+#.-]{0,30})")
_LINK_MARKS = frozenset("¶#§🔗")  # of a heading, to itself
_VOID = _names("br hr img input meta link area base col embed source track wbr param")
# Their ends are left out on good pages too; a browser's parser closes them.
_SELF_CLOSING = _names("p li td th tr tbody thead tfoot dt dd option optgroup rt rp html head body")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>|<![^<>]*>")
_HIDDEN = re.compile(r"display:\s*none|visibility:\s*hidden")
MAX_DEPTH = 100
MAX_TAGS = 50_000
_MAX_OPEN = 500  # elements open at once, and
_MAX_REFERENCES = 50_000  # character references: the parser's time grows with the square of both
_MAX_LINES_DEEP = 3_000_000  # each element indents or joins the lines of all within
_MAX_ITEMS = 300  # of one numbered list
_MAX_HEAD_ROWS = 30
_MAX_SPAN = 50


def html_as_markdown(html: str, base_url: str = "") -> str:
    """The page's text; links made whole by `base_url`; as bare lines where the page is too wild for more.

    Time is linear in the page's length: a few seconds at most, some of them on the interpreter's lock.
    """
    import nh3

    if html.count("&") > _MAX_REFERENCES or _depth(html, _VOID | _SELF_CLOSING) > _MAX_OPEN:
        return _bare(html)
    clean = nh3.clean(
        html,
        tags=set(_BLOCKS | _INLINE),
        clean_content_tags=set(_LEFT_OUT),
        attributes=_ATTRIBUTES,
        filter_style_properties={"display", "visibility"},
        link_rel=None,
        url_relative=("rewrite_with_base", base_url) if base_url else "pass_through",
    )
    depth, tags = _depth(clean, _VOID), clean.count("<")
    if tags > 2 * MAX_TAGS or depth > MAX_DEPTH or depth * (tags + clean.count("\n")) > _MAX_LINES_DEEP:
        return _bare(clean)
    return _converted(clean)


def _depth(html: str, uncounted: frozenset[str]) -> int:
    deepest = depth = 0
    for mark in _TAG.finditer(html):
        if mark[2] and mark[2].lower() not in uncounted:
            depth = max(0, depth - 1) if mark[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest


def _bare(html: str) -> str:
    """The text between the tags, a line for each block."""
    kept: list[str] = []
    inside, position = "", 0
    for mark in _TAG.finditer(html):
        name = (mark[2] or "").lower()
        if not inside:
            kept.append(html[position : mark.start()])
            if name in _LEFT_OUT and not mark[1]:
                inside = name
            elif name in _BLOCKS:
                kept.append("\n")
        elif name == inside and mark[1]:
            inside = ""
        position = mark.end()
    lines = unescape("".join(kept) + ("" if inside else html[position:])).split("\n")
    return "\n".join(line for line in map(str.strip, lines) if line)


def _converted(clean: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup = BeautifulSoup(clean, "html.parser")
    for element in [*soup.find_all(style=_HIDDEN), *soup.find_all(hidden=True)]:
        element.decompose()
    _simplify(soup)

    class Converter(MarkdownConverter):
        def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            # A fence is longer than any within.
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            code = text.strip("\n").rstrip()
            return f"\n\n{fence}{_language(el)}\n{code}\n{fence}\n\n" if code else ""

        def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            return _cell(el, text)

        def convert_th(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            return _cell(el, text)

    converter = Converter(
        heading_style=ATX, bullets="-", escape_asterisks=False, escape_underscores=False, sup_symbol="^"
    )
    return str(converter.convert_soup(soup))


def _simplify(soup: BeautifulSoup) -> None:
    """Make of the page what Markdown has words for, and what is converted in linear time."""
    for element in soup.find_all("a"):
        if element.get_text().strip() in _LINK_MARKS:
            element.decompose()
        elif href := str(element.get("href") or ""):
            element["href"] = href.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    for element in soup.find_all(_PARAGRAPHS):
        element.name = "p"
    # A line of a Markdown table holds no block: tables around such ones only place things.
    layouts = {id(each.find_parent("table")) for each in soup.find_all(("table", "pre"))}
    placing = [
        each
        for each in soup.find_all(_CELLS)
        if id(each if each.name == "table" else each.find_parent("table")) in layouts
    ]
    for element in placing:
        element.name = "div"
    for element in soup.find_all("ol"):
        if len(element.find_all("li", recursive=False)) > _MAX_ITEMS:
            element.name = "ul"
    for element in soup.find_all("thead"):
        if len(element.find_all("tr", recursive=False)) > _MAX_HEAD_ROWS:
            element.name = "tbody"
    for element in soup.find_all(colspan=re.compile(r"\d\d\d|[5-9]\d")):
        element["colspan"] = str(_MAX_SPAN)


def _cell(cell: Tag, text: str) -> str:
    span = str(cell.get("colspan") or "")
    columns = max(1, int(span)) if span.isdecimal() else 1
    return f" {text.strip()}".replace("\n", " ").replace("|", r"\|") + " |" * columns


def _language(pre: Tag) -> str:
    """The language a block of code is in, as the classes at it, within or just around it say."""
    outer = pre.parent
    around = [outer, outer.parent] if outer is not None else []
    for element in (pre.find("code"), pre, *around):
        words = " ".join(map(str, element.get_attribute_list("class"))) if element is not None else ""
        if found := _LANGUAGE.search(words):
            return found[1].lower()
    return ""
