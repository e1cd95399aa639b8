"""What a response's body says to a reader: HTML as Markdown, other text as it is, nothing for what is no text."""

from __future__ import annotations

import codecs
import re
from html import unescape

import attrs

from runtime.policy.paths import looks_like_text

from ._text import SNIFF_BYTES
from .web_markup import html_as_markdown

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(r"text/.*|application/(?:json|xml|javascript|yaml|x-yaml|toml|x-sh|sql|x-ndjson)|.*\+(?:json|xml)")
_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([a-zA-Z0-9_.:-]{1,40})", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})</title", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")
_HEAD_CHARS = 100_000


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
    for name in (charset, "utf-8"):
        try:
            # A body that was cut may end inside a character.
            return codecs.getincrementaldecoder(name)().decode(body)
        except (LookupError, ValueError):
            continue
    return body.decode("cp1252", "replace")


def _from_html(html: str, base_url: str) -> Readable:
    """What is hidden on the page, its scripts, buttons and menus are left out."""
    found = _TITLE.search(html[:_HEAD_CHARS])
    title = " ".join(unescape(found[1]).split())[:300] if found else ""
    return Readable(_tidy(html_as_markdown(html, base_url)), title)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in _BLANK_LINES.sub("\n\n", text.strip()).split("\n"))
