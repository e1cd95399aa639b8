"""What a server sends back, as a tool's output: text, images, structured data, resources, each bounded. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import attrs

from runtime.messages import Image, JsonObject
from runtime.shapes import is_list
from runtime.tools import Output

MOST_IMAGES = 8
MOST_IMAGE_CHARS = 5_000_000
"""Base64 characters of one image; what is larger is named instead of shown."""
MOST_DATA_CHARS = 100_000
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The images that models take."""

Block: TypeAlias = Mapping[str, Any]


@attrs.define
class _Shown:
    texts: list[str] = attrs.Factory(list[str])
    images: list[Image] = attrs.Factory(list[Image])

    def image(self, media_type: str, data: str) -> None:
        if media_type not in SHOWN:
            self.texts.append(f"[an image of type {media_type}, which cannot be shown]")
        elif len(data) > MOST_IMAGE_CHARS:
            self.texts.append(f"[an image of {len(data) * 3 // 4} bytes, too large to be shown]")
        elif len(self.images) >= MOST_IMAGES:
            self.texts.append(f"[one more image; only {MOST_IMAGES} of a result are shown]")
        else:
            self.images.append(Image(media_type, data))


def output_of(result: JsonObject) -> Output:
    """A result of `tools/call`, as JSON, as an Output."""
    shown = _gathered(_list(result.get("content")))
    structured = result.get("structuredContent")
    text = "\n".join(shown.texts)
    data = None
    if structured is not None:
        written = json.dumps(structured, ensure_ascii=False)
        if not text.strip():
            text = written
        if len(written) <= MOST_DATA_CHARS:
            data = {"structured": structured}
    return Output(text, bool(result.get("isError")), tuple(shown.images), data)


def prompt_text(result: JsonObject) -> str:
    """A result of `prompts/get` as one text; who says what is told where more than one speaks."""
    messages = _list(result.get("messages"))
    said = [(str(each.get("role", "user")), "\n".join(_gathered([each.get("content")]).texts)) for each in messages]
    if all(role == "user" for role, _ in said):
        return "\n\n".join(text for _, text in said)
    return "\n\n".join(f"{role}: {text}" for role, text in said)


def message_blocks(content: Any) -> tuple[str, tuple[Image, ...]]:
    """The text and the images of one message's content, a block or a list of blocks."""
    shown = _gathered(content if is_list(content) else [content])
    return "\n".join(shown.texts), tuple(shown.images)


def progress_text(done: float, total: float | None, message: str | None) -> str:
    """A step of progress in one line."""
    share = f"{done:g}/{total:g}" if total else f"{done:g}"
    return f"{message} ({share})\n" if message else f"{share}\n"


def _gathered(blocks: Iterable[Any]) -> _Shown:
    shown = _Shown()
    for block in blocks:
        if isinstance(block, Mapping):
            _block(cast("Block", block), shown)
    return shown


def _block(block: Block, shown: _Shown) -> None:
    media_type = str(block.get("mimeType") or "unknown")
    match block.get("type"):
        case "text":
            shown.texts.append(str(block.get("text", "")))
        case "image":
            shown.image(media_type, str(block.get("data", "")))
        case "audio":
            size = len(str(block.get("data", ""))) * 3 // 4
            shown.texts.append(f"[audio of type {media_type}, {size} bytes, which cannot be shown]")
        case "resource_link":
            shown.texts.append(_link(block))
        case "resource":
            _resource(block.get("resource"), shown, named=True)
        case other:
            shown.texts.append(f"[content of the kind {other}, which cannot be shown]")


def _link(block: Block) -> str:
    about = "; ".join(str(block[key]) for key in ("name", "description", "mimeType") if block.get(key))
    return f"[resource {block.get('uri')}{f' ({about})' if about else ''}]"


def _resource(resource: Any, shown: _Shown, *, named: bool) -> None:
    if not isinstance(resource, Mapping):
        return
    block = cast("Block", resource)
    media_type = str(block.get("mimeType") or "unknown")
    head = f"[resource {block.get('uri')}]\n" if named else ""
    if isinstance(text := block.get("text"), str):
        shown.texts.append(f"{head}{text}")
        return
    blob = str(block.get("blob", ""))
    if media_type in SHOWN:
        if named:
            shown.texts.append(head.rstrip())
        shown.image(media_type, blob)
    else:
        shown.texts.append(f"[resource {block.get('uri')}: {len(blob) * 3 // 4} bytes of type {media_type}]")


def _list(value: Any) -> list[Block]:
    return list(_blocks(value)) if is_list(value) else []


def _blocks(values: list[Any]) -> Iterator[Block]:
    for value in values:
        if isinstance(value, Mapping):
            yield cast("Block", value)
