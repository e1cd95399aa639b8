"""One MCP server as settings name it: how it is reached, what it may do, how long it is waited for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from runtime.errors import ElencoError, Fault
from runtime.frontmatter import Fields, Value, Wrong, boolean, kind, number, one_of, text, texts

Transport: TypeAlias = Literal["stdio", "http", "sse", "tcp"]
Mode: TypeAlias = Literal["auto", "legacy", "modern"]
Sampling: TypeAlias = Literal["ask", "allow", "deny"]

KEYS = (
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "mode",
    "timeout",
    "startup_timeout",
    "trust",
    "tools",
    "sampling",
    "disabled",
)
TYPES: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "tcp": "tcp",
}
CALL_TIMEOUT = 120.0
STARTUP_TIMEOUT = 30.0
LONGEST = 3600.0
"""Seconds a call may be given; what is larger was meant in milliseconds."""
_NAME = re.compile(r"[^/()\x00-\x1f\x7f]{1,64}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Unset(ElencoError):
    """A variable that an entry names is not set."""


@attrs.frozen
class OAuth:
    """How to sign in: a client that is registered already, or none; the scopes to ask for, if not what the server says.

    `client_secret` may name a variable. `client_metadata_url` is a page that describes us to a server that takes one.
    `callback_port` 0 takes any free port.
    """

    client_id: str = ""
    client_secret: str = attrs.field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    callback_port: int = 0
    client_metadata_url: str = ""


@attrs.frozen
class Entry:
    """A server. `env`, `headers`, `args`, `url` and `cwd` may hold `${NAME}` and `${NAME:-default}`.

    `timeout` bounds one call, `startup_timeout` a connection, in seconds. `trust` believes what the server says of its
    tools' effects. `tools` are the only ones to be offered, where it is given. `path` and `line` say where it stands.
    A `literal` one, of an editor, holds no variables.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    oauth: OAuth | None = None
    mode: Mode = "auto"
    timeout: float = CALL_TIMEOUT
    startup_timeout: float = STARTUP_TIMEOUT
    trust: bool = False
    tools: tuple[str, ...] | None = None
    sampling: Sampling = "ask"
    disabled: bool = False
    literal: bool = False
    path: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """File and line, as shown to a person."""
        return f"{self.path}:{self.line}" if self.path else "given in code"

    @property
    def reached(self) -> str:
        """How it is reached, in one line, without what may be secret."""
        if self.transport == "stdio":
            return " ".join((self.command, *self.args))
        scheme, mark, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"

    def as_data(self) -> dict[str, Any]:
        """What it says beyond what is so anyway."""
        data = attrs.asdict(self)
        usual = attrs.asdict(Entry(self.name))
        return {key: value for key, value in data.items() if value != usual[key] and key not in ("path", "line")}

    def resolved(self, environment: Mapping[str, str]) -> Entry:
        """With its variables filled in. Raises Unset."""
        if self.literal:
            return self

        def fill(written: str) -> str:
            return expanded(written, environment)

        return attrs.evolve(
            self,
            command=fill(self.command),
            args=tuple(map(fill, self.args)),
            env={key: fill(value) for key, value in self.env.items()},
            cwd=fill(self.cwd),
            url=fill(self.url),
            headers={key: fill(value) for key, value in self.headers.items()},
            oauth=self.oauth and attrs.evolve(self.oauth, client_secret=fill(self.oauth.client_secret)),
        )


