"""Settings: `elenco.yaml` in the workspace, `config.yaml` in the user's config folder, as strict as agent files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from .definitions import CAP_KEYS, Caps, Permissions, caps, permissions
from .errors import DefinitionError, Fault
from .frontmatter import Fields, Source, Value, Wrong, mapping, number, one_of, parse, text
from .handwritten import read_text
from .hooks.settings import Hook, hooks
from .mcps.entry import Entry, entries
from .sandbox.settings import sandbox_settings
from .sandbox.walls import SandboxSettings

if TYPE_CHECKING:
    from .wire import WireName

KEYS = (
    "model",
    "providers",
    "models",
    "mcpServers",
    "permissions",
    "limits",
    "loops",
    "hooks",
    "search",
    "sandbox",
    "approvals",
    "context",
)


@attrs.frozen
class ProviderConfig:
    """A server the user added, or other settings for a known one: None leaves it to what is known of it.

    `key_env` is the environment variable its key is in. `timeouts` are seconds by WAITS. A `keyless` server is sent no
    key, whatever is set: a workspace that nobody trusts named it.
    """

    base_url: str | None = None
    wire: WireName | None = None
    key_env: str | None = None
    timeouts: Mapping[str, float] = attrs.field(factory=dict[str, float])
    keyless: bool = False


WAITS = ("connect", "first_byte", "idle")
"""What a request may wait for: a connection, the first piece of the answer, any further piece."""


@attrs.frozen
class SearchConfig:
    """Where search_web asks: the base URL of a SearXNG server, and the language of the results."""

    base_url: str
    language: str = ""


@attrs.frozen
class ContextConfig:
    """How full contexts are dealt with: the model that writes summaries, provider/model; None: each actor's own."""

    summary_model: str | None = None


@attrs.frozen
class Humans:
    """How many seconds a human is waited for (None: as long as it takes), and what ask_user hears with nobody there."""

    timeout: float | None = None
    answer: str | None = None


@attrs.frozen
class Config:
    """One settings file's say; `path` as shown to a person."""

    path: str = ""
    model: str | None = None
    providers: Mapping[str, ProviderConfig] = attrs.field(factory=dict[str, ProviderConfig])
    models: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    mcp_servers: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    permissions: Permissions = Permissions()
    limits: Caps = Caps()
    loops: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    hooks: tuple[Hook, ...] = ()
    search: SearchConfig | None = None
    sandbox: SandboxSettings = SandboxSettings()
    approvals: Humans = Humans()
    context: ContextConfig = ContextConfig()


def user_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The user's config folder, None where there is no home to hold one."""
    environment = os.environ if environment is None else environment
    if base := environment.get("XDG_CONFIG_HOME"):
        return Path(base) / "elenco"
    if home := environment.get("HOME"):
        return Path(home) / ".config" / "elenco"
    return None


def load(path: Path, shown: str) -> Config:
    """Read one settings file; a missing one says nothing. Raises DefinitionError listing every fault."""
    try:
        content = read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except UnicodeDecodeError:
        raise DefinitionError([Fault(shown, 1, "not UTF-8 text; save the file as UTF-8")]) from None
    except OSError as error:
        raise DefinitionError([Fault(shown, 1, f"cannot be read: {error.strerror}")]) from None
    return read(content, shown)


def read(content: str, shown: str) -> Config:
    """The Config a file's text stands for. Raises DefinitionError listing every fault."""
    root = parse(Source(shown, content.replace("\r\n", "\n")))
    if root is None:
        return Config(shown)
    faults: list[Fault] = []
    fields = Fields[Any](root, KEYS, faults)
    config = Config(
        path=shown,
        model=fields.take("model", text),
        providers=fields.take("providers", _providers, {}),
        models=fields.take("models", mapping, {}),
        mcp_servers=fields.take("mcpServers", entries, {}),
        permissions=fields.take("permissions", permissions, Permissions()),
        limits=fields.take("limits", _limits, Caps()),
        loops=fields.take("loops", mapping, {}),
        hooks=fields.take("hooks", hooks, ()),
        search=fields.take("search", _search),
        sandbox=fields.take("sandbox", sandbox_settings, SandboxSettings()),
        approvals=fields.take("approvals", _approvals, Humans()),
        context=fields.take("context", _context, ContextConfig()),
    )
    if faults:
        raise DefinitionError(sorted(faults, key=lambda fault: (fault.line, fault.column)))
    return config


def _search(value: Value) -> SearchConfig:
    fields = Fields[Any](value, ("base_url", "language"), [])
    if "base_url" not in fields and not fields.faults:
        raise Wrong("search needs a base_url, that of a SearXNG server", value)
    found = SearchConfig(fields.take("base_url", _http_url, ""), fields.take("language", text, ""))
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _http_url(value: Value) -> str:
    from .known import unusable

    url = text(value).strip()
    if why := unusable(url):
        more = "" if why.startswith("it must begin") else f": {why}"
        fault = value.fault(f"must be a URL that begins with http:// or https://{more}")
        raise Wrong("", faults=[attrs.evolve(fault, source="") if "@" in url else fault])  # a password is not shown
    return url.rstrip("/")


def _approvals(value: Value) -> Humans:
    fields = Fields[Any](value, ("timeout", "answer"), [])
    found = Humans(fields.take("timeout", _seconds), fields.take("answer", text))
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _context(value: Value) -> ContextConfig:
    fields = Fields[Any](value, ("summary_model",), [])
    found = ContextConfig(fields.take("summary_model", _model_name))
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _model_name(value: Value) -> str:
    name = text(value).strip()
    if not name:
        raise Wrong("needs a model, provider/model", value)
    return name


def _seconds(value: Value) -> float:
    plain = value.plain()
    if not isinstance(plain, int | float) or isinstance(plain, bool) or plain < 1:
        raise Wrong("must be a number of seconds, at least 1", value)
    return float(plain)


def _limits(value: Value) -> Caps:
    fields = Fields[Any](value, CAP_KEYS, [])
    taken = caps(fields)
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return taken


def _timeouts(value: Value) -> Mapping[str, float]:
    fields = Fields[Any](value, WAITS, [])
    found = {name: fields.take(name, number(0.001)) for name in WAITS if name in fields}
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _providers(value: Value) -> Mapping[str, ProviderConfig]:
    from .known import KNOWN
    from .wire import WIRES

    found: dict[str, ProviderConfig] = {}
    for key, entry in value.pairs():
        fields = Fields[Any](entry, ("base_url", "wire", "key_env", "timeouts"), [])
        if "base_url" not in fields and not fields.faults and key.plain() not in KNOWN:
            raise Wrong(f"{key.plain()} needs a base_url", entry)
        base_url = fields.take("base_url", _http_url)
        config = ProviderConfig(
            base_url,
            fields.take("wire", one_of(*WIRES), "openai-chat" if base_url else None),
            fields.take("key_env", text),
            fields.take("timeouts", _timeouts, {}),
        )
        if fields.faults:
            raise Wrong("", faults=fields.faults)
        found[text(key)] = config
    return found
