"""The port that a sign-in leads back to."""

from __future__ import annotations

import socket

import pytest
import trio

from runtime.mcps.sign_in import PATH, Ear, free_port
from runtime.mcps.transports import Unusable


async def test_a_browser_that_is_back_before_anybody_waits_is_heard() -> None:
    """The port is open before the address is shown: a browser that need not ask anybody is back at once."""
    ear = Ear(0)
    await ear.open()
    port = int(ear.address.removesuffix(PATH).rpartition(":")[2])
    browser = await trio.open_tcp_stream("127.0.0.1", port)
    await browser.send_all(f"GET {PATH}?code=abc HTTP/1.1\r\n\r\n".encode())
    with trio.fail_after(30):
        assert f"{PATH}?code=abc" == await ear.hear()
        assert b"Signed in" in await browser.receive_some()
    await browser.aclose()


async def test_a_port_that_is_taken_is_not_chosen_and_is_told() -> None:
    """A port that others have is passed over; where it was asked for, one line says what cannot be."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(Unusable, match="no port is free"):
            free_port([taken])
        with pytest.raises(Unusable, match=f"led back to port {taken} of this machine: .*in use"):
            await Ear(taken).open()
    assert taken == free_port([taken])
