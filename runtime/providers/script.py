"""A script for models: for each agent the turns it will take, read from YAML; which one comes next is pure counting."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import attrs
import yaml

from runtime.errors import DefinitionError, Fault, UsageError, did_you_mean
from runtime.frontmatter import Fields, Source, Value, Wrong, boolean, integer, kind, number, parse, text
from runtime.handwritten import MOST_OF_SCRIPT, read_text
from runtime.messages import Finish, JsonObject
from runtime.model import ErrorKind

ERROR_KINDS: tuple[str, ...] = typing.get_args(ErrorKind)
FINISHES: tuple[str, ...] = typing.get_args(Finish)
TURN_KEYS = ("text", "say", "calls", "call", "usage", "stall", "pace", "repeat", "fail", "finish", "reasoning", "cost")
CALL_KEYS = ("name", "arguments", "raw", "id")
FAIL_KEYS = ("kind", "times", "message", "retry_after", "status", "retryable")
USAGE_KEYS = ("input", "output", "cached_input", "cache_write", "reasoning", "estimated")

_HEALS = frozenset({"overloaded", "rate_limit", "connect", "truncated"})


@attrs.frozen
class Call:
    """A scripted tool call. `arguments` is None when `raw` was given and is no JSON object; `error` says so."""

    name: str
    arguments: JsonObject | None
    raw: str
    error: str | None = None
    id: str | None = None


@attrs.frozen
class Tokens:
    """What a turn says about its usage; None: not said. `unknown` is a provider that reports no usage at all."""

    input: int | None = None
    output: int | None = None
    cached_input: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False
    unknown: bool = False


@attrs.frozen
class Failure:
    """A failed attempt, `times` in a row."""

    kind: ErrorKind
    times: int = 1
    message: str = ""
    retry_after: float | None = None
    status: int | None = None
    retryable: bool = False


@attrs.frozen
class Turn:
    """One entry of a list: a reply given `repeat` times, or a failure before the next reply.

    Seconds: `stall` before it begins, `pace` after each piece.
    """

    line: int
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    usage: Tokens = Tokens()
    stall: float = 0.0
    pace: float = 0.0
    repeat: int = 1
    finish: Finish | None = None
    cost: float | None = None
    fail: Failure | None = None


@attrs.frozen
class Script:
    """The turns by agent name, or by the name of one actor such as `researcher-2`; `source` is the file."""

    source: str
    turns: Mapping[str, tuple[Turn, ...]]

    def list_for(self, agent: str, actor: str) -> str | None:
        """The list an actor takes its turns from: its own path or name before its agent's."""
        for name in (actor, actor.rpartition("/")[2], agent):
            if name in self.turns:
                return name
        return None

    def position(self, name: str, turn: int, attempt: int) -> int | None:
        """Where in its list an actor is that has had `turn` replies and failed `attempt` times since, or None."""
        replies = 0
        failures: list[int] = []
        for place, entry in enumerate(self.turns[name]):
            if entry.fail is not None:
                failures += [place] * entry.fail.times
                continue
            if turn < replies + entry.repeat:
                return failures[attempt] if turn == replies and attempt < len(failures) else place
            replies += entry.repeat
            failures = []
        return failures[attempt] if turn == replies and attempt < len(failures) else None

    def replies(self, name: str) -> int:
        """How many replies a list holds."""
        return sum(entry.repeat for entry in self.turns[name] if entry.fail is None)


def load_script(path: Path) -> Script:
    """Read a script. Raises DefinitionError listing its faults, UsageError where there is none to read."""
    try:
        content = read_text(path, MOST_OF_SCRIPT)
    except OSError as error:
        raise UsageError(f"cannot read the script {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the script {path} is no UTF-8 text") from None
    return read_script(str(path), content)


@lru_cache(maxsize=8)
def read_script(source: str, content: str) -> Script:
    """The script a YAML text stands for; the same text is not parsed again.

    Raises DefinitionError listing every fault with its line.
    """
    root = parse(Source(source, content))
    if root is None:
        raise DefinitionError([Fault(source, 1, "the script is empty; it needs a list of turns for each agent")])
    faults: list[Fault] = []
    turns: dict[str, tuple[Turn, ...]] = {}
    try:
        for key, value in root.pairs():
            name = _name(key)
            if name in turns:
                faults.append(key.fault(f"'{name}' stands twice"))
            turns[name] = tuple(_turns(value, faults))
    except Wrong as wrong:
        faults.append(root.fault(f"expected agent names with their lists of turns; {wrong}"))
    if faults:
        raise DefinitionError(sorted(faults, key=lambda fault: (fault.line, fault.column)))
    return Script(source, turns)


def _name(key: Value) -> str:
    return key.node.value if isinstance(key.node, yaml.ScalarNode) else str(key.plain())


def _turns(value: Value, faults: list[Fault]) -> list[Turn]:
    try:
        return [_turn(item, faults) for item in value.items()]
    except Wrong as wrong:
        faults.append(value.fault(f"expected a list of turns; {wrong}"))
        return []


