"""Signing in to servers over HTTP: OAuth through a browser once, its tokens kept in the user's state."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import parse_qs, urlsplit

import attrs
import trio

from runtime.handwritten import read_bytes

from .entry import Entry, OAuth
from .transports import Unusable

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

Browser: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Shows an address to a person, or visits it; the address it leads back to, None where that comes to our own ear."""

PATH = "/callback"
PATIENCE = 300.0
"""Seconds a person has to sign in."""
PORTS = range(15_000, 32_000)
"""Where a browser is led back to: below what systems give to connections that go out."""
_TRIES = 100
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nSigned in. You can close this page.\n"


def sign_in(entry: Entry, state: Path | None, browser: Browser | None) -> httpx2.Auth:
    """What answers a server that wants to know who asks; without a `browser`, only tokens kept from before do.

    Raises Unusable, in its flow, where a person has to sign in first.
    """
    kept = Kept.of(entry, state)
    if any(name.lower() == "authorization" for name in entry.headers):
        return _refusing(f"it refused the Authorization header of {entry.place}")
    if browser is None and not kept.has_tokens:
        return _refusing(f"it wants a sign-in: elenco mcp login {entry.name}")
    return _provider(entry, kept, browser)


def forget(entry: Entry, state: Path | None) -> bool:
    """Drop what is kept of a sign-in; whether there was anything. Blocks. Raises OSError."""
    file = Kept.of(entry, state).file
    if file is None or not file.exists():
        return False
    file.unlink()
    return True


def _refusing(why: str) -> httpx2.Auth:
    import httpx2

    class Refusing(httpx2.Auth):
        async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            response = yield request
            if response.status_code in (401, 403):
                raise Unusable(why)

    return Refusing()


def _provider(entry: Entry, kept: Kept, browser: Browser | None) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    ear = Ear(entry.oauth.callback_port if entry.oauth is not None else 0)
    asked = entry.oauth or OAuth()
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "Elenco",
            "redirect_uris": [ear.address if browser is not None else kept.redirect or ear.address],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "scope": " ".join(asked.scopes) or None,
            "token_endpoint_auth_method": "client_secret_post" if asked.client_secret else None,
        }
    )
    led_back: list[str] = []

    async def show(url: str) -> None:
        if browser is None:
            raise Unusable(f"it wants a new sign-in: elenco mcp login {entry.name}")
        await ear.open()  # before anybody has the address: a browser that need not ask is back at once
        address: str | None = ""
        try:
            address = await browser(url)
        finally:
            if address is not None:
                ear.close()
        if address is not None:
            led_back.append(address)

    async def hear() -> AuthorizationCodeResult:
        address = led_back.pop() if led_back else await ear.hear()
        return _code(address)

    kept.redirect = kept.redirect or ear.address
    return OAuthClientProvider(
        server_url=entry.url,
        client_metadata=metadata,
        storage=kept,
        redirect_handler=show,
        callback_handler=hear,
        client_metadata_url=asked.client_metadata_url or None,
    )


def _code(address: str) -> AuthorizationCodeResult:
    """What an address that a sign-in leads back to says. Raises Unusable where it says no."""
    from mcp.client.auth import AuthorizationCodeResult

    found = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
    if "code" not in found:
        raise Unusable(f"the sign-in was refused: {found.get('error_description') or found.get('error') or 'no code'}")
    return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))


def free_port(ports: Sequence[int] = PORTS) -> int:
    """One of the ports that nobody has now. Raises Unusable."""
    for _ in range(_TRIES):
        port = secrets.choice(ports)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise Unusable("no port is free on this machine for a browser to be led back to")


class Ear:
    """Where a browser is led back to: a port of this machine, chosen at once, listened at only while somebody waits."""

    def __init__(self, port: int) -> None:
        self._port = port or free_port()
        self._listeners: list[trio.SocketListener] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}{PATH}"

    async def open(self) -> None:
        """Listen from now on: who comes before `hear` waits in line. Raises Unusable."""
        if not self._listeners:
            try:
                self._listeners = await trio.open_tcp_listeners(self._port, host="127.0.0.1")
            except OSError as error:
                why = error.strerror or str(error)
                raise Unusable(f"a browser cannot be led back to port {self._port} of this machine: {why}") from error

    def close(self) -> None:
        """Listen no more."""
        for listener in self._listeners:
            listener.socket.close()
        self._listeners = []

    async def hear(self) -> str:
        """The first address under PATH that is asked for. Raises Unusable, also when nobody comes in time."""
        found: list[str] = []
        done = trio.Event()

        async def answer(stream: trio.SocketStream) -> None:
            with trio.move_on_after(10):
                head = b""
                while b"\r\n" not in head and len(head) < 8192 and (piece := await stream.receive_some()):
                    head += piece
                words = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split()
                if len(words) > 1 and words[1].startswith(f"{PATH}?"):
                    await stream.send_all(_PAGE)
                    found.append(words[1])
                    done.set()
                else:
                    await stream.send_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            await trio.aclose_forcefully(stream)

        await self.open()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.serve_listeners, answer, self._listeners)
                with trio.move_on_after(PATIENCE):
                    await done.wait()
                    await trio.sleep(0.1)  # the page is on its way
                nursery.cancel_scope.cancel()
        finally:
            self.close()
        if not found:
            raise Unusable(f"nobody signed in within {PATIENCE:g} s")
        return found[0]


@attrs.define(eq=False)
class Kept:
    """The tokens of one server and the client they are for, in a file that only its owner may read, or in memory."""

    file: Path | None
    url: str
    oauth: OAuth | None
    data: dict[str, Any] = attrs.Factory(dict[str, Any])

    @classmethod
    def of(cls, entry: Entry, state: Path | None) -> Kept:
        """What is kept for a server; what cannot be read is nothing. Blocks."""
        name = hashlib.sha256(json.dumps([entry.name, entry.url]).encode()).hexdigest()[:32]
        file = state / "mcp" / f"{name}.json" if state is not None else None
        kept = cls(file, entry.url, entry.oauth)
        if file is not None:
            try:
                found: Any = json.loads(read_bytes(file))
            except (OSError, ValueError, RecursionError):
                found = None
            if isinstance(found, dict) and cast("dict[str, Any]", found).get("url") == entry.url:
                kept.data = cast("dict[str, Any]", found)
        return kept

    @property
    def has_tokens(self) -> bool:
        return isinstance(self.data.get("tokens"), dict)

    @property
    def redirect(self) -> str:
        return str(self.data.get("redirect") or "")

    @redirect.setter
    def redirect(self, address: str) -> None:
        self.data["redirect"] = address

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        await trio.lowlevel.checkpoint()
        return OAuthToken.model_validate(self.data["tokens"]) if self.has_tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.data["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        await self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        await trio.lowlevel.checkpoint()
        if self.oauth is not None and self.oauth.client_id:
            return OAuthClientInformationFull.model_validate(
                {
                    "client_id": self.oauth.client_id,
                    "client_secret": self.oauth.client_secret or None,
                    "redirect_uris": [self.redirect],
                    "token_endpoint_auth_method": "client_secret_basic" if self.oauth.client_secret else "none",
                }
            )
        client = self.data.get("client")
        return OAuthClientInformationFull.model_validate(client) if isinstance(client, dict) else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.data["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._save()

    async def _save(self) -> None:
        if self.file is not None:
            with trio.CancelScope(shield=True):  # a token that was given out is not given out again
                await trio.to_thread.run_sync(self._write, self.file)

    def _write(self, file: Path) -> None:
        file.parent.mkdir(0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as out:
            json.dump({"url": self.url, **self.data}, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        draft.rename(file)
