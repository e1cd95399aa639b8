"""What a run is asked to be, and a first look at its files, names and rules: cheap, so that a slip is told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from . import config as settings
from . import definitions
from .cast import Cast, find
from .config import Config
from .definitions import Definition, FaultyAgent
from .errors import DefinitionError, Fault, UsageError
from .handwritten import read_text
from .known import BUILT_IN, KNOWN, OFFLINE, ModelFlags, check_name, default_model, split_name
from .mcps.entry import Entry
from .mcps.settings import JSON_FILE, servers_of, switched
from .plugins import plugins
from .policy.rules import Permissions, RuleError, parse_permissions
from .sandbox.walls import Walls, composed
from .trust import counting
from .vetting import refuse_settings, rule_names, together, vet_agent
from .workplace import check_workspace

if TYPE_CHECKING:
    from .events import RunStarted
    from .limits.limits import Limits
    from .messages import JsonObject
    from .policy.decision import Mode, Network, Sandbox
    from .skills.places import Shelf


_NO_RULES = definitions.Permissions()


def _no_limits() -> Limits:
    from .limits.limits import Limits

    return Limits()


@attrs.frozen(kw_only=True)
class RunOptions:
    """What a run is started with. `limits` are the caller's own; agent files and settings may only tighten them.

    `output_schema` is a JSON Schema for the answer of the run's first agent. A run that `compacts` makes the
    conversation it continues smaller, and does nothing else: its task enters nothing. `servers` are given to its first
    agent beside those its file names; where settings have one of the name, that counts. They are not kept.
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
    output_schema: JsonObject | None = None
    sandbox: Sandbox | None = None
    network: Network | None = None
    mcp: tuple[str, ...] = ()
    no_mcp: tuple[str, ...] = ()
    servers: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry], repr=False)

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
            "compacts": self.compacts,
            "output_schema": self.output_schema,
            "sandbox": self.sandbox,
            "network": self.network,
            "mcp": list(self.mcp),
            "no_mcp": list(self.no_mcp),
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
            mcp=tuple(wide.get("mcp", ())),
            no_mcp=tuple(kept.get("no_mcp", ())),
            yes=yes or bool(wide.get("yes")),
            headless=headless,
            mode=kept.get("mode", "default"),
            compacts=bool(kept.get("compacts")),
            output_schema=kept.get("output_schema"),
            sandbox=kept.get("sandbox") if trusted or kept.get("sandbox") == "read-only" else None,
            network=kept.get("network") if trusted or kept.get("network") == "none" else None,
        )

    def on_model(self, name: str | None) -> RunOptions:
        """The same with another model for the first agent, asked at the same place, where one is named."""
        return attrs.evolve(self, model=attrs.evolve(self.model, model=name, overrides=True)) if name else self


@attrs.frozen
class Outline:
    """A run as far as files, flags and the environment tell; `members` are the root and all it may delegate to.

    What needs trust and has none is in no file any more; `notice` is the line that tells a person so.
    """

    options: RunOptions
    here: Config
    user: Config
    cast: Cast
    root: Definition
    members: tuple[Definition, ...]
    model: str
    rules: Permissions
    shelf: Shelf | None = None
    notice: str = ""
    servers: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])

    @property
    def walls(self) -> Walls:
        """The walls around commands: flags, the user's settings, and what the workspace's make higher."""
        return composed(self.here.sandbox, self.user.sandbox, self.options.sandbox, self.options.network)

    def refuse_unpriced(self) -> None:
        """Raises UsageError where a cost budget binds a member and nobody knows the price of the model it asks."""
        everybodys = (self.options.limits, self.root.caps, self.here.limits, self.user.limits)
        whole = any(each.cost_budget is not None for each in everybodys)
        bound = [member for member in self.members if whole or member.caps.cost_budget is not None]
        if not bound:
            return
        from .prices import doubt, lookup, models_from

        own = {**models_from(self.user.models, self.user.path), **models_from(self.here.models, self.here.path)}
        for member in bound:
            provider, model = split_name(member.model or self.model, self.options.model)
            info = None if provider in BUILT_IN else lookup(provider, model, own)
            if provider in BUILT_IN or (info is not None and info.price is not None):
                continue
            name = f"{provider}/{model}"
            why = "" if self.options.model.base_url else doubt(name, own)
            cure = f"no price is known for {name}; give one under 'models:' in elenco.yaml, or use --token-budget"
            raise UsageError(f"cost_budget cannot be kept: {why or cure}")


def _asked(cast: Cast, options: RunOptions) -> Cast:
    return cast.without_model(options.agent) if options.model.overrides else cast


def _as_found(cast: Cast) -> Cast:
    return cast


