"""The text of `$'…'`: the one quoting that can spell any character."""

from __future__ import annotations

import re

from .found import NotUnderstood

_SINGLE = {
    "a": 7,
    "b": 8,
    "e": 27,
    "E": 27,
    "f": 12,
    "n": 10,
    "r": 13,
    "t": 9,
    "v": 11,
    "\\": 92,
    "'": 39,
    '"': 34,
    "?": 63,
}
_ESCAPE = re.compile(
    r"\\(?:(?P<single>[abeEfnrtv\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9A-Fa-f]{1,2})"
    r"|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})|(?P<odd>[cxuU].?)|(?P<kept>.))",
    re.DOTALL,
)


def decoded(body: str) -> str:
    """What stands between the quotes, decoded. Raises NotUnderstood where shells differ (`\\0`, `\\c`, bad digits)."""
    out = bytearray()
    at = 0
    for found in _ESCAPE.finditer(body):
        out += body[at : found.start()].encode(errors="surrogatepass") + _bytes(found)
        at = found.end()
    out += body[at:].encode(errors="surrogatepass")
    return out.decode(errors="surrogateescape")


def _bytes(found: re.Match[str]) -> bytes:
    if found["single"]:
        return bytes([_SINGLE[found["single"]]])
    if found["kept"]:
        return found[0].encode(errors="surrogatepass")
    if found["octal"]:
        return _nonzero(bytes([int(found["octal"], 8) & 255]))
    if found["byte"]:
        return _nonzero(bytes([int(found["byte"], 16)]))
    point = found["short"] or found["long"]
    if point and int(point, 16) < 0x110000 and not 0xD800 <= int(point, 16) < 0xE000:
        return _nonzero(chr(int(point, 16)).encode())
    raise NotUnderstood(f"{found[0]!r} in $'…'")


def _nonzero(data: bytes) -> bytes:
    if data == b"\0":
        raise NotUnderstood("a zero byte in $'…'")
    return data
