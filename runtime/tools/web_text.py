"""What a response's body says to a reader: HTML as Markdown, other text as it is, nothing for what is no text."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from html import unescape
from urllib.parse import urljoin

import attrs

from runtime.policy.paths import looks_like_text

from ._text import SNIFF_BYTES
from .web_markup import html_as_markdown

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(r"text/.*|application/(?:json|xml|javascript|yaml|x-yaml|toml|x-sh|sql|x-ndjson)|.*\+(?:json|xml)")
_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([a-zA-Z0-9_.:-]{1,40})", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})</title", re.IGNORECASE)
_HEAD_CHARS = 100_000
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NO_CHARSETS = (
    "punycode",
    "idna",
    "unicode_escape",
    "unicode-escape",
    "raw_unicode_escape",
    "raw-unicode-escape",
    "undefined",
)
_BASE = re.compile(r"<base\s[^>]{0,200}?href\s{0,9}=\s{0,9}[\"']?([^\"'\s>]{1,2000})", re.IGNORECASE)
_FENCE = re.compile(r"[> ]*(`{3,})")


@attrs.frozen
class Readable:
    """A page's text, and its title where it has one."""

    text: str
    title: str = ""


def readable_text(body: bytes, content_type: str, base_url: str = "") -> Readable | None:
    """A body as text for a model, links made whole by `base_url`; None for what is no text.

    Megabytes of HTML take seconds: call it in a thread.
    """
    kind, charset = _kind(content_type)
    looks_like_html = body.lstrip()[:200].lower().startswith((b"<!doctype html", b"<html"))
    if kind in _HTML or (kind in ("", "text/plain") and looks_like_html):
        return _from_html(_decoded(body, charset or _meta_charset(body)), base_url)
    if (kind and not _TEXT.fullmatch(kind)) or not looks_like_text(body[:SNIFF_BYTES]):
        return None
    return Readable(_decoded(body, charset))


def _kind(content_type: str) -> tuple[str, str]:
    from email.message import Message

    if not content_type.strip():
        return "", ""
    header = Message()
    header["content-type"] = " ".join(content_type.split())
    charset = header.get_param("charset", "")
    return header.get_content_type(), charset if isinstance(charset, str) else ""


def _meta_charset(body: bytes) -> str:
    found = _META.search(body[:2048])
    return found[1].decode("ascii") if found else ""


def _decoded(body: bytes, charset: str) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return body[3:].decode(errors="replace")
    marked = next((name for mark, name in _MARKS.items() if body.startswith(mark)), None)
    if (name := marked or _text_codec(charset)) is None:
        try:
            return _decoder("utf-8").decode(body)
        except ValueError:
            name = "cp1252"
    try:
        return _decoder(name, "replace").decode(body)
    except ValueError:
        return body.decode(errors="replace")


def _decoder(name: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    # A body that was cut may end inside a character.
    return codecs.getincrementaldecoder(name)(errors)


def _text_codec(charset: str) -> str | None:
    """The codec for a declared character set, None for none: Python also calls `zlib` and `punycode` codecs."""
    try:
        name = codecs.lookup(charset).name
        text = "é".encode(name, "replace")
    except (LookupError, ValueError):
        return None
    if name in _NO_CHARSETS or not text:
        return None
    return "cp1252" if name in ("iso8859-1", "ascii") else name  # as browsers do


def _from_html(html: str, base_url: str) -> Readable:
    """What is hidden on the page, its scripts, buttons and menus are left out."""
    found = _TITLE.search(html[:_HEAD_CHARS])
    title = " ".join(unescape(found[1]).split())[:300] if found else ""
    if base_url and (base := _BASE.search(html[:_HEAD_CHARS])):
        with suppress(ValueError):
            base_url = urljoin(base_url, unescape(base[1]))
    return Readable(_tidy(html_as_markdown(html, base_url)), title)


def _tidy(text: str) -> str:
    """No more than one blank line between blocks; within code they stay."""
    kept: list[str] = []
    fence = ""
    for line in map(str.rstrip, text.strip().split("\n")):
        if (mark := _FENCE.match(line)) and (not fence or (line.endswith(fence) and mark[1] == fence)):
            fence = "" if fence else mark[1]
        if line or fence or kept[-1:] != [""]:
            kept.append(line)
    return "\n".join(kept)
