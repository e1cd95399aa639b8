"""Which proxy a URL goes through."""

import pytest

from runtime.providers.transport_proxies import proxy_for

HTTP = "http://proxy.test:3128"
HTTPS = "http://secure.test:3129"


@pytest.mark.parametrize(
    ("scheme", "proxies", "expected"),
    [
        ("http", {}, None),
        ("https", {}, None),
        ("http", {"http": HTTP}, HTTP),
        ("https", {"http": HTTP}, None),
        ("https", {"http": HTTP, "https": HTTPS}, HTTPS),
        ("https", {"all": HTTP}, HTTP),
        ("http", {"all": HTTP, "http": HTTPS}, HTTPS),
        ("http", {"http": "proxy.test:3128"}, HTTP),
        ("http", {"http": ""}, None),
        ("http", {"http": "socks5://proxy.test:1080"}, "socks5://proxy.test:1080"),
    ],
)
def test_the_scheme_chooses_the_proxy(scheme: str, proxies: dict[str, str], expected: str | None) -> None:
    """The scheme's own proxy is used, else the one for all."""
    assert expected == proxy_for(scheme, "api.example.com", 443, proxies)


@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "is_direct"),
    [
        ("*", "api.example.com", 443, True),
        ("", "api.example.com", 443, False),
        (" , ", "api.example.com", 443, False),
        ("example.com", "example.com", 443, True),
        ("example.com", "api.example.com", 443, True),
        ("example.com", "badexample.com", 443, False),
        ("EXAMPLE.com", "Api.Example.COM", 443, True),
        (".example.com", "api.example.com", 443, True),
        ("*.example.com", "api.example.com", 443, True),
        ("api.example.com", "example.com", 443, False),
        ("other.test, example.com", "example.com", 443, True),
        ("example.com:443", "example.com", 443, True),
        ("example.com:8443", "example.com", 443, False),
        ("https://example.com", "example.com", 443, True),
        ("localhost", "localhost", 11434, True),
        ("127.0.0.1", "127.0.0.1", 8000, True),
        ("127.0.0.1:8001", "127.0.0.1", 8000, False),
        ("127.0.0.1", "127.0.0.2", 8000, False),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.0.0.0/8", "ten.test", 443, False),
        ("::1", "::1", 8000, True),
        ("[::1]:8000", "::1", 8000, True),
        ("[::1]:8001", "::1", 8000, False),
        ("fd00::/8", "fd00::5", 443, True),
    ],
)
def test_no_proxy_lists_what_is_reached_directly(no_proxy: str, host: str, port: int, is_direct: bool) -> None:
    """A host that NO_PROXY lists is reached directly."""
    assert is_direct == (proxy_for("https", host, port, {"https": HTTPS, "no": no_proxy}) is None)
