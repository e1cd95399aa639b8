"""What a workspace would switch on, and whether a person has agreed to exactly that: pure.

A folder somebody got from elsewhere may bring agent files and settings. They load, but what would act without a
question or run code (allow rules, hooks, MCP servers, Python, another server for the user's keys) counts only once a
person has agreed to it. The agreement names the folder's real path and the content of every file that has a say, so a
change asks again. `runtime.trust` reads the disk for it; `runtime.trust.is_trusted(workspace)` is the question.
"""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from runtime.config import Config, ProviderConfig
from runtime.definitions import Definition, Permissions
from runtime.frontmatter import Wrong
from runtime.hooks.settings import Hook, hooks

if TYPE_CHECKING:
    from runtime.skills.document import Skill

Kind: TypeAlias = Literal["allow rule", "hook", "MCP server", "Python", "key"]


@attrs.frozen
class Switch:
    """One thing that would be switched on: in words what it does, the file (relative to the workspace) that says so.

    `uses` are words of it that may be files of the workspace, whose content then counts too.
    """

    kind: Kind
    text: str
    file: str
    uses: tuple[str, ...] = ()


@attrs.frozen
class Survey:
    """All that the files of a workspace would switch on; `files` are the SHA-256 of each file that has a say."""

    workspace: str
    switches: tuple[Switch, ...] = ()
    files: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen
class Trust:
    """What a person has agreed to for one workspace, by its real path; `at` is for people."""

    workspace: str
    files: Mapping[str, str]
    at: str = ""

    def allows(self, survey: Survey) -> bool:
        """Whether all that would be switched on now was agreed to, and nothing of it has changed since."""
        return self.workspace == survey.workspace and self.files == survey.files


def counts(survey: Survey, agreed: Trust | None) -> bool:
    """Whether the workspace's switches count. A workspace without any needs nobody's word."""
    return not survey.switches or (agreed is not None and agreed.allows(survey))


def notice(survey: Survey) -> str:
    """One line for who runs over a workspace whose switches do not count."""
    numbers: dict[Kind, int] = {}
    for switch in survey.switches:
        numbers[switch.kind] = numbers.get(switch.kind, 0) + 1
    what = ", ".join(f"{number} {_plural(kind, number)}" for kind, number in numbers.items())
    return f"this workspace is not trusted: {what} of its files left out (elenco trust shows and allows that)"


def _plural(kind: Kind, number: int) -> str:
    words = {"Python": "Python check", "key": "server for keys"}
    word = words.get(kind, kind)
    return word if number == 1 else "servers for keys" if kind == "key" else f"{word}s"


# --- what is switched on -----------------------------------------------------------------------------------------


def switches_of_config(config: Config, file: str) -> Iterator[Switch]:
    """What a settings file of the workspace would switch on."""
    yield from _allowed(config.permissions, file)
    yield from _hooks(config.hooks, file)
    yield from switches_of_servers({name: entry.as_data() for name, entry in config.mcp_servers.items()}, file)
    for name, provider in config.providers.items():
        if sends_key_away(provider):
            yield Switch("key", f"providers.{name}: its server is sent the key that is set for it", file)


def switches_of_agent(definition: Definition, file: str) -> Iterator[Switch]:
    """What an agent file of the workspace would switch on."""
    yield from _allowed(definition.permissions, file)
    yield from _hooks(definition.hooks, file)
    if definition.output is not None and definition.output.check:
        check = definition.output.check
        module = check.partition(":")[0].strip().replace(".", "/")
        yield Switch("Python", check, file, (f"{module}.py", f"{module}/__init__.py"))


def switches_of_skill(skill: Skill, file: str) -> Iterator[Switch]:
    """What a skill of the workspace would switch on once it is loaded."""
    for tool in skill.allowed or ():
        words = re.findall(r"[^\s(),:*]+", tool)
        uses = (*words, *(f"{file.rpartition('/')[0]}/{word}" for word in words))
        yield Switch("allow rule", f"{tool}, while the skill {skill.name} is in use", file, uses)
    if skill.hooks is not None:
        with suppress(Wrong):
            yield from _hooks(hooks(skill.hooks), file)


def switches_of_servers(servers: Mapping[str, Any], file: str) -> Iterator[Switch]:
    """MCP servers by name, as a settings file or `.mcp.json` has them."""
    for name, server in servers.items():
        yield Switch("MCP server", f"{name}: {_shown(server)}", file, tuple(_words(server)))


def _allowed(permissions: Permissions, file: str) -> Iterator[Switch]:
    for rule in permissions.allow:
        yield Switch("allow rule", rule, file)


def _hooks(found: Iterable[Hook], file: str) -> Iterator[Switch]:
    for hook in found:
        yield Switch("hook", f"{hook.moment.name}: {_shown(hook.command)}", file, tuple(_words(hook.command)))


def sends_key_away(provider: ProviderConfig) -> bool:
    """Whether a key would go to a server that a file names and that is not on this machine."""
    if provider.base_url is None:
        return False
    try:
        host = urlsplit(provider.base_url).hostname or ""
    except ValueError:
        return True
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """A setting that was read into an object, as data: only what it says."""
    if not attrs.has(type(value)):  # pyright: ignore[reportUnknownArgumentType]
        return value
    return {name: each for name, each in attrs.asdict(value).items() if each}


def _words(value: Any) -> Iterator[str]:
    """Every word of a setting, at any depth: a command may name a file of the workspace."""
    todo: list[Any] = [_plain(value)]
    while todo:
        each: Any = todo.pop()
        if isinstance(each, str):
            yield each
            try:
                yield from shlex.split(each)
            except ValueError:
                yield from each.split()
        elif isinstance(each, Mapping):
            todo.extend(each.values())  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(each, list | tuple):
            todo.extend(each)  # pyright: ignore[reportUnknownArgumentType]


# --- what is left without trust ----------------------------------------------------------------------------------


def bare_config(config: Config) -> Config:
    """A settings file without what needs trust; what forbids or asks stays."""
    return attrs.evolve(
        config,
        permissions=bare_permissions(config.permissions),
        hooks=(),
        mcp_servers={},
        providers={
            name: attrs.evolve(provider, keyless=True) if sends_key_away(provider) else provider
            for name, provider in config.providers.items()
        },
    )


def bare_agent(definition: Definition) -> Definition:
    """An agent file without what needs trust; what forbids or asks stays."""
    output = definition.output
    return attrs.evolve(
        definition,
        permissions=bare_permissions(definition.permissions),
        hooks=(),
        output=attrs.evolve(output, check=None) if output is not None else None,
    )


def bare_permissions(permissions: Permissions) -> Permissions:
    return attrs.evolve(permissions, allow=())
