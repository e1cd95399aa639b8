"""What a run is asked to be, and a first look at its files, names and rules: cheap, so that a slip is told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from . import config as settings
from . import definitions
from .cast import Cast, find
from .config import Config
from .definitions import Definition
from .errors import DefinitionError, UsageError
from .handwritten import read_text
from .known import ModelFlags, check_name, default_model
from .policy.rules import Permissions, RuleError, parse_permissions
from .vetting import vet_agent

if TYPE_CHECKING:
    from .events import RunStarted
    from .limits.limits import Limits
    from .messages import JsonObject
    from .policy.decision import Mode


_NO_RULES = definitions.Permissions()


def _no_limits() -> Limits:
    from .limits.limits import Limits

    return Limits()


@attrs.frozen(kw_only=True)
class RunOptions:
    """What a run is started with. `limits` are the caller's own; agent files and settings may only tighten them.

    A run that `compacts` makes the conversation it continues smaller, and does nothing else.
    """

    agent: str = "coordinator"
    task: str
    model: ModelFlags = ModelFlags()
    workspace: Path = attrs.field(factory=Path.cwd)
    limits: Limits = attrs.field(factory=_no_limits)
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    yes: bool = False
    headless: bool = False
    mode: Mode = "default"
    compacts: bool = False

    def as_json(self) -> JsonObject:
        """What a resume needs beside the record itself; no key is among it."""
        return {
            "base_url": self.model.base_url,
            "wire": self.model.wire,
            "allow": list(self.allow),
            "ask": list(self.ask),
            "deny": list(self.deny),
            "yes": self.yes,
            "mode": self.mode,
        }

    @classmethod
    def recorded(cls, started: RunStarted, *, yes: bool, headless: bool, trusted: bool = True) -> RunOptions:
        """The options a run on record was started with; `yes` may be added, `headless` is this process's own.

        Of a record that is not `trusted` only what narrows is taken: no allowance, and no server keys would be sent to.
        """
        kept = started.options
        nothing: JsonObject = {}
        wide = kept if trusted else nothing
        return cls(
            agent=started.agent,
            task=started.task,
            model=ModelFlags(started.model, wide.get("base_url"), wide.get("wire")),
            workspace=Path(started.workspace),
            allow=tuple(wide.get("allow", ())),
            ask=tuple(kept.get("ask", ())),
            deny=tuple(kept.get("deny", ())),
            yes=yes or bool(wide.get("yes")),
            headless=headless,
            mode=kept.get("mode", "default"),
        )


@attrs.frozen
class Outline:
    """A run as far as files, flags and the environment tell; `members` are the root and all it may delegate to."""

    options: RunOptions
    here: Config
    user: Config
    cast: Cast
    root: Definition
    members: tuple[Definition, ...]
    model: str
    rules: Permissions


def outline(options: RunOptions, given: Iterable[str] = (), tools: Iterable[str] | None = None) -> Outline:
    """Read settings and agent files and look at every name in them; `given` are providers handed over in code.

    The names of tools are looked at where `tools` says which there are.

    Raises UsageError, DefinitionError.
    """
    if not options.workspace.is_dir():
        raise UsageError(f"the workspace {options.workspace} is no folder")
    if not os.fsencode(options.workspace.resolve()).decode("utf-8", "ignore") == str(options.workspace.resolve()):
        raise UsageError(f"the path of the workspace {options.workspace.resolve()} is no UTF-8 text")
    here, user = settings_of(options.workspace)
    cast = find(options.workspace)
    root = cast.get(options.agent)
    providers = {**user.providers, **here.providers}
    known = set(given)

    def check(name: str, where: str) -> None:
        if name.partition("/")[0] not in known:
            check_name(name, options.model, providers, os.environ, where)

    refuse_faulty(cast, root, check, tools)
    members = tuple(cast.closure(options.agent))
    for member in members:
        if member is not root:
            refuse_faulty(cast, member, check, tools)
    model = default_model(options.model, here.model or user.model, os.environ)
    check(
        model,
        "--model" if options.model.model or not (here.model or user.model) else (here if here.model else user).path,
    )
    return Outline(options, here, user, cast, root, members, model, _rules(options, here, user))


def settings_of(workspace: Path) -> tuple[Config, Config]:
    """The workspace's settings and the user's. Raises DefinitionError."""
    user = settings.user_folder()
    here = settings.load(workspace / "elenco.yaml", "elenco.yaml")
    own = settings.load(user / "config.yaml", str(user / "config.yaml")) if user is not None else Config()
    return here, own


def refuse_faulty(
    cast: Cast,
    definition: Definition,
    check: Callable[[str, str], None] | None = None,
    tools: Iterable[str] | None = None,
) -> None:
    """Look at what a file names: other agents, rules, the model (`check` is told the file as well), `tools` if given.

    Raises DefinitionError with every fault and its place.
    """
    names = (*definition.subagents, *(definition.tools if tools is not None else ()))
    named = {*cast.members, *(tools or ())}
    if named.issuperset(names) and not (definition.model or definition.loops or definition.permissions != _NO_RULES):
        return  # Nothing in it that could be wrong: its YAML need not be read a second time.
    content = read_text(cast.members[definition.name].path)
    faults = vet_agent(
        definition,
        content,
        agents=cast.members,
        tools=tools,
        check_model=None if check is None else lambda name: check(name, definition.path),
    )
    if faults:
        raise DefinitionError(faults)


def _rules(options: RunOptions, here: Config, own: Config) -> Permissions:
    """The rules of the whole run: flags and settings together, deny before ask before allow."""
    try:
        found = parse_permissions(options.allow, options.ask, options.deny, origin="flag")
        for config in (here, own):
            written = config.permissions
            found += parse_permissions(written.allow, written.ask, written.deny, origin=config.path)
    except RuleError as error:
        raise UsageError(str(error)) from None
    return found
