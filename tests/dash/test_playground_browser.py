"""The pages Playground and Compare and the plots of Runs, in a real browser over real runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from bench.browser import Browser, Page
from runtime.journal.folder import State

HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
AGENT = """\
---
name: scout
description: Looks around.
tools: [read_file, write_file]
---
You look around in {workspace}.
"""
TOOL_USE = {"calls": [{"name": "count_words", "arguments": {"text": "one two"}}], "usage": {"input": 90, "output": 9}}
READ = {"calls": [{"name": "read_file", "arguments": {"path": "README.md"}}], "usage": {"input": 100, "output": 10}}


class Dash(Protocol):
    port: int
    link: str

    def client(self, **headers: str) -> httpx.Client: ...


class Place(Protocol):
    @property
    def state(self) -> State: ...
    @property
    def workspace(self) -> Path: ...
    def run(self, *words: str) -> subprocess.CompletedProcess[str]: ...
    def script(self, name: str, turns: dict[str, Any]) -> str: ...
    def ids(self) -> list[str]: ...


@pytest.fixture(autouse=True)
def _browser_first(chromium: Browser) -> None:  # pyright: ignore[reportUnusedFunction]
    """Where there is no browser, nothing else need be started."""
    chromium.events.clear()


@pytest.fixture
def page(dash: Dash, chromium: Browser) -> Iterator[Page]:
    """A tab with the token, that must not complain, nor run what is text."""
    found = chromium.page(dash.link, 1360, 900)
    found.until("document.querySelector('h1')")
    yield found
    details = [each["exceptionDetails"] for each in found.heard("Runtime.exceptionThrown")]
    thrown = [each.get("exception", {}).get("description", each["text"]) for each in details]
    assert [] == thrown + [each["entry"]["text"] for each in found.heard("Log.entryAdded")]
    assert None is found.js("window.hit")


def go(page: Page, dash: Dash, where: str) -> None:
    page.goto(f"http://127.0.0.1:{dash.port}/#/{where}")


def told(page: Page, text: str, inside: str = "body") -> None:
    page.until(f"document.querySelector({json.dumps(inside)})?.innerText.includes({json.dumps(text)})")


def unnamed(page: Page) -> list[str]:
    """Controls a screen reader would have no name for."""
    controls = {"button", "textbox", "combobox", "checkbox", "tab", "link", "image"}
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in nodes if not node["ignored"] and node.get("role", {}).get("value") in controls]
    return [node["role"]["value"] for node in shown if not node.get("name", {}).get("value")]


def wide(page: Page) -> list[str]:
    """What sticks out of a narrow screen."""
    found: list[str] = page.js(
        """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
        .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll'))
        .map(e => `${e.tagName} ${e.className}`)"""
    )
    return found


def made(place: Place, name: str, *turns: dict[str, Any]) -> str:
    """A run on record; its id."""
    before = set(place.ids())
    place.run("run", "scout", f"Look {HOSTILE}", "--model", place.script(name, {"scout": list(turns)}), "--yes")
    (run,) = set(place.ids()) - before
    return run


def test_an_agent_is_edited_run_watched_and_saved(dash: Dash, place: Place, page: Page) -> None:
    """Faults stand at their lines; the draft runs with a tool of its own; three panes tell; a save shows its diff."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    (place.workspace / "agents" / "scout.md").write_text(AGENT)
    end = {"text": f"Two words. {HOSTILE}", "usage": {"input": 95, "output": 5}}
    place.script("trial.yaml", {"scout": [TOOL_USE, READ, READ, READ, end]})
    go(page, dash, "playground")
    told(page, "scout (agents/scout.md)", ".where")
    assert AGENT == page.js("document.querySelector('.editor textarea').value")

    page.type(".editor textarea", AGENT.replace("tools:", "toolz:"))
    told(page, "unknown key 'toolz'; did you mean 'tools'?", ".faults")
    told(page, "4:1", ".faults")
    assert "4" == page.js("document.querySelector('.gutter .wrong').textContent")
    page.click(".faults button", "4:1")
    assert "toolz" == page.js(
        "(() => { const e = document.activeElement; return e.value.slice(e.selectionStart, e.selectionEnd); })()"
    )
    page.type(".editor textarea", AGENT)
    page.until("!document.querySelector('.faults li')")

    page.click('[role="tab"]', "tools.py")
    page.click("button", "Begin with an example")
    page.click(".choices label", "count_words")
    page.click('[role="tab"]', "agent file")
    page.until("document.querySelector('.editor textarea').value.includes('write_file, count_words]')")
    page.type('[placeholder="offline/extract"]', "lab/fake")
    page.type('input[type="password"]', "sk-of-this-tab")
    page.type('[placeholder="offline/extract"]', "scripted/trial.yaml")
    page.until("!document.querySelector('input[type=\"password\"]')")
    assert "sk-of" not in page.js("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    page.type(".settings textarea", f"Count {HOSTILE}")
    assert [] == unnamed(page)
    page.until("!document.querySelector('.settings button.first').disabled")
    page.click("button", "Run")
    told(page, "asks to run count_words", ".trial")
    told(page, "waits for you: a1", '[aria-label="the loop"]')
    told(page, '"text": "one two"', '[aria-label="the tool call"]')
    page.click(".ask button", "Approve")
    page.until("document.querySelector('.trial .state.completed')")
    told(page, "same call, same result, 3 times", '[aria-label="the loop"]')
    told(page, "Two words.", '[aria-label="the loop"]')
    run = page.js("document.querySelector('.trial .state').dataset.run")
    told(page, "5 of 5", '[aria-label="the request"]')
    page.until("document.querySelector('.request details').textContent.includes('You look around in /')")
    page.click('[aria-label="the request"] button', "request before")
    told(page, "4 of 5", '[aria-label="the request"]')
    for _ in range(3):
        page.click('[aria-label="the tool call"] button', "call before")
    told(page, "2 words", '[aria-label="the tool call"]')
    told(page, "approved by you", '[aria-label="the tool call"]')

    page.click("button", "Save")
    told(page, "+tools: [read_file, write_file, count_words]", "dialog")
    told(page, "tools.py is not saved", "dialog")
    (place.workspace / "agents" / "scout.md").write_text(f"{AGENT}\nMine.\n")
    page.click("dialog button", "Save")
    told(page, "has changed meanwhile", '[role="status"]')
    page.click("button", "Save")
    told(page, "-Mine.", "dialog")
    page.click("dialog button", "Save")
    told(page, "saved as agents/scout.md", '[role="status"]')
    assert "count_words" in (place.workspace / "agents" / "scout.md").read_text()
    assert run in place.run("runs").stdout

    page.send("Page.reload")
    told(page, "completed", ".trial")
    assert "count_words" in page.js("document.querySelector('.editor textarea').value")


def test_edits_by_click_keep_each_other_and_what_is_typed(dash: Dash, place: Place, page: Page) -> None:
    """Two tools ticked one right after the other are both chosen; what is typed before an edit's answer stays."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    (place.workspace / "agents" / "scout.md").write_text(AGENT)
    go(page, dash, "playground")
    told(page, "2 chosen", ".settings legend")
    page.js(
        """(() => {
          const real = window.fetch;
          window.held = new Promise((done) => { window.letGo = done; });
          window.fetch = async (path, options) => {
            if (String(path).endsWith("/edit")) await window.held;
            return real(path, options);
          };
        })()"""
    )
    page.click(".choices label", "list_files")
    page.click(".choices label", "search_text")
    page.type(".editor textarea", AGENT + "And tell.\n")
    page.js("window.letGo()")
    page.until("document.querySelector('.editor textarea').value.includes('write_file, list_files, search_text]')")
    assert page.js("document.querySelector('.editor textarea').value").endswith("And tell.\n")
    told(page, "4 chosen", ".settings legend")


def test_a_run_of_the_playground_is_cancelled_by_its_button(dash: Dash, place: Place, page: Page) -> None:
    """Cancel ends the draft's run at once, and the page and the record say so."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    (place.workspace / "agents" / "scout.md").write_text(AGENT)
    place.script("stalls.yaml", {"scout": [{"stall": 60, "text": "late"}]})
    go(page, dash, "playground")
    page.type('[placeholder="offline/extract"]', "scripted/stalls.yaml")
    page.type(".settings textarea", "Wait")
    page.until("!document.querySelector('.settings button.first').disabled")
    page.send("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, modifiers=2)
    told(page, "thinking", '[aria-label="the loop"]')
    page.click(".trial button", "Cancel")
    page.until("document.querySelector('.trial .state.cancelled')")
    page.size(360, 900)
    page.dark(True)
    assert [] == wide(page)


def test_two_runs_stand_side_by_side(dash: Dash, place: Place, page: Page) -> None:
    """Compare shows what two runs were given, their numbers and calls lined up, and goes through the differences."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    (place.workspace / "agents" / "scout.md").write_text(AGENT)
    one = made(place, "one.yaml", READ, {"text": "Alike.\nOne."})
    two = made(
        place,
        "two.yaml",
        {"calls": [{"name": "read_file", "arguments": {"path": HOSTILE}}]},
        READ,
        {"text": "Alike.\nTwo."},
    )
    go(page, dash, f"compare/{one}/{two}")
    told(page, "Over time", ".compare")
    cells = page.js("[...document.querySelectorAll('.compare .given')].map(e => e.innerText).join('\\n')")
    assert "scripted/one.yaml" in cells
    assert ["+", "="] == page.js("[...document.querySelectorAll('.pairrow .mark')].map(e => e.textContent)")
    assert [2, 3] == page.js("[...document.querySelectorAll('.lane svg')].map(e => e.querySelectorAll('.turn').length)")
    assert ["-One.", "+Two."] == page.js(
        "[...document.querySelectorAll('.compare .taken, .compare .added')].map(e => e.textContent.trim())"
    )
    page.key("n", 78, "n")
    assert page.js("document.activeElement.innerText").startswith("≠ model")
    page.key("n", 78, "n")
    assert "+" == page.js("document.activeElement.querySelector('.mark').textContent")
    assert [] == unnamed(page)
    page.click("button", "Swap")
    page.until(f"document.querySelector('.compare h2').innerText.includes('{two}')")
    page.size(420, 900)
    assert [] == wide(page)


def test_what_was_spent_is_plotted_with_the_same_numbers_beside(dash: Dash, place: Place, page: Page) -> None:
    """The bars and the table of Runs show what the server counted, by model, by agent, as tokens and as cost."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    (place.workspace / "agents" / "scout.md").write_text(AGENT)
    made(place, "priced.yaml", {"text": "Yes.", "cost": 0.25, "usage": {"input": 4000, "output": 600}})
    with dash.client() as client:
        total = client.get("/api/usage").json()["total"]
    go(page, dash, "compare")
    told(page, "Compare", "h1")
    go(page, dash, "runs")
    page.until("document.querySelector('.plots canvas')")
    table = "document.querySelector('.spent').innerText"
    told(page, "scripted/priced.yaml", ".spent")
    assert "4.6k" in page.js(table)
    page.click(".plots button", "cost")
    told(page, "$0.25", ".spent tfoot")
    page.click(".plots button", "model calls")
    page.click(".plots button", "agent")
    told(page, "scout", ".spent")
    page.click(".plots button", "all")
    told(page, str(total["calls"]), ".spent tfoot")
    pixels = """(() => { const c = document.querySelector('.plots canvas');
      const own = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
      own.drawImage(c, 0, 0);
      const d = own.getImageData(0, 0, c.width, c.height).data; const found = new Set();
      for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) found.add(`${d[i]},${d[i + 1]},${d[i + 2]}`);
      return [...found]; })()"""
    assert "47,95,224" in page.js(pixels)
    page.dark(True)
    page.until(f"({pixels}).includes('134,168,255')")
    assert [] == unnamed(page)
