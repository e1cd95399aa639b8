"""The budget under a million simulated model calls, and what a step costs: `python -m bench.budget [CALLS]`.

Trees of actors with random limits ask, wait, settle, delegate and end in random order. Every promise of the ledger is
checked at every call; the first that does not hold ends the simulation with an AssertionError.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Iterator
from random import Random

import attrs

from runtime.limits.budget import Account, Ask, Barred, Granted, Purpose, Refused, Settled, Wait
from runtime.limits.estimate import Gauge
from runtime.limits.ledger import Ledger
from runtime.limits.limits import Limits
from runtime.limits.price import Price
from runtime.messages import Usage

PRICE = Price(3.0, 15.0, 0.3, 3.75)
ENDED_WELL = 0.03
DELEGATES = 0.15
FAILS = 0.03
COMPACTS = 0.05
ENOUGH = 10_000


@attrs.define
class Figures:
    """What a simulation saw.

    `largest_excess` is in tokens, over a token budget of a root; `allowed_then` is by how much the calls then in
    flight had been underestimated.
    """

    runs: int = 0
    calls: int = 0
    actors: int = 0
    waits: int = 0
    refusals: int = 0
    last_turns: int = 0
    last_turns_refused: int = 0
    barred: int = 0
    overruns: int = 0
    largest_excess: int = 0
    allowed_then: int = 0
    tokens: int = 0


@attrs.define(eq=False)
class _Actor:
    path: str
    parent: _Actor | None
    gauge: Gauge
    result_cap: int = 0
    children: int = 0
    started: int = 0
    purpose: Purpose = "turn"
    busy: bool = False
    tried_last_turn: bool = False


@attrs.frozen
class _Call:
    actor: _Actor
    granted: Granted
    usage: Usage
    purpose: Purpose


def simulate(seed: int, calls: int, wrong: tuple[float, float] | None = None) -> Figures:
    """Run trees until so many calls were made. `wrong` is by what factor a real input may differ from its estimate;
    without it, counts are honest: a call never has more input than was reserved. Raises AssertionError."""
    figures = Figures()
    random = Random(seed)
    while figures.calls < calls:
        _Run(random, wrong, figures).to_its_end()
        figures.runs += 1
    return figures


class _Run:
    def __init__(self, random: Random, wrong: tuple[float, float] | None, figures: Figures) -> None:
        self.random = random
        self.wrong = wrong
        self.figures = figures
        self.ledger = Ledger()
        self.actors: dict[str, _Actor] = {}
        self.calls: list[_Call] = []
        self.waiting: dict[str, _Actor] = {}
        self.passed: set[str] = set()
        self.errors: dict[str, dict[str, float]] = {}
        self.price = PRICE if random.random() < 0.7 else None
        self.start("root", None)

    def to_its_end(self) -> None:
        moves = 0
        while self.actors:
            moves += 1
            assert moves < ENOUGH * 10, "a run must end"
            ready = [actor for actor in self.actors.values() if not actor.busy and not actor.children]
            if ready and (not self.calls or self.random.random() < 0.6):
                self.act(self.random.choice(ready))
            else:
                assert self.calls, f"nobody can go on, and {list(self.waiting)} wait"
                self.finish_call(self.calls.pop(self.random.randrange(len(self.calls))))

    def start(self, path: str, parent: _Actor | None) -> None:
        opened = self.ledger.open(path, None if parent is None else parent.path, self.limits(parent is None))
        if isinstance(opened, Barred):
            self.figures.barred += 1
            return
        self.figures.actors += 1
        self.actors[path] = _Actor(path, parent, Gauge(added=self.random.randrange(100, 6000)))
        if parent is not None:
            parent.children += 1
            parent.started += 1

    def limits(self, root: bool) -> Limits:
        random = self.random

        def maybe(low: int, high: int, chance: float) -> int | None:
            return random.randrange(low, high) if random.random() < chance else None

        cost = random.uniform(0.02, 2.0) if self.price is not None and random.random() < 0.5 else None
        return Limits(
            max_steps=random.randrange(1, 40),
            total_steps=maybe(5, 200, 0.4),
            token_budget=random.randrange(5_000, 400_000) if root else maybe(2_000, 100_000, 0.5),
            input_budget=maybe(2_000, 200_000, 0.2),
            output_budget=maybe(1_000, 50_000, 0.2),
            cost_budget=cost,
            max_depth=3 if root else None,
            max_children=random.randrange(0, 6),
            max_total_children=20 if root else None,
            max_concurrent_calls=maybe(1, 5, 0.3),
        )

    def act(self, actor: _Actor) -> None:
        chance = self.random.random()
        if actor.purpose == "wrap_up":
            self.ask(actor, "wrap_up")
        elif chance < ENDED_WELL:
            self.end(actor)
        elif chance < ENDED_WELL + DELEGATES and actor.gauge.known:
            for _ in range(self.random.randrange(1, 4)):
                self.start(f"{actor.path}/{actor.started}", actor)
        else:
            self.ask(actor, "summary" if chance > 1 - COMPACTS and actor.gauge.known else "turn")

    def ask(self, actor: _Actor, purpose: Purpose) -> bool:
        """Ask once; whether there was an answer."""
        actor.purpose = purpose
        request = Ask(
            actor.gauge.tokens(),
            4096,
            self.price,
            result_cap=self.random.choice((0, 300, 4000, 8000)) if purpose == "turn" else 0,
            purpose=purpose,
        )
        answer = self.ledger.reserve(actor.path, request)
        waited = self.waiting.pop(actor.path, None) is not None
        match answer:
            case Wait():
                self.figures.waits += not waited
                assert self.calls, "a call waits only for calls in flight"
                actor.busy = True
                self.waiting[actor.path] = actor
                return False
            case Refused():
                actor.busy = False
                self.refused(actor, purpose, answer)
            case Granted():
                self.granted(actor, purpose, answer)
        if waited:
            self.retry_those_who_wait()
        return True

    def refused(self, actor: _Actor, purpose: Purpose, refused: Refused) -> None:
        self.figures.refusals += 1
        if purpose == "summary":
            actor.purpose = "turn"
            return
        if purpose == "wrap_up":
            self.figures.last_turns_refused += 1
            excused = self.wrong is not None or not actor.gauge.known or actor.tried_last_turn
            assert excused, f"an honest last turn must fit: {refused.message}"
            self.end(actor)
            return
        actor.purpose = "wrap_up"

    def granted(self, actor: _Actor, purpose: Purpose, granted: Granted) -> None:
        assert granted.output_cap >= 256
        for account in self.books(actor):
            assert self.wrong is not None or account.free >= 0, f"promised more than there is: {account}"
            assert account.scope not in self.passed, f"granted after an overrun: {account}"
            self.errors[account.scope] = {}
        self.figures.calls += 1
        self.figures.last_turns += purpose == "wrap_up"
        actor.tried_last_turn |= purpose == "wrap_up"
        actor.busy = True
        low, high = self.wrong or (0.3, 1.0)
        real = max(1, int(granted.input_tokens * self.random.uniform(low, high)))
        output = self.random.randrange(1, granted.output_cap + 1)
        cached = self.random.randrange(real) if self.random.random() < 0.5 else 0
        if self.random.random() < 0.5:
            output = min(output, 400)
        if self.wrong is None:
            real = min(real, granted.input_tokens)
        actor.result_cap = granted.result_cap
        self.calls.append(_Call(actor, granted, Usage(real, output, cached), purpose))

    def finish_call(self, call: _Call) -> None:
        actor, usage = call.actor, call.usage
        chance = self.random.random()
        replied = chance >= FAILS
        reported = None if chance < FAILS / 2 or chance > 1 - FAILS / 2 else usage
        settled = self.ledger.settle(call.granted.id, reported, replied=replied)
        self.figures.tokens += settled.usage.total
        self.check_overruns(call, settled)
        actor.busy = False
        if replied:
            actor.gauge = (
                actor.gauge.after_unreported("x" * (2 * settled.usage.output))
                if reported is None
                else actor.gauge.after_reply(usage)
            )
            match call.purpose:
                case "wrap_up":
                    self.end(actor)
                case "summary":
                    actor.gauge = Gauge(known=max(1, call.granted.input_tokens // 2))
                    actor.purpose = "turn"
                case _:
                    actor.gauge = actor.gauge.add_bytes(2 * self.random.randrange(actor.result_cap + 1))
        self.retry_those_who_wait()

    def check_overruns(self, call: _Call, settled: Settled) -> None:
        """What is overspent was reported, and is no more than the calls in flight at the last grant used unforeseen."""
        granted, usage = call.granted, settled.usage
        unforeseen = {
            "input_budget": usage.input - granted.input_tokens,
            "token_budget": usage.total - granted.input_tokens - granted.output_cap,
            "cost_budget": (settled.cost_usd or 0.0) - (granted.cost_usd or 0.0),
        }
        over: set[tuple[str, str]] = set()
        for account in self.books(call.actor):
            error = self.errors.setdefault(account.scope, {})
            if account.name in unforeseen:
                error[account.name] = error.get(account.name, 0) + max(0, unforeseen[account.name])
            excess = account.spent - account.of
            if excess > 0:
                over.add((account.scope, account.name))
                allowed = error.get(account.name, 0)
                assert excess <= allowed + 1e-9, f"{account} is passed by {excess}, the estimates by {allowed}"
                root = account.name == "token_budget" and account.scope == "root"
                if root and excess > self.figures.largest_excess:
                    self.figures.largest_excess, self.figures.allowed_then = int(excess), int(allowed)
        assert self.wrong is not None or not over, "nothing is overspent when counts are honest"
        assert {(overrun.scope, overrun.limit) for overrun in settled.overruns} == over, "overruns are reported"
        fresh = {scope for scope, _ in over} - self.passed
        self.figures.overruns += len(fresh)
        self.passed |= fresh

    def books(self, actor: _Actor) -> Iterator[Account]:
        """Every counting limit that binds an actor's calls."""
        above: _Actor | None = actor
        while above is not None:
            for account in self.ledger.accounts(above.path):
                if not account.name.startswith("max_"):
                    yield account
            above = above.parent

    def end(self, actor: _Actor) -> None:
        self.ledger.close(actor.path)
        del self.actors[actor.path]
        if actor.parent is not None:
            actor.parent.children -= 1
        self.retry_those_who_wait()

    def retry_those_who_wait(self) -> None:
        for path in self.ledger.waiting:
            actor = self.waiting.get(path)
            if actor is not None and self.ask(actor, actor.purpose):
                return
        assert self.calls or not self.waiting, "somebody waits for nothing"


