"""What the guard decides after a step, with the evidence an event carries."""

from attrs import frozen


@frozen
class Evidence:
    """The facts behind a verdict, small enough for an event.

    `kind` names the pattern: repeat, cycle, parallel, same-error, same-answer, reread, poll, delegation, text,
    chant, refused. `calls` are the calls concerned as a person reads them, `times` how often it was seen.
    """

    kind: str
    calls: tuple[str, ...]
    times: int
    result: str = ""


@frozen
class Ok:
    """Nothing to say."""


@frozen
class Nudge:
    """The calls ran; the model is told what it is doing before its next reply."""

    why: str
    evidence: Evidence


@frozen
class Block:
    """These calls are refused from now on, until something new happens. `calls` are (name, canonical arguments)."""

    why: str
    evidence: Evidence
    calls: tuple[tuple[str, str], ...]


@frozen
class Stop:
    """Tool use ends: one last answer without tools, then the actor is stopped with the reason `loop`."""

    why: str
    evidence: Evidence


@frozen
class Refusal:
    """Why a call does not run. The text is meant as the call's result."""

    why: str


Verdict = Ok | Nudge | Block | Stop


def note(verdict: Verdict) -> str:
    """What the model is told, empty for `Ok`."""
    match verdict:
        case Ok():
            return ""
        case Nudge(why):
            return f"[loop guard] {why}. Use what you have, try something different, or say what is missing."
        case Block(why):
            return f"[loop guard] {why}. This call is refused until something new happens: do something else."
        case Stop(why):
            return f"[loop guard] {why}. Tools are off now: give your best answer from what you have."


def rank(verdict: Verdict) -> int:
    """Order of severity: ok 0, nudge 1, block 2, stop 3."""
    match verdict:
        case Ok():
            return 0
        case Nudge():
            return 1
        case Block():
            return 2
        case Stop():
            return 3
