"""The tool file_outline: the classes, functions and headings of a file with their lines, from its syntax tree.

Grammars come compiled in their own wheels and are loaded when a file first needs them. Other languages are read by
pattern, and the outline says so.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import TYPE_CHECKING

import attrs

from ._text import counted, plain
from ._tool import Tool, ToolContext, tool
from .changes import document, find_there

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

MAX_SYMBOLS = 600
MAX_TREE_CHARS = 1_000_000
_MAX_SIGNATURE = 160
_MAX_LINE = 400
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=|-)\1*[ \t]*")
_WORDS = re.compile(r" {0,3}[^\s#>|*+`~=-]")


@attrs.frozen
class Symbol:
    """Something with a name: its lines from 1, how deep it lies, and its first words."""

    first: int
    last: int
    depth: int
    text: str


@attrs.frozen
class Grammar:
    """Where a language's grammar is, and the kinds of nodes that are symbols.

    `holders` are those that are symbols where their value is a function: `const name = () => …`.
    """

    module: str
    function: str
    kinds: Set[str]
    holders: Set[str] = frozenset()

    @property
    def query(self) -> str:
        functions = "[(arrow_function) (function_expression) (class)]"
        patterns = [f"({kind}) @s" for kind in sorted(self.kinds)]
        return "\n".join([*patterns, *(f"({kind} value: {functions}) @s" for kind in sorted(self.holders))])


_JAVASCRIPT = {"class_declaration", "function_declaration", "generator_function_declaration", "method_definition"}
_TYPESCRIPT = {
    *_JAVASCRIPT,
    *("abstract_class_declaration", "interface_declaration", "type_alias_declaration", "enum_declaration"),
    *("internal_module", "abstract_method_signature", "method_signature", "function_signature"),
}
_TYPED = {"variable_declarator", "public_field_definition"}
_PYTHON = {"class_definition", "function_definition"}
_GO = {"function_declaration", "method_declaration", "type_spec", "type_alias"}
_RUST = {
    *("function_item", "function_signature_item", "struct_item", "enum_item", "union_item", "trait_item"),
    *("impl_item", "mod_item", "type_item", "macro_definition"),
}
_GRAMMARS: Mapping[str, Grammar] = {
    "Python": Grammar("tree_sitter_python", "language", _PYTHON),
    "JavaScript": Grammar(
        "tree_sitter_javascript", "language", _JAVASCRIPT, {"variable_declarator", "field_definition"}
    ),
    "TypeScript": Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT, _TYPED),
    "TSX": Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT, _TYPED),
    "Go": Grammar("tree_sitter_go", "language", _GO),
    "Rust": Grammar("tree_sitter_rust", "language", _RUST),
}
_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("py", "pyi", "pyw"), "Python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "JavaScript"),
    **dict.fromkeys(("ts", "mts", "cts"), "TypeScript"),
    "tsx": "TSX",
    "go": "Go",
    "rs": "Rust",
    **dict.fromkeys(("md", "markdown", "mdown"), "Markdown"),
}


@tool(effects="none", paths={"path": "read"})
def file_outline(ctx: ToolContext, path: str) -> str:
    """Show the classes, functions or headings of a text file with their line numbers, without its content.

    Args:
        path: The file, relative to the workspace.
    """
    found = find_there(ctx, path)
    text = document(path, found.content)
    language = _LANGUAGES.get(found.path.rpartition(".")[2].lower(), "")
    symbols, how = outline(text.plain, language)
    name, size = plain(found.path), counted(len(text.lines), "line", "lines")
    if not symbols:
        return f"{name}: {size}, no symbols found ({how})"
    rows = [_row(symbol) for symbol in symbols[:MAX_SYMBOLS]]
    if len(symbols) > MAX_SYMBOLS:
        rows.append(f"[{len(symbols) - MAX_SYMBOLS} more not shown]")
    return "\n".join([f"{name}: {size}, {counted(len(symbols), 'symbol', 'symbols')} ({how})", *rows])


def outline(text: str, language: str) -> tuple[list[Symbol], str]:
    """The symbols of a text in the order of their lines, and how they were found."""
    if language == "Markdown":
        return _headings(text), language
    if language in _GRAMMARS:
        if len(text) > MAX_TREE_CHARS:
            return _by_pattern(text), "by pattern, may miss some: too large for a syntax tree"
        try:
            parser, query = _parser(language)
        except ImportError:
            return _by_pattern(text), f"by pattern, may miss some: the grammar of {language} is not installed"
        tree = parser.parse(text.encode("utf-8", "replace"))
        note = ", with syntax errors: may miss some" if tree.root_node.has_error else ""
        return _symbols(tree.root_node, query), f"{language}{note}"
    return _by_pattern(text), "by pattern, may miss some: no grammar for this kind of file"


def _row(symbol: Symbol) -> str:
    lines = str(symbol.first) if symbol.first == symbol.last else f"{symbol.first}-{symbol.last}"
    return f"{lines}\t{'  ' * symbol.depth}{symbol.text}"


@cache
def _parser(language: str) -> tuple[Parser, Query]:
    from tree_sitter import Language, Parser, Query

    grammar = _GRAMMARS[language]
    load: Callable[[], object] = getattr(importlib.import_module(grammar.module), grammar.function)
    found = Language(load())
    return Parser(found), Query(found, grammar.query)


def _symbols(root: Node, query: Query) -> list[Symbol]:
    from tree_sitter import QueryCursor

    nodes = QueryCursor(query).captures(root).get("s", [])
    nodes.sort(key=lambda node: (node.start_byte, -node.end_byte))
    found: list[Symbol] = []
    ends: list[int] = []
    for node in nodes:
        while ends and ends[-1] <= node.start_byte:
            ends.pop()
        found.append(_symbol(node, len(ends)))
        ends.append(node.end_byte)
    return found


def _symbol(node: Node, depth: int) -> Symbol:
    value = node.child_by_field_name("value") or node
    body = node.child_by_field_name("body") or value.child_by_field_name("body")
    whole = node.text or b""
    head = whole[: body.start_byte - node.start_byte] if body is not None else whole.partition(b"\n")[0]
    words = " ".join(head.decode(errors="replace").split()).rstrip(" {:")
    text = words if len(words) <= _MAX_SIGNATURE else words[: _MAX_SIGNATURE - 1] + "…"
    return Symbol(node.start_point[0] + 1, node.end_point[0] + 1, depth, text)


def _headings(text: str) -> list[Symbol]:
    """The headings of Markdown, each with the lines up to the next one of its level."""
    lines = text.split("\n")
    found: list[tuple[int, int, str]] = []
    fence = ""
    first = _after_front_matter(lines)
    for at in range(first, len(lines)):
        line = lines[at][:_MAX_LINE]
        if (mark := _FENCE.match(line)) is not None:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif fence:
            continue
        elif (heading := _HEADING.match(line)) is not None:
            found.append((len(heading[1]), at + 1, (heading[2] or "").strip()))
        elif at > first and (rule := _UNDERLINE.fullmatch(line)) is not None:
            words, above = lines[at - 1], lines[at - 2] if at - 1 > first else ""
            if _WORDS.match(words) and not above.strip():
                found.append((1 if rule[1] == "=" else 2, at, words.strip()))
    total = len(lines) - (not lines[-1])
    symbols: list[Symbol] = []
    following: dict[int, int] = {}
    for level, start, title in reversed(found):
        last = min((after - 1 for other, after in following.items() if other <= level), default=total)
        symbols.append(Symbol(start, max(start, last), level - 1, f"{'#' * level} {title}"[:_MAX_SIGNATURE]))
        following[level] = start
    return symbols[::-1]


def _after_front_matter(lines: list[str]) -> int:
    """Where the text begins after a YAML block at its head."""
    if lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines[1:200], 1) if line.rstrip() == "---"), 0)


_PATTERN = re.compile(
    r"(?P<indent>[ \t]*)(?P<text>(?:(?:export|public|private|protected|internal|static|abstract|final|sealed|async"
    r"|override|virtual|inline|extern|pub|open|data|default|partial|unsafe|const)[ \t]+){0,6}"
    r"(?:class|interface|struct|enum|trait|module|namespace|protocol|record|object|union|function|func|fun|fn|def|sub"
    r"|proc|type|impl|macro|defmodule|defp|create[ \t]+table|create[ \t]+view)[ \t]+[^\s({;:=][^\n]*)",
    re.IGNORECASE,
)


def _by_pattern(text: str) -> list[Symbol]:
    """Lines that look like the beginning of a definition in one of many languages."""
    found: list[Symbol] = []
    indents: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _PATTERN.match(line[:_MAX_LINE])
        if match is None:
            continue
        indent = len(match["indent"].expandtabs(4))
        while indents and indents[-1] >= indent:
            indents.pop()
        words = " ".join(match["text"].partition("{")[0].split()).rstrip(" :;")[:_MAX_SIGNATURE]
        found.append(Symbol(number, number, len(indents), words))
        indents.append(indent)
    return found


OUTLINE_TOOLS: tuple[Tool, ...] = (file_outline,)
