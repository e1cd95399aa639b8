"""TLS below our transport, against a real server on loopback with a certificate made for the test."""

import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from runtime.providers.transport import DirectTransport, RoutedTransport, TlsSettings, open_stream
from runtime.providers.transport_network import NetworkStream, connect_tcp, start_tls

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="the openssl command makes the certificate")

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"

Handler = Callable[[trio.SSLStream[trio.SocketStream]], Awaitable[None]]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate for localhost and 127.0.0.1, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    key, signed = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=Elenco test", "-days", "2", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(key), "-out", str(signed)]
    subprocess.run([OPENSSL or "", "req", "-x509", *curve, *subject, *files], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes(key.read_bytes() + signed.read_bytes())
    return both


def trusting(certificate: Path) -> ssl.SSLContext:
    """A client's context that trusts this certificate."""
    return ssl.create_default_context(cafile=str(certificate))


@asynccontextmanager
async def server(certificate: Path, serve: Handler) -> AsyncGenerator[int]:
    """The port of a TLS server whose connections are served so."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def serve_tcp(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError):
                await serve(trio.SSLStream(stream, context, server_side=True, https_compatible=True))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve_tcp, 0, host="127.0.0.1"))
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def serve_chunked(stream: trio.SSLStream[trio.SocketStream]) -> None:
    """Answer each request with a chunked body, each piece a record of its own."""
    data = b""
    while more := await stream.receive_some():
        data += more
        head, separator, body = data.partition(b"\r\n\r\n")
        if not separator or len(body) < int(head.rpartition(b"Content-Length: ")[2]):
            continue
        data = b""
        for start in range(0, len(CHUNKED), 20):
            await stream.send_all(CHUNKED[start : start + 20])


async def fetch(transport: httpx.AsyncBaseTransport, url: str, content: bytes = b"") -> bytes:
    """The body of one exchange."""
    async with open_stream(transport, "POST", httpx.URL(url), content=content) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return b"".join([piece async for piece in response.stream])


@pytest.mark.parametrize("size", [0, 100, 1_000_000])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_tls_connection_is_verified_and_reused(host: str, size: int, certificate: Path) -> None:
    """Exchanges go over a verified TLS connection, which is reused; long bodies go out whole."""
    transport = DirectTransport(tls=TlsSettings(trusting(certificate)))
    async with server(certificate, serve_chunked) as port:
        for _ in range(3):
            assert await fetch(transport, f"https://{host}:{port}/", b"x" * size) == b"onetwo"
        assert (transport.stats.opened, transport.stats.reused) == (1, 2)
        await transport.aclose()


async def test_a_certificate_nobody_vouches_for_is_refused(certificate: Path) -> None:
    """By default a certificate that does not verify is a ConnectError that says so, and nothing stays open."""
    transport = RoutedTransport()
    async with server(certificate, serve_chunked) as port:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await fetch(transport, f"https://localhost:{port}/")
    assert transport.stats.open_now == 0


async def test_a_certificate_for_another_name_is_refused(certificate: Path) -> None:
    """A certificate for another host is refused."""

    async def elsewhere(host: str, port: int) -> NetworkStream:
        return await connect_tcp("127.0.0.1", port)

    transport = DirectTransport(tls=TlsSettings(trusting(certificate)), connect=elsewhere)
    async with server(certificate, serve_chunked) as port:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await fetch(transport, f"https://model.test:{port}/")


async def test_the_certificates_of_ssl_cert_file_are_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE names the certificates to trust."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    transport = RoutedTransport(trust_env=False)
    async with server(certificate, serve_chunked) as port:
        assert await fetch(transport, f"https://localhost:{port}/") == b"onetwo"
        await transport.aclose()


async def test_certificates_that_cannot_be_read_are_a_connect_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An SSL_CERT_FILE that does not exist is a ConnectError."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/certificates.pem")
    with pytest.raises(httpx.ConnectError, match="No such file"):
        await fetch(DirectTransport(), "https://localhost:1/")


async def test_verification_can_be_turned_off(certificate: Path) -> None:
    """With verify=False any certificate will do."""
    transport = DirectTransport(tls=TlsSettings(verify=False))
    async with server(certificate, serve_chunked) as port:
        assert await fetch(transport, f"https://localhost:{port}/") == b"onetwo"
        await transport.aclose()


@pytest.mark.parametrize("is_polite", [True, False])
async def test_a_tls_connection_closed_while_idle_is_not_used(is_polite: bool, certificate: Path) -> None:
    """A server's close is noticed, with close-notify or without."""

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        await stream.receive_some()
        await stream.send_all(CHUNKED)
        if is_polite:
            await stream.aclose()
        else:
            await stream.transport_stream.aclose()
        closed.set()

    closed = trio.Event()
    transport = DirectTransport(tls=TlsSettings(trusting(certificate)))
    async with server(certificate, serve) as port:
        assert await fetch(transport, f"https://localhost:{port}/") == b"onetwo"
        await closed.wait()
        assert await fetch(transport, f"https://localhost:{port}/") == b"onetwo"
        assert (transport.stats.opened, transport.stats.retried) == (2, 0)
        await transport.aclose()


async def test_a_tls_body_that_breaks_off_is_an_error(certificate: Path) -> None:
    """A response that breaks off inside TLS is an error; a body without length ends with the stream."""

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        request = bytes(await stream.receive_some())
        await stream.send_all(b"HTTP/1.0 200 OK\r\n\r\nhello" if b"/whole" in request else CHUNKED[:-5])
        await stream.transport_stream.aclose()

    transport = DirectTransport(tls=TlsSettings(trusting(certificate)))
    async with server(certificate, serve) as port:
        with pytest.raises(httpx.RemoteProtocolError):
            await fetch(transport, f"https://localhost:{port}/short")
        assert await fetch(transport, f"https://localhost:{port}/whole") == b"hello"
    assert transport.stats.open_now == 0


async def test_a_server_that_does_not_speak_tls_is_a_connect_error() -> None:
    """A server that answers a handshake with something else, or nothing, is a ConnectError."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(answer)

    transport = DirectTransport(tls=TlsSettings(ssl.create_default_context()))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):  # noqa: B007 (the server reads it)
            with pytest.raises(httpx.ConnectError):
                await fetch(transport, f"https://127.0.0.1:{listeners[0].socket.getsockname()[1]}/")
        nursery.cancel_scope.cancel()
    assert transport.stats.open_now == 0


async def test_closing_says_goodbye_without_waiting(certificate: Path) -> None:
    """Closing a TLS connection sends close-notify, so the server sees an orderly end."""
    ended = trio.Event()

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        # Not made for HTTPS, this server takes a missing close-notify for a broken connection.
        strict = trio.SSLStream(stream.transport_stream, context, server_side=True)
        assert await strict.receive_some() == b"hello"
        assert await strict.receive_some() == b""
        ended.set()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with server(certificate, serve) as port:
        stream = await start_tls(await connect_tcp("127.0.0.1", port), trusting(certificate), "localhost")
        await stream.send(b"hello")
        stream.close()
        stream.close()
        await ended.wait()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
@pytest.mark.parametrize("is_warm", [False, True])
async def test_a_cancel_at_any_moment_of_a_tls_exchange_leaves_nothing_open(
    is_warm: bool, certificate: Path, cancelled_at: Callable[[int], AbstractContextManager[None]]
) -> None:
    """Cancelled at any step, in the handshake too, an exchange over TLS leaves no descriptor open."""
    before = set(os.listdir("/proc/self/fd"))
    completed = 0
    for step in range(1, 40):
        is_completed = False
        transport = DirectTransport(tls=TlsSettings(trusting(certificate)), max_connections=1)
        async with server(certificate, serve_chunked) as port:
            url = f"https://127.0.0.1:{port}/"
            if is_warm:
                await fetch(transport, url)
            with cancelled_at(step):
                assert await fetch(transport, url) == b"onetwo"
                is_completed = True
                completed += 1
            assert is_warm or transport.stats.open_now == int(is_completed)
            assert await fetch(transport, url) == b"onetwo"
            await transport.aclose()
        assert set(os.listdir("/proc/self/fd")) == before
    assert 0 < completed < 39
