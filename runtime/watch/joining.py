"""What an actor says piece by piece as events: one for all neighbours of a kind; pure.

A model's pieces come by the thousand; what a reader is given some dozens of times a second needs one event an actor and
kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from runtime.events import ModelDelta, ToolOutput
from runtime.model import Delta, DeltaKind

Piece: TypeAlias = Delta | ToolOutput
"""A piece of a model's reply, or of what a tool of the actor shows."""


def joined(actor: str, pieces: Iterable[Piece]) -> Iterator[ModelDelta | ToolOutput]:
    """The pieces in their order, neighbours of the same kind and index, or of the same call, as one event."""
    for key, group in groupby(pieces, _kind):
        text = "".join(each.text for each in group)
        match key:
            case str():
                yield ToolOutput(actor=actor, call_id=key, text=text)
            case kind, index:
                yield ModelDelta(actor=actor, kind=kind, text=text, index=index)


class Turn:
    """What a model call under way has said so far, for who comes late; its pieces are joined before they are many."""

    __slots__ = ("_most", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[Delta] = []
        self._most = 4

    def add(self, deltas: Sequence[Delta]) -> None:
        self._pieces.extend(deltas)
        if len(self._pieces) > self._most:
            self._pieces = self.whole()
            self._most = 64 + 2 * len(self._pieces)

    def whole(self) -> list[Delta]:
        """One piece for each kind and index, in the order in which they began."""
        texts: dict[tuple[DeltaKind, int], list[str]] = {}
        for delta in self._pieces:
            texts.setdefault((delta.kind, delta.index), []).append(delta.text)
        return [Delta(kind, "".join(pieces), index) for (kind, index), pieces in texts.items()]


def _kind(piece: Piece) -> tuple[str, int] | str:
    return (piece.kind, piece.index) if isinstance(piece, Delta) else piece.call_id