def _turn(value: Value, faults: list[Fault]) -> Turn:
    line = int(cast("Any", value.node.start_mark).line) + value.source.first_line
    if isinstance(value.node, yaml.ScalarNode) and value.plain() is not None:
        return Turn(line, _said(value))
    before = len(faults)
    fields = Fields[Any](value, TURN_KEYS, faults)
    for one, other in (("text", "say"), ("calls", "call"), ("fail", "calls"), ("fail", "call"), ("fail", "repeat")):
        if one in fields and other in fields:
            faults.append(value.fault(f"'{one}' and '{other}' do not go together"))
    calls = fields.take("calls", lambda each: _calls(each, faults), ())
    if "call" in fields:
        calls = fields.take("call", lambda each: (_call(each, faults),), ())
    turn = Turn(
        line,
        text=fields.take("text", _said, "") or fields.take("say", _said, ""),
        reasoning=fields.take("reasoning", _said, ""),
        calls=calls,
        usage=fields.take("usage", lambda each: _tokens(each, faults), Tokens()),
        stall=fields.take("stall", number(), 0.0),
        pace=fields.take("pace", number(), 0.0),
        repeat=fields.take("repeat", integer(1), 1),
        finish=fields.take("finish", lambda each: cast("Finish", _word(each, FINISHES))),
        cost=fields.take("cost", number()),
        fail=fields.take("fail", lambda each: _failure(each, faults)),
    )
    if len(faults) == before and not any(key in fields for key in TURN_KEYS):
        faults.append(value.fault("an empty turn; say what it does: text, calls or fail"))
    return turn


def _said(value: Value) -> str:
    """Words as they are written: `no` and `42` are said, not understood."""
    if not isinstance(value.node, yaml.ScalarNode):
        raise Wrong(f"expected text, found {kind(value.plain())}")
    return "" if value.plain() is None else value.node.value


def _calls(value: Value, faults: list[Fault]) -> tuple[Call, ...]:
    return tuple(_call(item, faults) for item in value.items())


def _call(value: Value, faults: list[Fault]) -> Call:
    before = len(faults)
    fields = Fields[Any](value, CALL_KEYS, faults)
    name = fields.take("name", text, "")
    if "name" not in fields and len(faults) == before:
        faults.append(value.fault("a call needs the name of its tool"))
    id = fields.take("id", text)
    if "raw" in fields:
        if "arguments" in fields:
            faults.append(value.fault("'arguments' and 'raw' do not go together"))
        arguments, error = read_arguments(raw := fields.take("raw", text, ""))
        return Call(name, arguments, raw, error, id)
    arguments = fields.take("arguments", _arguments, {})
    return Call(name, arguments, json.dumps(arguments, ensure_ascii=False), None, id)


def _arguments(value: Value) -> JsonObject:
    plain = value.plain()
    if not isinstance(plain, dict):
        raise Wrong(f"expected a mapping, found {kind(plain)}; for text that is no object use 'raw'")
    try:
        json.dumps(plain)
    except (TypeError, ValueError) as error:
        raise Wrong(f"cannot be said in JSON: {error}; put dates in quotes") from None
    return cast("dict[str, Any]", plain)


def read_arguments(raw: str) -> tuple[JsonObject | None, str | None]:
    """The object a text holds, or what is wrong with it."""
    try:
        value: object = json.loads(raw)
    except ValueError as error:
        return None, f"the arguments are not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, "the arguments are not an object"
    return cast("dict[str, Any]", value), None


def _tokens(value: Value, faults: list[Fault]) -> Tokens:
    if value.plain() is None:
        return Tokens(unknown=True)
    fields = Fields[Any](value, USAGE_KEYS, faults)
    return Tokens(
        input=fields.take("input", integer()),
        output=fields.take("output", integer()),
        cached_input=fields.take("cached_input", integer(), 0),
        cache_write=fields.take("cache_write", integer(), 0),
        reasoning=fields.take("reasoning", integer(), 0),
        estimated=fields.take("estimated", boolean, False),
    )


def _failure(value: Value, faults: list[Fault]) -> Failure:
    if isinstance(value.node, yaml.ScalarNode):
        kind = _word(value, ERROR_KINDS)
        return Failure(cast("ErrorKind", kind), retryable=kind in _HEALS)
    before = len(faults)
    fields = Fields[Any](value, FAIL_KEYS, faults)
    kind = fields.take("kind", lambda each: _word(each, ERROR_KINDS), "")
    if "kind" not in fields and len(faults) == before:
        faults.append(value.fault(f"a failure needs its kind: {', '.join(ERROR_KINDS)}"))
    status = fields.take("status", integer(100, 599))
    heals = kind in _HEALS or (kind == "http" and status is not None and status >= 500)
    return Failure(
        cast("ErrorKind", kind or "provider"),
        times=fields.take("times", integer(1), 1),
        message=fields.take("message", text, ""),
        retry_after=fields.take("retry_after", number()),
        status=status,
        retryable=fields.take("retryable", boolean, heals),
    )


def _word(value: Value, words: tuple[str, ...]) -> str:
    plain = value.plain()
    if plain not in words:
        near = did_you_mean(plain, words) if isinstance(plain, str) else ""
        raise Wrong(f"expected one of {', '.join(words)}, found {kind(plain)}{near}")
    return cast("str", plain)
