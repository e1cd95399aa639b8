"""A world drawn from a seed: a small cast, its limits, and everything that will go wrong."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, TypeAlias

import attrs

from runtime.config import Humans
from runtime.definitions import Caps, Definition, Permissions
from runtime.limits.limits import Limits
from runtime.limits.price import Price

Counts: TypeAlias = Literal["honest", "exact", "missing", "wrong", "lying"]
"""What the model's usage is worth: at most what was reserved (the first three), off by 0.5x to 2x, over its cap."""
AccidentKind: TypeAlias = Literal["append", "barrier", "kill", "effect", "report"]
DeedKind: TypeAlias = Literal["say", "interrupt", "cancel", "cancel run", "hold", "limits"]
Manner: TypeAlias = Literal["worker", "looper", "cycler", "boss", "talker", "rambler", "mute", "quick"]

NAMES = ("lead", "alpha", "beta", "gamma")
TOOLS = ("wall", "look", "watch", "note", "act", "pay", "flood", "ask_user", "nap", "hang", "boom")
PRICE = Price(3.0, 15.0, 0.3, 3.75)
LEADING: tuple[Manner, ...] = ("worker", "worker", "boss", "boss", "boss", "looper", "looper", "cycler")
FOLLOWING: tuple[Manner, ...] = (
    *("worker", "worker", "worker", "boss", "looper", "looper", "cycler"),
    *("talker", "rambler", "mute", "quick"),
)


@attrs.frozen
class Accident:
    """How a life of the process ends early: the store fails at its n-th call, or everything is killed, at a step of the
    scheduler, as a tool takes effect for the n-th time, or when the n-th child's report is on record and its parent has
    not got it.

    `extra` is how many records that were not durable yet are found there all the same.
    """

    kind: AccidentKind
    at: int
    extra: int


@attrs.frozen
class Deed:
    """What a person does to the live run at a step of the scheduler."""

    kind: DeedKind
    at: int
    pick: float


@attrs.frozen
class World:
    """One world. Rates are chances per call; `patient`: nothing takes time but people."""

    seed: int
    agents: tuple[Definition, ...]
    manners: dict[str, Manner]
    limits: Limits
    counts: Counts
    price: Price | None
    allow: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    yes: bool
    headless: bool
    patient: bool
    errors: float
    stalls: float
    crashes: float
    chants: float
    answers: Literal["soon", "late", "mixed"]
    silence: float
    humans: Humans
    confirm: bool
    accidents: tuple[Accident, ...]
    deeds: tuple[Deed, ...]
    unrest: float
    slow_store: bool
    more: bool
    window: int | None

    @property
    def honest(self) -> bool:
        return self.counts in ("honest", "exact", "missing")

    @property
    def undisturbed(self) -> bool:
        """Nobody says, holds, changes or cancels anything, and the process lives on."""
        return not self.deeds and not self.accidents

    def chance(self, *place: object) -> Random:
        """Randomness that belongs to a place in the world, whatever ran before."""
        return Random("/".join(map(str, (self.seed, *place))))


def draw(seed: int) -> World:
    """The world of a seed."""
    random = Random(seed)
    often = random.random  # each feature is in some worlds and not in others, so that it can be seen alone
    names = NAMES[: random.choice((1, 2, 2, 3, 3, 3, 4))]
    patient = often() < 0.2
    people = often() < 0.5
    limits = _limits(random, patient)
    manners: dict[str, Manner] = {name: random.choice(LEADING if name == names[0] else FOLLOWING) for name in names}
    return World(
        seed=seed,
        agents=tuple(_agent(random, name, names, manners[name], patient) for name in names),
        manners=manners,
        limits=limits,
        counts=random.choice(("honest", "honest", "exact", "missing", "wrong", "lying")),
        price=PRICE if limits.cost_budget is not None or often() < 0.5 else None,
        allow=tuple(name for name in ("act", "pay", "note") if often() < 0.6),
        ask=tuple(name for name in ("look", "agent(alpha)", "nap") if often() < 0.1),
        deny=("act",) if often() < 0.1 else (),
        yes=often() < 0.15,
        headless=often() < 0.2,
        patient=patient,
        errors=0.0 if patient else random.choice((0.0, 0.0, 0.1, 0.3)),
        stalls=0.0 if patient else random.choice((0.0, 0.0, 0.05, 0.3)),
        crashes=0.05 if often() < 0.15 else 0.0,
        chants=0.15 if not patient and often() < 0.15 else 0.0,
        answers="late" if patient else random.choice(("soon", "late", "mixed")),
        silence=random.choice((0.0, 0.0, 0.3)),
        humans=Humans(
            timeout=random.choice((60.0, 90_000.0)) if often() < 0.2 else None,
            answer="as you like" if often() < 0.2 else None,
        ),
        confirm=often() < 0.3,
        accidents=(tuple(_accident(random) for _ in range(random.choice((1, 1, 2, 3)))) if often() < 0.4 else ())
        or _between_reports(Random(f"{seed}/report"), manners[names[0]]),
        deeds=tuple(_deed(random, patient) for _ in range(random.randint(1, 4))) if people else (),
        unrest=random.choice((0.0, 0.2, 0.5)),
        slow_store=not patient and often() < 0.3,
        more=often() < 0.2,
        window=Random(f"{seed}/window").choice((None, None, 2_500, 3_000, 6_000)),
    )


