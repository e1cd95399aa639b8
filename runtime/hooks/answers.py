"""What a hook's exit code and output mean, and what several answers come to. Pure.

A JSON answer has the keys `decision`, `reason`, `arguments`, `result` and `context`; the ones Claude Code's hooks use
(`hookSpecificOutput` and its parts, `continue`, `stopReason`) are read as well. What cannot be understood is a failure
and never an allowance: a misspelt refusal must not let a call pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias, cast

import attrs

from runtime.errors import did_you_mean
from runtime.messages import JsonObject
from runtime.policy.decision import Decision as Permission

from .moments import Decision, Moment

DENIES = 2
"""The exit code that refuses; standard error says why."""
MOST_OUTPUT = 1_000_000
"""Bytes of standard output that are taken in."""
MOST_ERROR = 16_000
MOST_CONTEXT = 10_000
"""Characters of context that one answer may add."""
MOST_REASON = 2_000

_KEYS = ("decision", "reason", "arguments", "result", "context", "message")
_THEIRS = ("hookSpecificOutput", "continue", "stopReason", "suppressOutput", "systemMessage")
_SPECIFIC = (
    *("hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"),
    "decision",
)
_WORDS: Mapping[str, Decision] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}
_STRICTNESS: Mapping[Decision, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}


@attrs.frozen
class Answer:
    """What one hook says. `message` is for people who read the log."""

    decision: Decision = ""
    reason: str = ""
    arguments: JsonObject | None = None
    result: str | None = None
    context: str = ""
    message: str = ""


@attrs.frozen
class Failed:
    """A hook that gave no answer, and why."""

    why: str


Said: TypeAlias = Answer | Failed


@attrs.frozen
class Outcome:
    """What the hooks of one moment come to so far; `by` names the one that decided."""

    decision: Decision = ""
    reason: str = ""
    by: str = ""
    arguments: JsonObject | None = None
    result: str | None = None
    contexts: tuple[str, ...] = ()

    @property
    def is_denied(self) -> bool:
        return self.decision == "deny"

    def then(self, hook: str, answer: Answer) -> Outcome:
        """After one more answer: the strictest decision stands, the newest arguments and result count."""
        stricter = _STRICTNESS[answer.decision] > _STRICTNESS[self.decision]
        return Outcome(
            decision=answer.decision if stricter else self.decision,
            reason=answer.reason if stricter else self.reason,
            by=hook if stricter else self.by,
            arguments=self.arguments if answer.arguments is None else answer.arguments,
            result=self.result if answer.result is None else answer.result,
            contexts=(*self.contexts, answer.context) if answer.context else self.contexts,
        )


def stands_for(said: Said, hook: str, on_error: str) -> Answer:
    """The answer that counts: a failure refuses, or says nothing at all; it never allows what would be asked."""
    if isinstance(said, Answer):
        return said
    if on_error == "deny":
        return Answer("deny", f"the hook {hook} failed: {said.why}")
    return Answer()


def ruled(permission: Permission, outcome: Outcome, *, yes: bool = False) -> Permission:
    """The decision on a call after its hooks.

    A hook makes anything stricter. Its allow answers only the question that nobody's rule asks for (`built-in`); it
    lifts no deny, no ask rule, nothing of the ceiling. With `yes` what a hook asks is answered, as every question is.
    """
    by = f"hook: {outcome.by}"
    match permission.verdict, outcome.decision:
        case "deny", _:
            return permission
        case _, "deny":
            return Permission("deny", outcome.reason or "no reason given", by)
        case "allow", "ask" if not yes:
            return Permission("ask", outcome.reason or "a hook asks", by)
        case "ask", "allow" if permission.by == "built-in":
            return Permission("allow", outcome.reason or "a hook allows it", by)
        case _:
            return permission


def read_exit(moment: Moment, code: int, output: bytes, error: bytes, *, cut: bool = False) -> Said:
    """What a command that has ended says; `cut`: its output was longer than MOST_OUTPUT."""
    complaint = _text(error, MOST_REASON)
    if code == DENIES:
        reason = complaint or _text(output, MOST_REASON) or "no reason given"
        return _checked(moment, Answer("deny", reason))
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return Failed(f"it {how}: {complaint}" if complaint else f"it {how}")
    if cut:
        return Failed(f"its answer is longer than {MOST_OUTPUT} bytes")
    text = output.strip()
    if not text.startswith(b"{"):
        plain = _text(output, MOST_CONTEXT)
        return Answer(context=plain) if moment.plain else Answer(message=_short(plain, MOST_REASON))
    try:
        data: Any = json.loads(text.decode(), parse_constant=_no_constant)
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair cannot be kept
    except (ValueError, RecursionError) as error_:
        return Failed(f"its answer is no JSON: {_short(str(error_), 200)}")
    return read_answer(moment, data)


def read_answer(moment: Moment, data: object) -> Said:
    """What a JSON answer, or what a function gave back, says."""
    if data is None:
        return Answer()
    if isinstance(data, Answer):
        return _checked(moment, data)
    if not isinstance(data, Mapping):
        return Failed(f"its answer is {type(data).__name__}, not an object")
    try:
        return _checked(moment, _read(cast("Mapping[str, Any]", data)))
    except _Unreadable as error:
        return Failed(str(error))


class _Unreadable(Exception):
    pass


def _read(data: Mapping[str, Any]) -> Answer:
    _known(data, (*_KEYS, *_THEIRS))
    inner = _object(data, "hookSpecificOutput")
    _known(inner, _SPECIFIC)
    asked = inner.get("decision")
    behaviour: Mapping[str, Any] = {}
    if isinstance(asked, Mapping):  # as an answer to a permission request is written
        behaviour = cast("Mapping[str, Any]", asked)
        _known(behaviour, ("behavior", "message", "updatedInput"))
    decisions = [
        _decision(data, "decision"),
        _decision(inner, "permissionDecision"),
        _decision(behaviour, "behavior") if behaviour else _decision(inner, "decision"),
        "deny" if _continues(data) is False else "",
    ]
    decision = max(cast("list[Decision]", decisions), key=lambda each: _STRICTNESS[each])
    reason = (
        _string(data, "reason")
        or _string(inner, "permissionDecisionReason")
        or _string(behaviour, "message")
        or _string(data, "stopReason")
    )
    arguments = next(
        (
            dict(_object(place, key))
            for place, key in ((data, "arguments"), (inner, "updatedInput"), (behaviour, "updatedInput"))
            if place.get(key) is not None
        ),
        None,
    )
    return Answer(
        decision=decision,
        reason=_short(reason, MOST_REASON),
        arguments=arguments,
        result=None if data.get("result") is None else _string(data, "result"),
        context=_short(_string(data, "context") or _string(inner, "additionalContext"), MOST_CONTEXT),
        message=_short(_string(data, "message") or _string(data, "systemMessage"), MOST_REASON),
    )


def _checked(moment: Moment, answer: Answer) -> Said:
    """The answer if this moment heeds all of it: what would have no effect must not look as if it had."""
    if answer.decision and answer.decision not in moment.decisions:
        return Failed(f"{moment.name} hooks cannot {answer.decision}{_because(answer.reason)}")
    for word, given, heeded in (
        ("arguments", answer.arguments is not None, moment.arguments),
        ("a result", answer.result is not None, moment.result),
        ("context", bool(answer.context), moment.context),
    ):
        if given and not heeded:
            return Failed(f"{moment.name} hooks cannot give {word}")
    if answer.decision == "deny" and not answer.reason:
        return attrs.evolve(answer, reason="no reason given")
    return answer


def _because(reason: str) -> str:
    return f" ({_short(reason, 200)})" if reason else ""


def _known(data: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in data:
        if key not in keys:
            raise _Unreadable(f"its answer has an unknown key '{_short(str(key), 60)}'{did_you_mean(str(key), keys)}")


def _decision(data: Mapping[str, Any], key: str) -> Decision:
    value = data.get(key)
    if value is None or value == "":
        return ""
    found = _WORDS.get(value) if isinstance(value, str) else None
    if found is None:
        raise _Unreadable(f"its {key} is allow, ask or deny, not {_short(repr(value), 60)}")
    return found


def _continues(data: Mapping[str, Any]) -> bool | None:
    value = data.get("continue")
    if value is not None and not isinstance(value, bool):
        raise _Unreadable("its continue is true or false")
    return value


def _string(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Unreadable(f"its {key} is text, not {type(value).__name__}")
    return value


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _Unreadable(f"its {key} is an object, not {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _text(data: bytes, most: int) -> str:
    return _short(data.decode(errors="replace").strip(), most)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