def expanded(written: str, environment: Mapping[str, str]) -> str:
    """The text with `${NAME}` and `${NAME:-default}` filled in. Raises Unset."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1], cast("str | None", found[2])
        value = environment.get(name) or default
        if value is None:
            raise Unset(f"the variable {name} is not set")
        return value

    return _VARIABLE.sub(value, written)


def tcp_address(url: str) -> tuple[str, int]:
    """Host and port of `tcp://HOST:PORT`; the host alone may be left out. Raises ValueError."""
    host, _, port = url.removeprefix("tcp://").rstrip("/").rpartition(":")
    if not url.startswith("tcp://") or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("write tcp://HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def entries(value: Value, *, foreign: bool = False, warnings: list[Fault] | None = None) -> dict[str, Entry]:
    """The servers of one block, by name. Raises Wrong with every fault.

    In a `foreign` file, one that other programs read too, keys nobody here knows are put into `warnings`.
    """
    found: dict[str, Entry] = {}
    faults: list[Fault] = []
    for key, block in value.pairs():
        try:
            name = _name(key)
            if name in found:
                raise Wrong(f"'{name}' stands twice", key)
            found[name] = _entry(name, key, block, foreign, warnings if warnings is not None else [])
        except Wrong as wrong:
            faults.extend(wrong.faults or [(wrong.at or block).fault(str(wrong))])
    if faults:
        raise Wrong("", faults=faults)
    return found


def _name(key: Value) -> str:
    name = key.plain()
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.strip():
        raise Wrong("a server's name is 1 to 64 characters, none of them / ( or )", key)
    return name


def _entry(name: str, key: Value, block: Value, foreign: bool, warnings: list[Fault]) -> Entry:
    fields = Fields[Any](block, KEYS, [])
    if foreign:
        unknown = [fault for fault in fields.faults if fault.text.startswith("unknown key")]
        warnings.extend(attrs.evolve(fault, text=f"{fault.text}: not used", warning=True) for fault in unknown)
        fields.faults[:] = [fault for fault in fields.faults if fault not in unknown]
    transport: Transport | None = fields.take("type", _transport)
    known_type = "type" not in fields or transport is not None
    if transport is None:
        transport = "stdio" if "command" in fields or "url" not in fields else "http"
    seconds = _milliseconds(warnings) if foreign else _seconds
    sampling: Sampling = fields.take("sampling", one_of("ask", "allow", "deny"), "ask")
    entry = Entry(
        name=name,
        transport=transport,
        command=fields.take("command", _words, ""),
        args=fields.take("args", _arguments, ()),
        env=fields.take("env", _strings, {}),
        cwd=fields.take("cwd", text, ""),
        url=fields.take("url", _url(transport), ""),
        headers=fields.take("headers", _headers, {}),
        oauth=fields.take("oauth", _oauth),
        mode=fields.take("mode", one_of("auto", "legacy", "modern"), "auto"),
        timeout=fields.take("timeout", seconds, CALL_TIMEOUT),
        startup_timeout=fields.take("startup_timeout", seconds, STARTUP_TIMEOUT),
        trust=fields.take("trust", boolean, False),
        tools=fields.take("tools", texts),
        sampling=sampling,
        disabled=fields.take("disabled", boolean, False),
        path=key.source.path,
        line=key.fault("").line,
    )
    if not fields.faults and known_type:
        _check_whole(entry, fields, key)
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return entry


def _check_whole(entry: Entry, fields: Fields[Any], key: Value) -> None:
    """What the keys mean together."""
    if entry.transport == "stdio":
        if not entry.command:
            fields.faults.append(key.fault(f"{entry.name} needs a command to start, or a url to connect to"))
        misplaced = [name for name in ("url", "headers", "oauth") if name in fields]
        what = "a server that is started by its command"
    else:
        if not entry.url:
            fields.faults.append(key.fault(f"{entry.name} needs a url"))
        wrong = ("command", "args", "env", "cwd", *(("headers", "oauth") if entry.transport == "tcp" else ()))
        misplaced = [name for name in wrong if name in fields]
        what = f"a server that is reached over {entry.transport}"
    for name in misplaced:
        place = fields.place(name)
        assert place is not None
        fields.faults.append(place.fault(f"{name}: {what} has none"))


def _transport(value: Value) -> Transport:
    plain = value.plain()
    found = TYPES.get(plain) if isinstance(plain, str) else None
    if found is None:
        raise Wrong(f"expected stdio, http, sse or tcp, found {kind(plain)}")
    return found


def _words(value: Value) -> str:
    command = text(value).strip()
    if not command:
        raise Wrong("expected a program to start, found an empty text")
    return command


def _arguments(value: Value) -> tuple[str, ...]:
    found: list[str] = []
    for item in value.items():
        plain = item.plain()
        if isinstance(plain, bool) or not isinstance(plain, str | int | float):
            raise Wrong(f"expected text, found {kind(plain)}", item)
        found.append(str(plain))
    return tuple(found)


def _strings(value: Value) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, item in value.pairs():
        plain = item.plain()
        if isinstance(plain, bool) or not isinstance(plain, str | int | float):
            raise Wrong(f"expected text, found {kind(plain)}", item)
        found[text(key)] = str(plain)
    return found


def _headers(value: Value) -> Mapping[str, str]:
    found = _strings(value)
    for name, content in found.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", content):
            raise Wrong(f"'{name}' is no header that can be sent", value)
    return found


def _url(transport: Transport) -> Callable[[Value], str]:
    def convert(value: Value) -> str:
        url = text(value).strip()
        if transport == "tcp":
            try:
                tcp_address(url)
            except ValueError as error:
                if "${" not in url:
                    raise Wrong(str(error)) from None
        elif transport != "stdio" and not url.startswith(("http://", "https://", "${")):
            raise Wrong("must begin with http:// or https://")
        return url

    return convert


def _oauth(value: Value) -> OAuth:
    fields = Fields[Any](value, ("client_id", "client_secret", "scopes", "callback_port", "client_metadata_url"), [])
    found = OAuth(
        fields.take("client_id", text, ""),
        fields.take("client_secret", text, ""),
        fields.take("scopes", texts, ()),
        int(fields.take("callback_port", number(0, 65535), 0)),
        fields.take("client_metadata_url", text, ""),
    )
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _seconds(value: Value) -> float:
    found = number(0.1)(value)
    if found > LONGEST:
        raise Wrong(f"is in seconds, at most {LONGEST:g}; did you mean {found / 1000:g}?")
    return found


def _milliseconds(warnings: list[Fault]) -> Callable[[Value], float]:
    """Other programs write milliseconds; what cannot be seconds is taken as such, and told."""

    def convert(value: Value) -> float:
        found = number(0.1)(value)
        if found <= LONGEST:
            return found
        seconds = min(found / 1000, LONGEST)
        warnings.append(attrs.evolve(value.fault(f"{found:g} is taken as milliseconds: {seconds:g} s"), warning=True))
        return seconds

    return convert
