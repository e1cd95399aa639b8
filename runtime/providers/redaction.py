"""Secrets taken out of what a server sends, on its way into events and records, however it is cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, cast

import attrs

from runtime.messages import Opaque, Part, Reasoning, Text, ToolCall
from runtime.model import Delta, Reply
from runtime.shapes import is_list, is_object

MARK = "[redacted]"


class Redactor:
    """One stream's: what could be the beginning of a secret is held back until the next piece tells."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = _longest_first(tuple(secrets))
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece; what is sure of it comes back."""
        if self._held:
            text = self._held + text
        kept = 0
        for secret in self._secrets:
            if secret[0] in text:
                if secret in text:
                    text = text.replace(secret, MARK)
                kept = max(kept, _begun(text, secret))
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept] if kept else text

    def close(self) -> str:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return held


class BytesRedactor:
    """A Redactor for raw bodies, where a secret is also found as JSON would write it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = _written_forms(tuple(secrets))
        self._redactor = Redactor(forms)
        self._idle = not forms

    def feed(self, data: bytes) -> bytes:
        return data if self._idle else self._redactor.feed(data.decode("latin-1")).encode("latin-1")

    def close(self) -> bytes:
        return self._redactor.close().encode("latin-1")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A whole text without secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MARK)
    return text


class DeltaRedactor:
    """The deltas of one reply: a model writes a secret in several of them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets
        self._strands: dict[tuple[str, int], tuple[Delta, Redactor]] = {}

    def feed(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """What is sure of these deltas."""
        if not self._secrets:
            return deltas
        shown: list[Delta] = []
        for delta in deltas:
            strand = self._strands.get((delta.kind, delta.index))
            if strand is None:
                strand = (delta, Redactor(self._secrets))
                self._strands[delta.kind, delta.index] = strand
            text = strand[1].feed(delta.text)
            if text:
                shown.append(delta if text == delta.text else attrs.evolve(delta, text=text))
        return shown

    def close(self) -> Sequence[Delta]:
        """What was held back."""
        ends = [(delta, redactor.close()) for delta, redactor in self._strands.values()]
        return [attrs.evolve(delta, text=text) for delta, text in ends if text]


def without_secrets(reply: Reply, secrets: Sequence[str]) -> Reply:
    """A reply in which no secret stands; an opaque block that holds one is left out, for nobody may change it."""
    if not secrets:
        return reply
    parts = [_without(part, secrets) for part in reply.parts]
    if all(map(is_, parts, reply.parts)):
        return reply
    return attrs.evolve(reply, parts=tuple(part for part in parts if part is not None))


def _without(part: Part, secrets: Sequence[str]) -> Part | None:
    match part:
        case Text(text, opaque):
            if not holds([text, opaque], secrets):
                return part
            return Text(redacted(text, secrets), None if holds(opaque, secrets) else opaque)
        case Reasoning(text, opaque):
            if not holds([text, opaque], secrets):
                return part
            return Reasoning(redacted(text, secrets), None if holds(opaque, secrets) else opaque)
        case Opaque(data):
            return None if holds(data, secrets) else part
        case ToolCall():
            if not holds([part.name, part.raw, part.arguments, part.arguments_error, part.extra], secrets):
                return part
            return attrs.evolve(
                part,
                name=redacted(part.name, secrets),
                raw=redacted(part.raw, secrets),
                arguments=deep(part.arguments, secrets),
                arguments_error=deep(part.arguments_error, secrets),
                extra=None,
            )


def holds(value: Any, secrets: Sequence[str]) -> bool:
    """Whether a secret stands anywhere in JSON data."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            if any(secret in each for secret in secrets):
                return True
        elif is_object(each):
            todo.extend(each)
            todo.extend(each.values())
        elif is_list(each) or isinstance(each, tuple):
            todo.extend(cast("Sequence[Any]", each))
    return False


def deep(value: Any, secrets: Sequence[str]) -> Any:
    """JSON data without secrets, in keys and values at any depth."""
    if isinstance(value, str):
        return redacted(value, secrets)
    if is_object(value):
        return {redacted(key, secrets): deep(each, secrets) for key, each in value.items()}
    if is_list(value) or isinstance(value, tuple):
        return [deep(each, secrets) for each in cast("Sequence[Any]", value)]
    return value


def _begun(text: str, secret: str) -> int:
    """How many characters at the end of `text` a secret may begin with."""
    tail = text[max(0, len(text) - len(secret) + 1) :]
    at = tail.find(secret[:1])
    while at >= 0:
        if secret.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(secret[:1], at + 1)
    return 0


@lru_cache(maxsize=64)
def _longest_first(secrets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({secret for secret in secrets if secret}, key=len, reverse=True))


@lru_cache(maxsize=16)
def _written_forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form for secret in secrets if secret for form in written(secret))


@lru_cache(maxsize=64)
def written(secret: str) -> tuple[str, ...]:
    """How a secret may stand in a body, one character a byte."""
    escaped = json.dumps(secret)[1:-1]
    forms = {secret, escaped, json.dumps(secret, ensure_ascii=False)[1:-1], escaped.replace("/", "\\/")}
    return tuple(form.encode("utf-8", "surrogatepass").decode("latin-1") for form in forms)
