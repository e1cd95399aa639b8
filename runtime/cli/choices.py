"""What a human types about a call that waits: a letter alone is a choice, any other text a reason to refuse; pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from runtime.events import ApprovalRequested


@attrs.frozen
class Allow:
    """Let it run; `scope` is once, run or workspace."""

    scope: str = "once"


@attrs.frozen
class Refuse:
    """Do not; the model reads `why`."""

    why: str = ""


Choice: TypeAlias = Allow | Refuse | Literal["edit", "stop", "none"]


def choice_of(request: ApprovalRequested, text: str) -> Choice:
    """What the text stands for; "none" for a letter that is no choice here, and for no text at all."""
    match text.lower():
        case "y" | "yes":
            return Allow()
        case "r" if request.always:
            return Allow("run")
        case "a" if request.always:
            return Allow("workspace")
        case "n" | "no":
            return Refuse()
        case "e":
            return "edit"
        case "s":
            return "stop"
        case letter if len(letter) <= 1:
            return "none"
        case _:
            return Refuse(text)
