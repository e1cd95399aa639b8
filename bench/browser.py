"""A headless Chromium, driven over a pipe in its DevTools protocol: for tests, screenshots and measurements.

Everything blocks: what it drives are processes, and a page's own clock runs whatever we do.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from typing import Any, cast

import attrs

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP rebound.test 127.0.0.1",
    "--remote-debugging-pipe",
)
PATIENCE = 40.0


class BrowserError(Exception):
    """The browser refused, a script threw, or what was waited for did not come."""


def installed() -> str | None:
    """The browser's program, None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def browser() -> Generator[Browser]:
    """A browser with an empty profile of its own; it and its profile are gone after the block."""
    program = installed()
    if program is None:
        raise BrowserError("no Chromium is installed")
    to_read, to_write = os.pipe(), os.pipe()
    # Only the files kept for the devtools' pipe are passed on, and it wants them as numbers 3 and 4.
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        words = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        shell = f'exec "$@" 3<&{to_read[0]} 4>&{to_write[1]}'
        process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *words],
            pass_fds=(to_read[0], to_write[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )
        os.close(to_read[0])
        os.close(to_write[1])
        found = Browser(to_read[1], to_write[0])
        try:
            yield found
        finally:
            with contextlib.suppress(BrowserError, OSError):
                found.send("Browser.close")
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(to_read[1])
            os.close(to_write[0])


@attrs.define(eq=False)
class Browser:
    """The connection; made by `browser`."""

    _sink: int
    _source: int
    _buffer: bytes = b""
    _sent: int = 0
    events: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])

    def send(self, method: str, session: str = "", /, **params: Any) -> dict[str, Any]:
        """Call a method and return its result; events that come meanwhile are kept. Raises BrowserError."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._sink, data) :]
        give_up = time.monotonic() + 2 * PATIENCE
        while (found := self._next(give_up - time.monotonic())).get("id") != self._sent:
            self.events.append(found)
        if "error" in found:
            raise BrowserError(f"{method}: {found['error']['message']}")
        return cast("dict[str, Any]", found["result"])

    def page(self, address: str = "about:blank", width: int = 1280, height: int = 800) -> Page:
        """A new tab, in a context of its own: no storage is shared with other tabs."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.size(width, height)
        page.goto(address)
        return page

    def _next(self, patience: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._source], [], [], max(0.0, patience))[0]:
                raise BrowserError("the browser does not answer")
            data = os.read(self._source, 1 << 20)
            if not data:
                raise BrowserError("the browser has gone")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return cast("dict[str, Any]", json.loads(message))


@attrs.define(eq=False)
class Page:
    """One tab."""

    browser: Browser
    session: str
    target: str

    def send(self, method: str, /, **params: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **params)

    def size(self, width: int, height: int, *, scale: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def dark(self, dark: bool) -> None:
        value = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def goto(self, address: str) -> None:
        self.send("Page.navigate", url=address)

    def js(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise. Raises BrowserError with what it threw."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if thrown := found.get("exceptionDetails"):
            raise BrowserError(f"{script[:200]}: {thrown.get('exception', {}).get('description', thrown['text'])}")
        return found["result"].get("value")

    def until(self, condition: str, patience: float = PATIENCE) -> Any:
        """Wait until an expression is true and return it. Raises BrowserError with what the page shows instead."""
        give_up = time.monotonic() + patience
        while not (found := self._now(condition)):
            if time.monotonic() > give_up:
                text = self.js("document.body.innerText")
                raise BrowserError(f"not within {patience} s: {condition}\n--- the page shows\n{text[:3000]}")
            time.sleep(0.03)
        return found

    def _now(self, condition: str) -> Any:
        try:
            return self.js(
                f"(async () => {{ const found = await ({condition}); return found instanceof Node || found; }})()"
            )
        except BrowserError as error:
            # A page that is being loaded has no document for a moment.
            if "Cannot find context" in str(error) or "null" in str(error) or "undefined" in str(error):
                return None
            raise

    def click(self, selector: str, text: str = "") -> None:
        """Click the first visible element that matches, whose name or text contains `text`, as a mouse would.

        It has to stand still for a moment: while a page fills, what is clicked would no longer be there.
        """
        where = self.until(
            f"""(async () => {{
              const moment = () => new Promise((go) => setTimeout(go, 20));
              for (const each of document.querySelectorAll({json.dumps(selector)})) {{
                const name = (each.getAttribute("aria-label") ?? "") + " " + each.textContent;
                if (!name.includes({json.dumps(text)}) || each.disabled) continue;
                each.scrollIntoView({{block: "center", behavior: "instant"}});
                const before = each.getBoundingClientRect();
                if (!before.width) continue;
                await moment();
                const box = each.getBoundingClientRect();
                if (box.x !== before.x || box.y !== before.y) continue;
                const x = box.x + box.width / 2, y = box.y + box.height / 2;
                if (each.contains(document.elementFromPoint(x, y))) return [x, y];
              }}
              return null;
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", buttons=1, clickCount=1
            )

    def type(self, selector: str, text: str) -> None:
        """Put the focus on an element, replace what stands in it, and type."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select?.(); }})()")
        self.send("Input.insertText", text=text)

    def key(self, key: str, code: int = 0, text: str = "") -> None:
        """Press and release a key, such as Enter (13) or j."""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text or ""
            )

    def shot(self) -> bytes:
        """The picture of what is seen, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def heard(self, method: str) -> list[dict[str, Any]]:
        """The parameters of every event of that name that this tab has sent so far."""
        self.js("0")
        return [
            each["params"]
            for each in self.browser.events
            if each.get("method") == method and each.get("sessionId") == self.session
        ]