def cost_per_step(depth: int, steps: int) -> tuple[float, float]:
    """Microseconds of CPU a step (reserve and settle) costs `depth` actors deep: the first tenth's, and the last's."""
    ledger = Ledger()
    paths = ["/".join("a" * (level + 1)) for level in range(depth)]
    wide = Limits(max_steps=1 << 40, total_steps=1 << 40, token_budget=1 << 50, cost_budget=1e9)
    for index, path in enumerate(paths):
        ledger.open(path, paths[index - 1] if index else None, wide)
    seconds: list[float] = []
    for _ in range(10):
        started = time.process_time()
        for _ in range(steps // 10):
            granted = ledger.reserve(paths[-1], Ask(3000, 4096, PRICE, 8000))
            assert isinstance(granted, Granted)
            ledger.settle(granted.id, Usage(2900, 500, 100))
        seconds.append(time.process_time() - started)
    return seconds[0] / steps * 1e7, seconds[-1] / steps * 1e7


def growth(steps: int) -> int:
    """Bytes a ledger has grown by after so many steps in ever new children."""
    ledger = Ledger()
    ledger.open("root", None, Limits(max_steps=1 << 40))

    def work(first: int, count: int) -> None:
        for number in range(first, first + count):
            ledger.open(f"root/{number}", "root", Limits(token_budget=100_000))
            granted = ledger.reserve(f"root/{number}", Ask(3000, 4096, PRICE, 8000))
            assert isinstance(granted, Granted)
            ledger.settle(granted.id, Usage(2900, 500))
            ledger.close(f"root/{number}")

    work(0, 100)
    gc.collect()
    tracemalloc.start()
    work(100, steps)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return grown


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for title, wrong in (("honest counts", None), ("estimates wrong by 0.5 to 2", (0.5, 2.0))):
        started = time.perf_counter()
        figures = simulate(7, calls, wrong)
        print(f"{title}: {time.perf_counter() - started:.0f} s")
        for name, value in attrs.asdict(figures).items():
            print(f"  {name.replace('_', ' '):20} {value:>14,}")
    for depth in (1, 2, 4):
        first, last = cost_per_step(depth, 10_000)
        print(f"a step {depth} deep: {first:.1f} us at the start, {last:.1f} us after 10,000 steps")
    print(f"memory after 10,000 steps in 10,000 children: {growth(10_000):+,} bytes")


if __name__ == "__main__":
    main()