def outline(
    options: RunOptions,
    given: Iterable[str] = (),
    tools: Iterable[str] | None = None,
    drafted: Callable[[Cast], Cast] = _as_found,
) -> Outline:
    """Read settings and agent files and look at every name in them; `given` are providers handed over in code.

    The names of tools are looked at where `tools` says which there are. `drafted` puts agents nobody has saved yet into
    a cast: into the one that was found, and into what of it counts, whose rights no draft exceeds.

    Raises UsageError, DefinitionError.
    """
    check_workspace(options.workspace)
    if not os.fsencode(options.workspace.resolve()).decode("utf-8", "ignore") == str(options.workspace.resolve()):
        raise UsageError(f"the path of the workspace {options.workspace.resolve()} is no UTF-8 text")
    here, user = settings_of(options.workspace)
    found = find(options.workspace).given(options.agent, options.servers)
    _refuse_settings(options.workspace, here, user, found, tools)
    cast = _asked(drafted(found), options)
    providers = {**user.providers, **here.providers}
    known = set(given)

    def check(name: str, where: str) -> None:
        provider = name.partition("/")[0]
        if provider not in known and not _is_plugins(provider, providers):
            check_name(name, options.model, providers, os.environ, where)

    def vet(readable: Definition) -> None:
        refuse_faulty(cast, readable, check, tools, workspace=options.workspace)

    with _every_fault(vet):
        root = cast.get(options.agent)
    shelf = _shelf(options.workspace, cast, options.agent)
    refuse_faulty(cast, root, check, tools, shelf, workspace=options.workspace)
    with _every_fault(vet):
        members = tuple(cast.closure(options.agent))
    servers: Mapping[str, Entry] = {**options.servers, **_servers(options.workspace, here, user, members)}
    for member in members:
        if member is not root or member.mcps:
            refuse_faulty(cast, member, check, tools, shelf, servers, options.workspace)
    model = default_model(options.model, here.model or user.model, os.environ)
    check(
        model,
        "--model" if options.model.model or not (here.model or user.model) else (here if here.model else user).path,
    )
    named = here if here.context.summary_model else user
    if named.context.summary_model:
        try:
            check(named.context.summary_model, "it")
        except UsageError as error:
            said = str(error).replace(" in it", "", 1)
            raise UsageError(f"{named.path}: context.summary_model: {said}") from None
    _refuse_output(options, root, members, model)
    here, counted, notice = counting(options.workspace, here, found)
    cast = _asked(drafted(counted), options).watched({**user.loops, **here.loops})
    members = tuple(cast.closure(options.agent))
    for member in members:
        _refuse_loops(member, here, user)
    trusted = {**options.servers, **user.mcp_servers} if notice else servers
    servers = switched(trusted, options.mcp, options.no_mcp)
    return Outline(
        options,
        here,
        user,
        cast,
        members[0],
        members,
        model,
        _rules(options, here, user, _names_in_rules(cast, tools) if tools is not None else None, servers),
        shelf,
        notice,
        servers,
    )


@contextmanager
def _every_fault(vet: Callable[[Definition], None]) -> Generator[None]:
    """An agent file that cannot be used is told with all its faults: those of the names in it as well."""
    try:
        yield
    except FaultyAgent as faulty:
        try:
            vet(faulty.readable)
        except DefinitionError as further:
            raise DefinitionError(together(faulty.faults, further.faults)) from None
        raise


def _is_plugins(provider: str, configured: Mapping[str, object]) -> bool:
    """Whether a plugin brings the provider; nobody is asked about those known without."""
    return provider not in KNOWN and provider not in (*BUILT_IN, *configured) and provider in plugins().providers


def _servers(workspace: Path, here: Config, user: Config, members: Iterable[Definition]) -> Mapping[str, Entry]:
    """The MCP servers that members of the cast name. Without one, nobody looks where they are named."""
    if not any(member.mcps for member in members):
        return {}
    return servers_of(workspace, here, user).entries


def _shelf(workspace: Path, cast: Cast, name: str) -> Shelf | None:
    """The skills there are, None where neither the agent nor anybody it may reach names some. Blocks."""
    waiting, seen = [name], set[str]()
    while waiting:
        member = cast.members.get(waiting.pop())
        if member is None or member.definition is None or member.name in seen:
            continue
        if member.definition.skills:
            from .skills.places import find_skills

            return find_skills(workspace)
        seen.add(member.name)
        waiting += member.definition.subagents
    return None


