"""The tool file_outline: the classes, functions and headings of a file with their lines, from its syntax tree.

Grammars come compiled in their own wheels and are loaded when a file first needs them. Other languages are read by
pattern, and the outline says so.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from typing import TYPE_CHECKING

import attrs

from ._text import counted, plain
from ._tool import Tool, ToolContext, tool
from .changes import document, find_there

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_SYMBOLS = 600
_MAX_SIGNATURE = 160
_MAX_LINE = 400


@attrs.frozen
class Symbol:
    """Something with a name: its lines from 1, how deep it lies, and its first words."""

    first: int
    last: int
    depth: int
    text: str


@attrs.frozen
class Grammar:
    """Where a language's grammar is, and the kinds of nodes that are symbols; others are looked through."""

    module: str
    function: str
    kinds: Set[str]


_JAVASCRIPT = {"class_declaration", "function_declaration", "generator_function_declaration", "method_definition"}
_TYPESCRIPT = {
    *_JAVASCRIPT,
    *("abstract_class_declaration", "interface_declaration", "type_alias_declaration", "enum_declaration"),
    *("internal_module", "abstract_method_signature", "method_signature", "function_signature"),
}
_PYTHON = {"class_definition", "function_definition"}
_GO = {"function_declaration", "method_declaration", "type_spec", "type_alias"}
_RUST = {
    *("function_item", "function_signature_item", "struct_item", "enum_item", "union_item", "trait_item"),
    *("impl_item", "mod_item", "type_item", "macro_definition"),
}
_GRAMMARS: Mapping[str, Grammar] = {
    "Python": Grammar("tree_sitter_python", "language", _PYTHON),
    "JavaScript": Grammar("tree_sitter_javascript", "language", _JAVASCRIPT),
    "TypeScript": Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT),
    "TSX": Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT),
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
        try:
            parser = _parser(language)
        except ImportError:
            return _by_pattern(text), f"by pattern, may miss some: the grammar of {language} is not installed"
        tree = parser.parse(text.encode("utf-8", "replace"))
        note = ", with syntax errors: may miss some" if tree.root_node.has_error else ""
        return list(_symbols(tree.root_node, _GRAMMARS[language].kinds)), f"{language}{note}"
    return _by_pattern(text), "by pattern, may miss some: no grammar for this kind of file"


def _row(symbol: Symbol) -> str:
    lines = str(symbol.first) if symbol.first == symbol.last else f"{symbol.first}-{symbol.last}"
    return f"{lines}\t{'  ' * symbol.depth}{symbol.text}"


@cache
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    grammar = _GRAMMARS[language]
    load: Callable[[], object] = getattr(importlib.import_module(grammar.module), grammar.function)
    return Parser(Language(load()))


def _symbols(root: Node, kinds: Set[str]) -> Iterator[Symbol]:
    # A stack of its own: source may be nested deeper than Python's.
    todo: list[tuple[Node, int]] = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        below = depth
        if node.type in kinds or _is_named_function(node):
            yield _symbol(node, depth)
            below = depth + 1
        todo += [(child, below) for child in reversed(node.named_children)]


def _is_named_function(node: Node) -> bool:
    """`const name = () => …`, which is how many functions of JavaScript are written."""
    if node.type not in ("variable_declarator", "field_definition", "public_field_definition"):
        return False
    value = node.child_by_field_name("value")
    return value is not None and value.type in ("arrow_function", "function_expression", "class")


def _symbol(node: Node, depth: int) -> Symbol:
    value = node.child_by_field_name("value") or node
    body = node.child_by_field_name("body") or value.child_by_field_name("body")
    whole = node.text or b""
    head = whole[: body.start_byte - node.start_byte] if body is not None else whole.partition(b"\n")[0]
    words = " ".join(head.decode(errors="replace").split()).rstrip(" {:")
    text = words if len(words) <= _MAX_SIGNATURE else words[: _MAX_SIGNATURE - 1] + "…"
    return Symbol(node.start_point[0] + 1, node.end_point[0] + 1, depth, text)


def _headings(text: str) -> list[Symbol]:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(_without_front_matter(text))
    found = [
        (int(token.tag[1]), token.map[0] + 1, tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.map is not None and token.level == 0
    ]
    total = text.count("\n") + (not text.endswith("\n"))
    symbols: list[Symbol] = []
    for at, (level, line, words) in enumerate(found):
        last = next((after - 1 for other, after, _ in found[at + 1 :] if other <= level), total)
        symbols.append(Symbol(line, max(line, last), level - 1, f"{'#' * level} {words}"[:_MAX_SIGNATURE]))
    return symbols


def _without_front_matter(text: str) -> str:
    """The text with a YAML block at its head blanked out, its lines kept."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else "\n" * text.count("\n", 0, end + 5) + text[end + 5 :]


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