def _limits(random: Random, patient: bool) -> Limits:
    """Room for everything but for a few limits that are tight: so that each is met alone, and with each other one."""
    tight: dict[str, Any] = {
        "max_steps": random.choice((1, 2, 4, 6)),
        "total_steps": random.choice((1, 3, 6, 10)),
        "token_budget": random.choice((2_500, 8_000, 20_000, 60_000)),
        "cost_budget": random.choice((0.01, 0.05, 0.2)),
        "timeout": random.choice((1.0, 20.0, 300.0)),
        "max_tool_calls": random.choice((0, 2, 4, 8)),
        "max_depth": random.choice((0, 1)),
        "max_children": random.choice((0, 1)),
        "max_total_children": random.choice((1, 3)),
        "max_concurrent_calls": random.choice((1, 1, 2)),
    }
    if patient:
        del tight["timeout"]
    room: dict[str, Any] = {
        "max_steps": 14,
        "total_steps": 32,
        "token_budget": 600_000,
        "timeout": 600.0 if patient else random.choice((600.0, 20_000.0)),
        "max_depth": 2,
        "max_children": 3,
        "max_total_children": 6,
    }
    chosen = random.sample(sorted(tight), random.choice((0, 0, 1, 1, 2, 3)))
    return Limits.from_json(room | {name: tight[name] for name in chosen})


def _agent(random: Random, name: str, names: tuple[str, ...], manner: Manner, patient: bool) -> Definition:
    often = random.random
    runs_in_circles = manner == "looper" and often() < 0.8
    tools = [
        tool
        for tool in TOOLS
        if often() < (0.15 if tool in ("hang", "boom", "nap") else 0.45) and not (patient and tool in ("nap", "hang"))
    ]
    if runs_in_circles and "wall" not in tools:
        tools.append("wall")
    return Definition(
        name,
        f"The {name}.",
        f"You are {name}.",
        path=f"{name}.md",
        tools=tuple(tools),
        subagents=tuple(other for other in names if often() < (0.15 if other == name else 0.75)),
        caps=Caps(
            max_steps=random.choice((1, 3, 5, 8, 14))
            if name != names[0] and not runs_in_circles and often() < 0.7
            else None,
            total_steps=random.choice((2, 5, 9)) if often() < 0.2 else None,
            token_budget=random.choice((4_000, 15_000)) if often() < 0.2 else None,
            timeout=random.choice((5.0, 60.0, 900.0)) if not patient and often() < 0.3 else None,
            max_depth=random.choice((0, 1)) if often() < 0.15 else None,
            max_children=random.choice((1, 2)) if often() < 0.3 else None,
            max_tool_calls=random.choice((1, 4)) if often() < 0.15 else None,
        ),
        permissions=Permissions(deny=("note",)) if often() < 0.1 else Permissions(),
        loops="off" if often() < 0.08 else {},
        max_output_tokens=random.choice((None, None, 300, 2_000, 2_000, 64)),
    )


def _between_reports(random: Random, leading: Manner) -> tuple[Accident, ...]:
    return (Accident("report", random.choice((1, 1, 2)), 100),) if leading == "boss" and random.random() < 0.1 else ()


def _accident(random: Random) -> Accident:
    kind: AccidentKind = random.choice(("append", "barrier", "kill", "effect"))
    most = {"append": 120, "barrier": 25, "kill": 900, "effect": 5}[kind]
    return Accident(kind, 1 + int(most * random.random() ** 2), random.choice((0, 0, 1, 3, 100)))


_DEEDS: tuple[DeedKind, ...] = (
    "say",
    "say",
    "interrupt",
    "interrupt",
    "cancel",
    "cancel run",
    "hold",
    "hold",
    "limits",
)


def _deed(random: Random, patient: bool) -> Deed:
    kind = random.choice(_DEEDS)
    if patient and kind == "limits":
        kind = "say"
    return Deed(kind, int(1200 * random.random() ** 2), random.random())
