"""What the runtime itself says to a model, word for word: the record is read by these texts when a run goes on."""

from __future__ import annotations

CONTINUE = "Continue exactly where you stopped; do not repeat what you have already written."
EMPTY = "Your reply was empty. Give your answer, or call a tool."
GO_ON = "There is room to go on now. Continue with your task from where you stand."
LAST_TURN = (
    "This is your last turn: no more tools. Give the best answer you can from what you have so far, "
    "and say what is not done."
)
UNKNOWN = "interrupted before a result was recorded; it may have taken effect; inspect before repeating"


def last_turn(detail: str) -> str:
    """The note that asks for the last answer, and says why now."""
    return f"{_sentence(detail)} {LAST_TURN}"


def _sentence(text: str) -> str:
    name = "_" in text.partition(":")[0]
    return (text if name else text[:1].upper() + text[1:]) + ("" if text.endswith(".") else ".")


STALE_SKILL = (
    "The skill {name} has changed since you loaded it: what you read then is out of date. use_skill shows it anew."
)
