"""The simulator is sharp: faults put into our own code on purpose are each found within two thousand seeds."""

# A fault is put in where the code is, and that is often private.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import attrs
import pytest
import trio

from actors._cell import Cell
from runtime import agent, resume
from runtime import round as rounds
from runtime.activity import Activity
from runtime.agent import Agent
from runtime.approvals import Approvals
from runtime.background import Background
from runtime.conversation import Conversation
from runtime.deadlines import Deadlines
from runtime.events import NoteAdded
from runtime.gate import Gate
from runtime.history import History
from runtime.journal import actor_steps
from runtime.journal.state import RunState
from runtime.limits import accounts, admission, ledger, reservation
from runtime.limits.amounts import NONE, Amounts
from runtime.limits.ledger import Ledger
from runtime.limits.loops import GuardSettings
from runtime.limits.scope import Scope
from runtime.run import Run
from runtime.simulate import Broken, simulate
from runtime.simulate.world import World, draw
from runtime.tools import ToolBox, ToolError

MOST = 2000

Patch: TypeAlias = pytest.MonkeyPatch
Mutant: TypeAlias = Callable[[Patch], None]
Fits: TypeAlias = Callable[[World], bool]

MUTANTS: dict[str, tuple[Mutant, Fits]] = {}


def no_amount(*_: object) -> Amounts:
    return NONE


def nothing(*_: object) -> None:
    pass


def no_scope(*_: object) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def none_at_all(*_: object) -> tuple[()]:
    return ()


def anywhere(world: World) -> bool:
    return True


def mutant(fits: Fits = anywhere) -> Callable[[Mutant], Mutant]:
    """One fault; `fits` says of a world, before it is played, whether the fault could show there at all."""

    def enter(function: Mutant) -> Mutant:
        MUTANTS[function.__name__] = (function, fits)
        return function

    return enter


def dies(world: World) -> bool:
    return bool(world.accidents)


def fails_while_people_act(world: World) -> bool:
    fails = bool(world.accidents) and world.accidents[0].kind in ("append", "barrier")
    return fails and bool(world.deeds) and world.answers == "late" and not world.yes


def dies_when_a_child_has_reported(world: World) -> bool:
    return any(accident.kind == "report" for accident in world.accidents)


def has_children(world: World) -> bool:
    return any(each.subagents for each in world.agents)


def children_may_run_in_circles(world: World) -> bool:
    root, *others = world.manners.values()
    return root == "boss" and "looper" in others and world.limits.total_steps == 32


# --- budget ----------------------------------------------------------------------------------------------------


@mutant(lambda world: world.honest)
def no_hold_for_the_last_turn(patch: Patch) -> None:
    patch.setattr(admission, "hold_amounts", no_amount)
    patch.setattr(reservation, "hold_amounts", no_amount)


@mutant()
def one_step_too_many(patch: Patch) -> None:
    original = Scope.limit_to

    def limit_to(self: Scope, limits: Any) -> None:
        most = limits.max_steps
        original(self, attrs.evolve(limits, max_steps=None if most is None else most + 1))

    patch.setattr(Scope, "limit_to", limit_to)


@mutant(lambda world: world.limits.max_concurrent_calls is not None)
def a_slot_is_never_returned(patch: Patch) -> None:
    original = Scope.give_back

    def give_back(self: Scope, *arguments: Any) -> None:
        original(self, *arguments)
        for scope in self.chain:
            scope.calls += 1

    patch.setattr(Scope, "give_back", give_back)


@mutant(lambda world: world.limits.max_concurrent_calls == 1 and has_children(world))
def waiters_are_not_woken_after_a_call(patch: Patch) -> None:
    patch.setattr(Gate, "changed", nothing)


@mutant(lambda world: not world.honest)
def an_overrun_is_not_told(patch: Patch) -> None:
    patch.setattr(accounts, "overruns", none_at_all)


@mutant(has_children)
def depth_and_width_are_not_looked_at(patch: Patch) -> None:
    patch.setattr(ledger, "barred", nothing)


@mutant()
def tool_calls_are_not_counted(patch: Patch) -> None:
    patch.setattr(Ledger, "tool_calls", nothing)


@mutant(dies)
def a_reservation_is_not_charged_at_resume(patch: Patch) -> None:
    original = resume.take_over

    def take_over(run: Run, state: RunState, *rest: Any) -> None:
        for actor in state.actors.values():
            actor.reservations.clear()
        original(run, state, *rest)

    patch.setattr("runtime.app.take_over", take_over)


# --- deadlines and waiting ---------------------------------------------------------------------------------------


@mutant(lambda world: world.patient)
def the_clock_runs_while_a_human_is_waited_for(patch: Patch) -> None:
    patch.setattr(Deadlines, "rest", nothing)
    patch.setattr(Deadlines, "work", nothing)


@mutant(lambda world: world.stalls > 0.1 and world.undisturbed)
def the_last_turn_has_no_deadline(patch: Patch) -> None:
    patch.setattr(Deadlines, "hard", no_scope)


