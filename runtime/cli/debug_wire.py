"""`elenco debug stream|names|schema`: why was this decided, one JSON line in, one JSON line out.

`stream` decodes a recorded response and shows the reply as it would enter a conversation; `names` shows what tools
are called towards a provider; `schema` shows what becomes of a tool's schema.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO, get_args

from runtime import wire
from runtime.messages import Reasoning, Text, ToolCall, Usage
from runtime.model import ProviderError, Reply
from runtime.shapes import is_object
from runtime.wire.deep_json import read_json
from runtime.wire.names import expose
from runtime.wire.schemas import prepare, prepare_text

_UNUSABLE = 2


def stream(lines: Iterable[str], out: TextIO) -> int:
    """Decode one case a line: `{name, wire, encoding, status, headers, chunks, request?}`.

    The exit code, here and below: 0, or 2 when a line cannot be used, which standard error then says.
    """
    return _each("stream", lines, out, _stream)


def names(lines: Iterable[str], out: TextIO) -> int:
    """Name the tools of one set of servers a line: `{id, servers: [{name, tools}], builtin}`."""
    return _each("names", lines, out, _names)


def schema(lines: Iterable[str], out: TextIO) -> int:
    """Prepare one tool schema a line: `{id, schema}` or `{id, schema_text}`."""
    return _each("schema", lines, out, _schema)


class _Unusable(Exception):
    """Why an input line cannot be answered."""


def _each(
    family: str, lines: Iterable[str], out: TextIO, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> int:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = _read(line)
            found = answer(case)
        except _Unusable as error:
            print(f"elenco debug {family}: line {number}: {error}", file=sys.stderr)
            return _UNUSABLE
        out.write(json.dumps(found) + "\n")
        out.flush()
    return 0


def _read(line: str) -> Mapping[str, Any]:
    try:
        case = read_json(line)
    except ValueError as error:
        raise _Unusable(f"not JSON: {error}") from None
    if not is_object(case):
        raise _Unusable("not a JSON object")
    return case


def _wanted(case: Mapping[str, Any], key: str, kind: type, what: str) -> Any:
    value = case.get(key)
    if not isinstance(value, kind):
        raise _Unusable(f"{key!r} must be {what}" if key in case else f"{key!r} is missing; it must be {what}")
    return value


def _stream(case: Mapping[str, Any]) -> Mapping[str, Any]:
    name = _wanted(case, "wire", str, f"one of {', '.join(wire.WIRES)}")
    if name not in get_args(wire.WireName):
        raise _Unusable(f"'wire' must be one of {', '.join(wire.WIRES)}, not {name!r}")
    headers: dict[str, Any] = _wanted({"headers": {}, **case}, "headers", dict, "an object")
    request = case.get("request")
    answers = request.get("n") if is_object(request) else 1
    decoder = wire.decoder(
        name,
        _wanted({"status": 200, **case}, "status", int, "a number"),
        {str(key): str(value) for key, value in headers.items()},
        n=answers if isinstance(answers, int) else 1,
    )
    for chunk in _chunks(case):
        decoder.feed(chunk)
    try:
        return _shown(case, decoder.close(), None)
    except ProviderError as error:
        return _shown(case, error.partial, error)


def _chunks(case: Mapping[str, Any]) -> list[bytes]:
    encoding = case.get("encoding", "utf8")
    if encoding not in ("utf8", "base64"):
        raise _Unusable(f"'encoding' must be utf8 or base64, not {encoding!r}")
    chunks: list[bytes] = []
    for number, chunk in enumerate(_wanted(case, "chunks", list, "a list of texts")):
        if not isinstance(chunk, str):
            raise _Unusable(f"chunk {number} is no text")
        try:
            chunks.append(base64.b64decode(chunk, validate=True) if encoding == "base64" else chunk.encode())
        except (binascii.Error, UnicodeEncodeError) as error:
            raise _Unusable(f"chunk {number} cannot be decoded: {error}") from None
    return chunks


def _shown(case: Mapping[str, Any], reply: Reply | None, error: ProviderError | None) -> Mapping[str, Any]:
    parts = reply.parts if reply is not None else ()
    calls = [part for part in parts if isinstance(part, ToolCall)]
    given = {call.provider_id for call in calls}
    return {
        "name": case.get("name"),
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "tool_calls": [_call(call, number, given) for number, call in enumerate(calls)],
        "finish": reply.finish if reply is not None and error is None else None,
        "usage": _usage(reply.usage) if reply is not None else None,
        "error": {"kind": error.kind, "retryable": error.retryable} if error is not None else None,
    }


def _call(call: ToolCall, number: int, given: set[str | None]) -> Mapping[str, Any]:
    id = call.provider_id
    while not id or (id in given and call.provider_id is None):
        id, number = f"call_{number}", number + 1
    return {
        "id": id,
        "name": call.name,
        "arguments": call.arguments,
        "arguments_error": call.arguments_error is not None,
    }


def _usage(usage: Usage | None) -> Mapping[str, int] | None:
    if usage is None:
        return None
    return {
        "input": usage.input,
        "output": usage.output,
        "cached_input": usage.cached_input,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }


def _names(case: Mapping[str, Any]) -> Mapping[str, Any]:
    servers: list[tuple[str, list[str]]] = []
    for server in _wanted(case, "servers", list, "a list of servers"):
        if not is_object(server):
            raise _Unusable("a server is no object")
        tools = _wanted(server, "tools", list, "a list of names")
        if not all(isinstance(tool, str) for tool in tools):
            raise _Unusable("a tool's name is no text")
        servers.append((_wanted(server, "name", str, "a text"), tools))
    builtin = _wanted({"builtin": [], **case}, "builtin", list, "a list of names")
    found = expose(servers, {str(name) for name in builtin})
    return {
        "id": case.get("id"),
        "names": [{"server": e.server, "tool": e.tool, "name": e.name} for e in found.names],
        "refused": [{"server": e.server, "tool": e.tool, "why": e.why} for e in found.refused],
    }


def _schema(case: Mapping[str, Any]) -> Mapping[str, Any]:
    if "schema_text" in case:
        found = prepare_text(_wanted(case, "schema_text", str, "a text"))
    elif "schema" in case:
        found = prepare(case["schema"])
    else:
        raise _Unusable("'schema' or 'schema_text' is missing")
    shown: dict[str, Any] = {"id": case.get("id"), "verdict": found.verdict, "why": found.why}
    if found.schema is not None:
        shown["schema"] = found.schema
    if found.keys:
        shown["keys"] = dict(found.keys)
    return shown


def main(arguments: list[str]) -> int:
    """`python -m runtime.cli.debug_wire stream|names|schema`, lines from standard input."""
    families = {"stream": stream, "names": names, "schema": schema}
    if len(arguments) != 1 or arguments[0] not in families:
        print(f"usage: debug_wire {'|'.join(families)}", file=sys.stderr)
        return _UNUSABLE
    return families[arguments[0]](sys.stdin, sys.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
