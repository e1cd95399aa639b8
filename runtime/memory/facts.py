"""The memory of one run: the facts of its workspace and of its user, and no others. All of it blocks."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from .fact import Fact, Scope, objection, tidy
from .store import Call, FactStore, MemoryUnusable, NoFact, Remembered
from .words import every


def _as_it_is(text: str) -> str:
    return text


@attrs.frozen
class Facts:
    """`workspace` is the real path of the run's, `veil` takes out of a text what must not be told.

    Every method raises MemoryUnusable.
    """

    store: FactStore
    workspace: str
    run: str
    veil: Callable[[str], str] = _as_it_is
    clock: Callable[[], float] = time.time

    def remember(self, text: str, scope: Scope, actor: str, call_id: str) -> Remembered:
        """Keep a fact, once for this call."""
        text = tidy(text)
        if why := objection(text, self.veil):
            raise MemoryUnusable(f"not remembered: {why}")
        where = self.workspace if scope == "workspace" else ""
        call = Call(self.run, call_id, f"remember {scope} {text}")
        return self.store.remember(text, workspace=where, at=self.clock(), call=call, actor=actor)

    def recall(self, question: str, limit: int) -> list[Fact]:
        """What is known of a question, best first; the newest facts where none is asked."""
        within = (self.workspace, "")
        if not question.strip():
            return self.store.newest(within=within, limit=limit)
        return self.store.search(question, within=within, limit=limit)

    def count(self) -> int:
        return len(self.store.newest(within=(self.workspace, "")))

    def chosen(self, id: int | None, question: str) -> Fact:
        """The one fact an id or a question names. Raises NoFact for none and for several."""
        if (id is None) == (not question.strip()):
            raise NoFact("name one fact: by its id, or by words that only it holds")
        if id is not None:
            fact = self.store.get(id)
            if fact is None or fact.workspace not in (self.workspace, ""):
                raise NoFact(f"there is no fact {id}; recall shows those there are")
            return fact
        return only(self.store.search(question, within=(self.workspace, ""), how="all"), question)

    def forget(self, id: int | None, question: str, call_id: str) -> tuple[int, Fact | None]:
        """Take the one fact out that is named; its id, and the fact unless this very call has done it before.

        Raises NoFact.
        """
        call = Call(self.run, call_id, f"forget {id} {question}")
        if (done := self.store.done(call)) is not None:
            return done, None
        fact = self.chosen(id, question)
        if not self.store.forget([fact], self.clock(), call):
            raise NoFact(f"fact {fact.id} has changed or gone meanwhile; nothing was forgotten")
        return fact.id, fact


def only(found: list[Fact], question: str) -> Fact:
    """The one fact that was found. Raises NoFact: several are never meant, however alike they are."""
    if not found:
        words = "holds all of these words" if every(question) else "can be looked for: there is no word in it"
        raise NoFact(f"no fact {words}: {question.strip()!r}")
    if len(found) > 1:
        ids = ", ".join(str(fact.id) for fact in found[:20])
        more = f" and {len(found) - 20} more" if len(found) > 20 else ""
        raise NoFact(f"{len(found)} facts hold these words: {ids}{more}; name one by its id, nothing was forgotten")
    return found[0]