def _refuse_output(options: RunOptions, root: Definition, members: Iterable[Definition], model: str) -> None:
    """Raises UsageError for a schema that is none, or one that the offline model is to answer in."""
    if options.output_schema is not None:
        from .output.schema import faults_of_schema

        if faults := faults_of_schema(options.output_schema):
            raise UsageError(f"the output schema: {faults[0].text}")
    for member in members:
        asked = options.output_schema is not None and member is root
        if (member.model or model) == OFFLINE and (asked or (member.output is not None and member.output.schema)):
            whose = "--output-schema" if asked else member.path
            raise UsageError(
                f"{whose}: {OFFLINE} quotes files and cannot answer in JSON; connect a model  (elenco doctor)"
            )


def settings_of(workspace: Path) -> tuple[Config, Config]:
    """The workspace's settings and the user's. Raises DefinitionError."""
    user = settings.user_folder()
    here = settings.load(workspace / "elenco.yaml", "elenco.yaml")
    own = settings.load(user / "config.yaml", str(user / "config.yaml")) if user is not None else Config()
    return here, own


def _refuse_settings(workspace: Path, here: Config, user: Config, cast: Cast, tools: Iterable[str] | None) -> None:
    """Look at rules, prices and the guard of the settings. Raises DefinitionError.

    The names of `tools` are looked at in the workspace's own rules alone, and where no server brings further ones.
    """
    served = here.mcp_servers or user.mcp_servers or (workspace / JSON_FILE).exists()
    refuse_settings(here, workspace / "elenco.yaml", None if tools is None or served else _names_in_rules(cast, tools))
    refuse_settings(user, Path(user.path))


def _refuse_loops(member: Definition, here: Config, user: Config) -> None:
    """Raises DefinitionError where an agent's own guard and the settings' do not go together."""
    if here.loops or user.loops:
        from .limits.loops import guard_settings

        try:
            guard_settings(member.loops)
        except ValueError as error:
            files = " and ".join(each.path for each in (here, user) if each.loops)
            raise DefinitionError([Fault(member.path, 1, f"with the loops of {files}: {error}")]) from None


def refuse_faulty(
    cast: Cast,
    definition: Definition,
    check: Callable[[str, str], None] | None = None,
    tools: Iterable[str] | None = None,
    shelf: Shelf | None = None,
    servers: Iterable[str] | None = None,
    workspace: Path | None = None,
    strict: bool = False,
) -> None:
    """Look at what a file names: other agents, rules, the model (`check` is told the file as well), skills and tools.

    The names of `tools`, of the skills on a `shelf` and of `servers` are looked at where they are given; with `strict`,
    those that rules begin with as well.

    A check of the output is looked for in `workspace`.

    Raises DefinitionError with every fault and its place.
    """
    skills = definition.skills if shelf is not None and definition.skills != "all" else ()
    if tools is not None and not {*(tools := tuple(tools))}.issuperset(definition.tools):
        tools = (*tools, *(tool.name for tool in plugins().tools))
    names = (
        *definition.subagents,
        *(definition.tools if tools is not None else ()),
        *skills,
        *(definition.mcps if servers is not None else ()),
    )
    named = {*cast.members, *(tools or ()), *(shelf.skills if shelf is not None else ()), *(servers or ())}
    if named.issuperset(names) and not (
        definition.model
        or definition.loops
        or definition.permissions != _NO_RULES
        or definition.output
        or definition.hooks
    ):
        return  # Nothing in it that could be wrong: its YAML need not be read a second time.
    content = read_text(cast.members[definition.name].path)
    faults = vet_agent(
        definition,
        content,
        agents=cast.members,
        tools=tools,
        servers=servers,
        skills=shelf.skills if shelf is not None else None,
        strict=strict,
        check_model=None if check is None else lambda name: check(name, definition.path),
        workspace=workspace,
        hints=cast.misnamed,
    )
    if faults and shelf is not None:
        from .skills.hired import explained

        faults = explained(faults, shelf)
    if faults:
        raise DefinitionError(faults)


def _names_in_rules(cast: Cast, tools: Iterable[str]) -> frozenset[str]:
    """The tools a flag's rule may begin with."""
    return rule_names((*tools, *(tool.name for tool in plugins().tools)), cast.members)


def _rules(
    options: RunOptions, here: Config, own: Config, known: Iterable[str] | None, servers: Iterable[str]
) -> Permissions:
    """The rules of the whole run: flags and settings together, deny before ask before allow.

    `servers`, which nobody has asked yet, bring tools whose names begin with theirs.
    """
    served = tuple(f"{server}_" for server in servers)
    if known is not None and served:
        words = (rule.partition("(")[0].strip() for rule in (*options.allow, *options.ask, *options.deny))
        known = {*known, *(word for word in words if word.startswith(served))}
    try:
        found = parse_permissions(options.allow, options.ask, options.deny, origin="flag", known=known)
        for config in (here, own):
            written = config.permissions
            found += parse_permissions(written.allow, written.ask, written.deny, origin=config.path)
    except RuleError as error:
        raise UsageError(str(error)) from None
    return found
