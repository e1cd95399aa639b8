"""Tools that work, fail, hang and talk too much, and what they have done to the world: it outlives every crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import trio

from runtime.messages import JsonObject
from runtime.tools import Output, Tool, ToolContext, ToolError
from runtime.tools.ask import ask_user

from .world import World


class Hands:
    """The tools of a world. `done` counts effects by the call's own key, `running` the tools at work now.

    `on_effect` is called where a tool is about to take effect, or just has.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.done: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.running = 0
        self.on_effect: Callable[[], None] = lambda: None

    def tools(self) -> list[Tool]:
        """Nothing in them leaves the loop: all are async, and none names a path."""
        return [
            self._tool("wall", "Look at a wall.", self._wall),
            self._tool("look", "Look somewhere.", self._look),
            self._tool("watch", "See whether it is ready.", self._watch, poll=True),
            self._tool("flood", "Get everything.", self._flood),
            self._tool("nap", "Wait a little.", self._nap),
            self._tool("hang", "Wait for ever.", self._hang),
            self._tool("boom", "Fail.", self._boom),
            ask_user,
            Tool("note", "Write down.", _KEYED, self._note, effects="idempotent", retries=2),
            Tool("act", "Do it.", _KEYED, self._act, effects="once"),
            Tool("pay", "Pay for it.", _KEYED, self._pay, effects="once", check=self._check),
        ]

    def _tool(self, name: str, description: str, run: object, poll: bool = False) -> Tool:
        assert callable(run)
        return Tool(name, description, _PLACED, run, effects="none", poll=poll, private=True)

    def _random(self, ctx: ToolContext) -> Random:
        return self.world.chance("tool", ctx.actor, ctx.call_id)

    async def _wall(self, ctx: ToolContext, at: int = 0) -> str:
        await self._work(self._random(ctx))
        return "nothing but a wall here"

    async def _look(self, ctx: ToolContext, at: int = 0) -> str:
        random = self._random(ctx)
        await self._work(random)
        if random.random() < 0.2:
            raise ToolError(f"nothing at {at}")
        found = f"at {at} there is " + random.choice(("a door", f"thing {random.randrange(1000)}"))
        return found if self.world.window is None else found + " and a door" * random.randrange(200)

    async def _watch(self, ctx: ToolContext, at: int = 0) -> str:
        random = self._random(ctx)
        await self._work(random)
        return "pending" if random.random() < 0.8 else "ready"

    async def _flood(self, ctx: ToolContext, at: int = 0) -> str:
        random = self._random(ctx)
        await self._work(random)
        line = random.choice(("water everywhere", "\N{WATER WAVE}" * 12))
        return "\n".join(f"{number} {line}" for number in range(random.choice((50, 500, 3_000))))

    async def _nap(self, ctx: ToolContext, at: int = 0) -> str:
        await self._work(self._random(ctx), (0.1, 3.0, 50.0, 4_000.0))
        return "slept"

    async def _hang(self, ctx: ToolContext, at: int = 0) -> str:
        await self._work(self._random(ctx), (float("inf"),))
        return "woke up"

    async def _boom(self, ctx: ToolContext, at: int = 0) -> str:
        random = self._random(ctx)
        await self._work(random)
        if random.random() < 0.3:
            raise ExceptionGroup("many", [ValueError("one"), RuntimeError("two")])
        raise RuntimeError(random.choice(("broken", f"broken {random.randrange(100)}")))

    async def _note(self, ctx: ToolContext, key: str) -> Output:
        random = self.world.chance("tool", ctx.actor, ctx.call_id, self.attempts[ctx.call_id])
        self.attempts[ctx.call_id] += 1
        await self._work(random)
        if random.random() < 0.4:
            raise ToolError("try again", transient=True)
        return Output(f"noted {key}", data={"key": key})

    async def _act(self, ctx: ToolContext, key: str) -> str:
        random = self._random(ctx)
        await self._work(random)
        self._take_effect(ctx.call_id, random)
        await self._work(random)
        if random.random() < 0.1:
            raise ToolError("done, and then it broke", transient=True)
        return f"did {key}"

    async def _pay(self, ctx: ToolContext, key: str) -> str:
        random = self._random(ctx)
        await self._work(random)
        self._take_effect(key, random)
        await self._work(random)
        return f"paid {key}"

    def _take_effect(self, key: str, random: Random) -> None:
        """The process may die just before it, or just after."""
        early = random.random() < 0.3
        if early:
            self.on_effect()
        self.done[key] += 1
        if not early:
            self.on_effect()

    async def _check(self, arguments: JsonObject) -> object:
        key = arguments["key"]
        random = self.world.chance("check", key)
        await trio.lowlevel.checkpoint()
        if random.random() < 0.2:
            raise RuntimeError("the check is broken")
        if random.random() < 0.2:
            return None
        return f"paid {key}" if self.done[key] else False

    async def _work(self, random: Random, seconds: tuple[float, ...] = ()) -> None:
        self.running += 1
        try:
            for _ in range(random.choice((0, 1, 3, 12))):
                await trio.lowlevel.checkpoint()
            if seconds:
                await trio.sleep(random.choice(seconds))
            elif not self.world.patient and random.random() < 0.3:
                await trio.sleep(random.choice((0.001, 0.5, 20.0)))
        finally:
            self.running -= 1


def _schema(name: str, kind: str, required: bool) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": kind}},
        "required": [name] if required else [],
        "additionalProperties": False,
    }


_PLACED = _schema("at", "integer", False)
_KEYED = _schema("key", "string", True)
