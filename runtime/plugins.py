"""Plugins: what installed Python packages add through the entry points `elenco.plugins`.

An entry point names a function that is given a `Plugin` and puts tools, providers, commands and hooks into it. A plugin
that cannot be loaded is told in one line and left out whole; it breaks nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from .hooks.matchers import read_matcher
from .hooks.moments import MOMENTS
from .hooks.settings import LONGEST, TIMEOUT, Function, Hook
from .known import BUILT_IN, KNOWN, TOOL_NAMES

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .model import Provider
    from .tools import Tool

GROUP = "elenco.plugins"
Run: TypeAlias = Callable[[Sequence[str]], "int | None"]


@attrs.frozen
class PluginCommand:
    """A command `elenco NAME …`: `run` gets the words after its name and returns the exit code (None: 0)."""

    name: str
    run: Run
    summary: str = ""


@attrs.define(eq=False)
class Plugin:
    """What one package adds; its entry point's function is given it empty. Its methods raise ValueError."""

    name: str
    package: str = ""
    tools: list[Tool] = attrs.Factory(list["Tool"])
    providers: dict[str, Provider] = attrs.Factory(dict[str, "Provider"])
    commands: list[PluginCommand] = attrs.Factory(list[PluginCommand])
    hooks: list[Hook] = attrs.Factory(list[Hook])

    def tool(self, tool: Tool) -> Tool:
        """Add a tool, as `runtime.tools.tool` makes one; agent files choose it by its name."""
        if tool.name in TOOL_NAMES or any(each.name == tool.name for each in self.tools):
            raise ValueError(f"there is a tool {tool.name} already")
        self.tools.append(tool)
        return tool

    def provider(self, name: str, provider: Provider) -> None:
        """Add a source of replies: models are named `NAME/MODEL`."""
        if name in KNOWN or name in BUILT_IN or name in self.providers:
            raise ValueError(f"there is a provider {name} already")
        self.providers[name] = provider

    def command(self, name: str, run: Run, summary: str = "") -> None:
        """Add a command `elenco NAME …`; those that come with Elenco win."""
        self.commands.append(PluginCommand(name, run, summary))

    def hook(
        self,
        event: str,
        function: Function,
        *,
        matcher: str = "",
        timeout: float = TIMEOUT,
        on_error: Literal["allow", "deny"] | None = None,
    ) -> None:
        """Add a hook: a function, sync (it gets a thread) or async, that is told the event and answers as a command's
        JSON does: a mapping, or None.

        A sync function whose time is up is left to itself; its answer no longer counts.
        """
        moment = MOMENTS.get(event)
        if moment is None:
            raise ValueError(f"there is no event {event}; there are: {', '.join(MOMENTS)}")
        if not 0 < timeout <= LONGEST:
            raise ValueError(f"a timeout is above 0 and at most {LONGEST:g} seconds, not {timeout:g}")
        if on_error == "deny" and not moment.denies:
            raise ValueError(f"{event} hooks cannot deny")
        number = sum(hook.moment is moment for hook in self.hooks)
        name = f"plugin {self.name}: {getattr(function, '__name__', 'hook')}{f' {number + 1}' if number else ''}"
        self.hooks.append(
            Hook(
                name,
                moment,
                read_matcher(matcher),
                timeout=timeout,
                on_error=on_error or moment.fails,
                function=function,
            )
        )


@attrs.frozen
class Broken:
    """A plugin that is left out, and why, in one line."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"plugin {self.name} is left out: {self.why}"


@attrs.frozen
class Plugins:
    """All plugins of this installation, by name."""

    loaded: tuple[Plugin, ...] = ()
    broken: tuple[Broken, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for plugin in self.loaded for tool in plugin.tools)

    @property
    def providers(self) -> dict[str, Provider]:
        return {name: provider for plugin in self.loaded for name, provider in plugin.providers.items()}

    @property
    def commands(self) -> dict[str, PluginCommand]:
        return {command.name: command for plugin in self.loaded for command in plugin.commands}

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return tuple(hook for plugin in self.loaded for hook in plugin.hooks)


@lru_cache(maxsize=1)
def plugins() -> Plugins:
    """What is installed, loaded once a process. Blocks; imports the packages."""
    if not _declared(sys.path):
        return Plugins()
    from importlib.metadata import entry_points

    loaded: list[Plugin] = []
    broken: list[Broken] = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found = _load(point)
        if isinstance(found, Plugin) and (why := _clash(found, loaded)):
            found = Broken(point.name, why)
        if isinstance(found, Plugin):
            loaded.append(found)
        else:
            broken.append(found)
    return Plugins(tuple(loaded), tuple(broken))


def _load(point: EntryPoint) -> Plugin | Broken:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    plugin = Plugin(point.name, package)
    try:
        register = point.load()
        register(plugin)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # other people's code: its fault is told, not ours
        return Broken(point.name, " ".join(f"{point.value} raised {type(error).__name__}: {error}".split())[:300])
    return plugin


def _clash(plugin: Plugin, others: Sequence[Plugin]) -> str:
    for other in others:
        for tool in plugin.tools:
            if any(each.name == tool.name for each in other.tools):
                return f"its tool {tool.name} is one of plugin {other.name} already"
        for provider in plugin.providers:
            if provider in other.providers:
                return f"its provider {provider} is one of plugin {other.name} already"
    return ""


def _declared(path: Sequence[str]) -> bool:
    """Whether any installed package says it has plugins: a look at files, for importing the reader takes ten times as
    long, and most installations have none."""
    for folder in dict.fromkeys(path):
        try:
            entries = [
                each.path for each in os.scandir(folder or ".") if each.name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for entry in entries:
            try:
                if GROUP in (Path(entry) / "entry_points.txt").read_text(encoding="utf-8", errors="replace"):
                    return True
            except OSError:
                continue
    return False