@mutant()
def nobody_notes_that_all_wait(patch: Patch) -> None:
    def change(self: Activity, strands: int) -> None:
        self._strands += strands

    patch.setattr(Activity, "_change", change)


@mutant(has_children)
def a_pause_between_two_calls_counts_as_waiting(patch: Patch) -> None:
    def works(self: Activity) -> bool:
        return self._strands > 1

    patch.setattr(Activity, "works", property(works))


# --- calls and conversation ----------------------------------------------------------------------------------------


@mutant()
def a_result_is_lost(patch: Patch) -> None:
    original = rounds.close_round

    def close_round(me: Agent, work: Any, reason: str) -> None:
        if len(work.open) > 1:
            work.results.pop(work.calls[0].id, None)
        original(me, work, reason)

    patch.setattr(agent, "close_round", close_round)


@mutant(lambda world: any("act" in each.tools for each in world.agents))
def a_tool_that_may_run_once_is_tried_again(patch: Patch) -> None:
    original = ToolBox._once

    async def once(self: ToolBox, tool: Any, *rest: Any) -> object:
        try:
            return await original(self, tool, *rest)
        except ToolError as error:
            if error.transient:
                return await original(self, tool, *rest)
            raise

    patch.setattr(ToolBox, "_once", once)


@mutant(dies)
def an_unclear_call_runs_again(patch: Patch) -> None:
    async def recovered(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    patch.setattr(rounds, "_recovered", recovered)


@mutant(lambda world: bool(world.deeds))
def a_humans_words_are_dropped(patch: Patch) -> None:
    original = History.admit_steers

    def admit_steers(self: History) -> bool:
        if len(self._steers) == 1 and not self.conversation.open_calls:
            self._steers.clear()
            self.conversation = attrs.evolve(self.conversation, queued=())
        return original(self)

    patch.setattr(History, "admit_steers", admit_steers)


@mutant(lambda world: bool(world.deeds))
def words_enter_before_the_results(patch: Patch) -> None:
    def take_queued(self: Conversation) -> Conversation:
        return Conversation((*self.messages[:-1], *self.queued, self.messages[-1]))

    patch.setattr(Conversation, "take_queued", take_queued)


@mutant()
def a_question_stays_open_after_its_call(patch: Patch) -> None:
    patch.setattr(Approvals, "withdraw", nothing)


@mutant(children_may_run_in_circles)
def children_have_no_loop_guard(patch: Patch) -> None:
    original = Agent.equip

    def equip(self: Agent, toolbox: Any, system: Any, specs: Any, guard: GuardSettings) -> None:
        original(self, toolbox, system, specs, guard if self.parent is None else GuardSettings(off=True))

    patch.setattr(Agent, "equip", equip)


# --- actors ------------------------------------------------------------------------------------------------------


@mutant()
def an_envelope_is_left_unsettled(patch: Patch) -> None:
    original = Cell.answer

    def answer(self: Cell, envelope: Any, value: Any) -> None:
        if value.status == "stopped" and "/" not in self.path:
            self.in_work = None
        else:
            original(self, envelope, value)

    patch.setattr(Cell, "answer", answer)


@mutant(has_children)
def a_child_cut_off_early_keeps_its_place(patch: Patch) -> None:
    patch.setattr(Agent, "dismiss", nothing)


@mutant(has_children)
def a_report_is_delivered_twice(patch: Patch) -> None:
    original = Background._receive

    def receive(self: Background, name: str, *rest: Any, **more: Any) -> Any:
        child = self._children[name]
        received = original(self, name, *rest, **more)
        if not child.claimed:
            child.claimed = True
            self._children[name] = attrs.evolve(child, claimed=False, ended=child.ended, scope=child.scope)
        return received

    patch.setattr(Background, "_receive", receive)


@mutant(lambda world: dies(world) and world.manners[world.agents[0].name] == "boss")
def background_children_are_forgotten_at_resume(patch: Patch) -> None:
    patch.setattr(RunState, "background_of", none_at_all)


# --- record --------------------------------------------------------------------------------------------------------


@mutant()
def replay_skips_notes(patch: Patch) -> None:
    patch.delitem(actor_steps.ACTOR_STEPS, NoteAdded)


@mutant(fails_while_people_act)
def a_record_that_cannot_be_written_is_ignored(patch: Patch) -> None:
    patch.setattr(Run, "fail", nothing)


@mutant(dies_when_a_child_has_reported)
def an_ended_child_is_woken_again(patch: Patch) -> None:
    patch.setattr("runtime.family.Family._recorded", nothing)


def first_broken(fits: Fits) -> int | None:
    """The first of MOST seeds that breaks; worlds in which the fault cannot show are not played."""
    for seed in range(MOST):
        if not fits(draw(seed)):
            continue
        try:
            simulate(seed)
        except Broken:
            return seed
    return None


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_fault_of_ours_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault put in on purpose breaks a promise in one of the first two thousand worlds."""
    put_in, fits = MUTANTS[name]
    put_in(monkeypatch)
    assert first_broken(fits) is not None, f"nobody noticed: {name}"
