"""Which proxy, if any, a URL goes through, by the usual environment variables. Pure.

`HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` name the proxy by scheme; `NO_PROXY` lists the hosts to reach directly.
"""

import ipaddress
from collections.abc import Mapping


def proxy_for(scheme: str, host: str, port: int, proxies: Mapping[str, str]) -> str | None:
    """The proxy's URL for an origin, or None to connect directly.

    `proxies` is what `urllib.request.getproxies()` returns: a URL for each of `http`, `https` and `all`, and under `no`
    the text of `NO_PROXY`. A proxy named without a scheme is an http one.
    """
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or _is_exempt(host, port, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_exempt(host: str, port: int, no_proxy: str) -> bool:
    """Whether `NO_PROXY` lists the host: `*`, a domain, an address or a network, each perhaps with a port."""
    host = host.strip("[]").lower()
    return any(_matches(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    entry = entry.rpartition("://")[2]
    if (network := _network(entry)) is not None:
        return _is_in(host, network)
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdecimal():
        if int(digits) != port:
            return False
        entry = name
    if (network := _network(entry.strip("[]"))) is not None:
        return _is_in(host, network)
    domain = entry.removeprefix("*").removeprefix(".")
    return bool(domain) and (host == domain or host.endswith("." + domain))


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _is_in(host: str, network: _Network) -> bool:
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False
