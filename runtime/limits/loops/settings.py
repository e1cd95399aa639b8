"""How patient the guard is, for an agent and tool by tool.

The three numbers are for the plainest loop, the same call with the same result. Every other pattern is measured
on the same scale with a patience of its own (see `guard.py`), so one setting moves all of them.
"""

from collections.abc import Mapping
from typing import cast

from attrs import Factory, evolve, frozen

from runtime.errors import did_you_mean


@frozen
class Ladder:
    """At which occurrence of the same call with the same result the guard nudges, blocks and stops."""

    nudge: int = 3
    block: int = 6
    stop: int = 7
    off: bool = False

    def __attrs_post_init__(self) -> None:
        if not 2 <= self.nudge <= self.block <= self.stop:
            raise ValueError(f"nudge, block and stop must rise from 2, got {self.nudge}, {self.block}, {self.stop}")


@frozen
class GuardSettings:
    """One agent's settings: its ladder, fields to ignore in arguments and JSON results, overrides by tool name.

    Raises `ValueError` when the numbers do not rise.
    """

    nudge: int = 3
    block: int = 6
    stop: int = 7
    ignore_fields: tuple[str, ...] = ()
    tools: Mapping[str, Ladder] = Factory(dict[str, Ladder])
    off: bool = False

    def __attrs_post_init__(self) -> None:
        Ladder(self.nudge, self.block, self.stop)

    @property
    def ladder(self) -> Ladder:
        return Ladder(self.nudge, self.block, self.stop, self.off)

    def for_tool(self, name: str) -> Ladder:
        return self.tools.get(name, self.ladder)


_NUMBERS = ("nudge", "block", "stop")
_KEYS = (*_NUMBERS, "ignore_fields", "tools")


def guard_settings(value: object) -> GuardSettings:
    """Settings from what stands under `loops:` in an agent file or the config.

    `off` (or false), `on` (or true, or nothing), or a mapping `{nudge, block, stop, ignore_fields, tools}` where
    `tools` maps a tool's name to `off` or to `{nudge, block, stop}`. Raises `ValueError` with a message for a
    person.
    """
    match value:
        case None | True | "on":
            return GuardSettings()
        case False | "off":
            return GuardSettings(off=True)
        case Mapping():
            given = _known(cast("Mapping[object, object]", value), _KEYS, "loops")
        case _:
            raise ValueError(f"loops: expected off or a mapping, got {value!r}")
    numbers = _numbers(given, Ladder(), "loops")
    fields = given.get("ignore_fields", ())
    if isinstance(fields, str) or not isinstance(fields, list | tuple):
        raise ValueError("loops.ignore_fields: expected a list of names")
    tools = given.get("tools", {})
    if not isinstance(tools, Mapping):
        raise ValueError("loops.tools: expected a mapping from tool to settings")
    named = cast("Mapping[object, object]", tools)
    return GuardSettings(
        numbers.nudge,
        numbers.block,
        numbers.stop,
        tuple(str(name) for name in cast("list[object]", fields)),
        {str(name): _tool(str(name), own, numbers) for name, own in named.items()},
    )


def _tool(name: str, value: object, base: Ladder) -> Ladder:
    match value:
        case False | "off":
            return evolve(base, off=True)
        case Mapping():
            where = f"loops.tools.{name}"
            return _numbers(_known(cast("Mapping[object, object]", value), _NUMBERS, where), base, where)
        case _:
            raise ValueError(f"loops.tools.{name}: expected off or a mapping, got {value!r}")


def _known(value: Mapping[object, object], keys: tuple[str, ...], where: str) -> dict[str, object]:
    for key in value:
        if key not in keys:
            hint = did_you_mean(str(key), keys) or f" (known: {', '.join(keys)})"
            raise ValueError(f"{where}: unknown key {str(key)!r}{hint}")
    return {str(key): item for key, item in value.items()}


def _numbers(given: Mapping[str, object], base: Ladder, where: str) -> Ladder:
    found: dict[str, int] = {}
    for key in _NUMBERS:
        if key in given:
            number = given[key]
            if not isinstance(number, int) or isinstance(number, bool):
                raise ValueError(f"{where}.{key}: expected a whole number, got {number!r}")
            found[key] = number
    nudge = found.get("nudge", base.nudge)
    block = found.get("block", max(base.block, nudge))
    stop = found.get("stop", max(base.stop, block))
    try:
        return Ladder(nudge, block, stop)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
