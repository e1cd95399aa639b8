"""What a run is asked to be, and a first look at its files, names and rules: cheap, so that a slip is told at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from . import config as settings
from .cast import Cast, find
from .config import Config
from .definitions import Definition, unknown_names
from .errors import DefinitionError, UsageError
from .known import ModelFlags, check_name, default_model
from .policy.rules import Permissions, RuleError, parse_permissions

if TYPE_CHECKING:
    from .events import RunStarted
    from .limits.limits import Limits
    from .messages import JsonObject
    from .policy.decision import Mode


def _no_limits() -> Limits:
    from .limits.limits import Limits

    return Limits()


@attrs.frozen(kw_only=True)
class RunOptions:
    """What a run is started with. `limits` are the caller's own; agent files and settings may only tighten them."""

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
    def recorded(cls, started: RunStarted, *, yes: bool, headless: bool) -> RunOptions:
        """The options a run on record was started with; `yes` may be added, `headless` is this process's own."""
        kept = started.options
        return cls(
            agent=started.agent,
            task=started.task,
            model=ModelFlags(started.model, kept.get("base_url"), kept.get("wire")),
            workspace=Path(started.workspace),
            allow=tuple(kept.get("allow", ())),
            ask=tuple(kept.get("ask", ())),
            deny=tuple(kept.get("deny", ())),
            yes=yes or bool(kept.get("yes")),
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


def outline(options: RunOptions, given: Iterable[str] = ()) -> Outline:
    """Read settings and agent files and look at every name in them; `given` are providers handed over in code.

    Raises UsageError, DefinitionError.
    """
    if not options.workspace.is_dir():
        raise UsageError(f"the workspace {options.workspace} is no folder")
    here, user = settings_of(options.workspace)
    cast = find(options.workspace)
    root = cast.get(options.agent)
    refuse_unknown(cast, root)
    members = tuple(cast.closure(options.agent))
    model = default_model(options.model, here.model or user.model, os.environ)
    providers = {**user.providers, **here.providers}
    known = set(given)
    if model.partition("/")[0] not in known:
        where = "--model" if options.model.model else (here.path if here.model else user.path) or "--model"
        check_name(model, options.model, providers, os.environ, where)
    for member in members:
        if member is not root:
            refuse_unknown(cast, member)
        if member.model and member.model.partition("/")[0] not in known:
            check_name(member.model, options.model, providers, os.environ, member.path)
    return Outline(options, here, user, cast, root, members, model, _rules(options, here, user))


def settings_of(workspace: Path) -> tuple[Config, Config]:
    """The workspace's settings and the user's. Raises DefinitionError."""
    user = settings.user_folder()
    here = settings.load(workspace / "elenco.yaml", "elenco.yaml")
    own = settings.load(user / "config.yaml", str(user / "config.yaml")) if user is not None else Config()
    return here, own


def refuse_unknown(cast: Cast, definition: Definition, **known: Iterable[str]) -> None:
    """Raises DefinitionError at a subagent the file names and nobody knows; with `tools=NAMES` at a tool as well."""
    member = cast.members[definition.name]
    named = {"subagents": cast.members, **known}
    if all(set(getattr(definition, key)) <= set(names) for key, names in named.items()):
        return
    content = member.path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    if faults := unknown_names(definition, content, **named):
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
