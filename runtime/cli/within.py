"""What is typed in a chat's line mode while a turn is under way: an answer, a command for it, or words for later."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import attrs
import trio

from runtime.app import LiveRun
from runtime.chat.commands import Given, Prompt, Slash, Wrong, help_lines, read, steering
from runtime.chat.figures import bars
from runtime.errors import ElencoError
from runtime.steering import Steering
from runtime.watch.commands import Cancel, ChangeLimits, Command, Compact, Say

from .keyboard import Keyboard
from .prompts import decide, nobody_left
from .screen import Screen
from .tree import rows
from .visible import one_line
from .watcher import Watcher

BY = "you"
MOST_LATER = 256
"""Lines of a person that are taken in before their time; what is more stays where it is."""


@attrs.define(eq=False)
class Typing:
    """Who types: `more` are the commands that plugins bring, `later` the lines that wait for the end of the turn.

    `thinking`: what the model thinks is shown; `ended`: nothing is typed any more. `carried` is told what was done with
    the turn. A `person` sees a turn and means that one; what comes from a pipe counts in its order: what makes sense
    without a turn waits for its end, and nothing is read beyond a line that waits.
    """

    keyboard: Keyboard
    more: list[Slash]
    carried: Callable[[Command], None]
    person: bool
    later: deque[str] = attrs.Factory(deque[str])
    thinking: bool = False
    ended: bool = False


async def hear(live: LiveRun, watcher: Watcher, screen: Screen, typing: Typing) -> None:
    """Read lines until cancelled, or until the input ends: then nobody answers questions here any more."""
    while (line := await typing.keyboard.line()) is not None:
        screen.answered()
        text = line.strip()
        asked = watcher.asks and watcher.state.asked is not None
        found = read(text, typing.more, lines=True)
        match found:
            case Given() as given:
                typing.later.append(text)  # until it is done: the turn may end first
                said = await _command(live, watcher, typing, given)
                await screen.say(said, "> " if asked else "")
            case Wrong(why=why):
                await screen.say([why], "> " if asked else "")
            case Prompt() if asked:
                await decide(live, watcher, screen, typing.keyboard, line)
            case Prompt() if text:
                typing.later.append(text)
                await screen.say(_waits(typing))
            case Prompt():
                pass
        if len(typing.later) >= (MOST_LATER if typing.person else 1):
            await trio.sleep_forever()
    typing.ended = True
    if watcher.asks:
        nobody_left(live)


async def _command(live: LiveRun, watcher: Watcher, typing: Typing, given: Given) -> list[str]:
    """Do what was typed, which is the last line that waits; what is to be said of it."""
    try:
        command = steering(given, BY)
        said: list[str] | None = None
        if isinstance(command, Cancel | Say | ChangeLimits) or (command is not None and typing.person):
            said = await _steer(live, typing, command)
        elif command is None and typing.person:
            said = _tell(watcher, typing, given)
    except (ElencoError, ValueError) as error:
        said = [f"/{given.slash.name}: {error}"]
    if said is None:
        return _waits(typing)
    typing.later.pop()
    return said


def _tell(watcher: Watcher, typing: Typing, given: Given) -> list[str] | None:
    """What a command tells that asks nothing of the turn; None for one that waits for its end."""
    state, now = watcher.state, time.time()
    match given.slash.name:
        case "help":
            return help_lines(typing.more, lines=True)
        case "thinking":
            typing.thinking = watcher.thinking = not typing.thinking
            return [f"what the model thinks is {'shown' if typing.thinking else 'hidden'} from now on"]
        case "status":
            return [
                f"{row.branch}{row.mark} {row.name}  {row.doing}  {'  '.join(filter(None, row.facts))}"
                for row in rows(state, now, watcher.told, watcher.speaking)
            ]
        case "budget" if state.root:
            return [str(bar) for bar in bars(state, state.root, dict(state.limits), now)]
        case _:
            return None


async def _steer(live: LiveRun, typing: Typing, command: Command) -> list[str]:
    async with live.stream.subscribe(1) as reader:  # its first agent stands when it has said so
        while not live.begun and await reader.batch():
            pass
    answer = await Steering(live).run(command)
    typing.carried(command)
    match command:
        case ChangeLimits(limits=limits):
            return [f"{name} is {answer['limits'].get(name)} now" for name in limits]
        case Compact():
            return ["the conversation is made shorter before the next request"]
        case _:
            return []


def _waits(typing: Typing) -> list[str]:
    return [f"⋯ {one_line(typing.later[-1], 80)}   waits for the end of the turn"] if typing.person else []
