"""The real dashboard in a real browser over live runs: every button, the same counts as the journal, and no way in.

One browser for the module; each test has a tab with storage of its own.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

import pytest

from bench.browser import Browser, Page
from bench.scene import HOSTILE, prepare
from runtime.journal.folder import State
from runtime.journal.read import RunReader
from runtime.watch.lines import line


class Dash(Protocol):
    port: int
    token: str
    link: str


class Place(Protocol):
    state: State
    workspace: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]: ...
    def live(self, *words: str) -> contextlib.AbstractContextManager[tuple[str, subprocess.Popen[str]]]: ...
    def script(self, name: str, turns: dict[str, Any]) -> str: ...


@pytest.fixture(autouse=True)
def _browser_first(chromium: Browser) -> None:  # pyright: ignore[reportUnusedFunction]
    """Where there is no browser, nothing else need be started."""
    chromium.events.clear()


def journal(place: Place, run: str) -> list[dict[str, Any]]:
    with RunReader(place.state.run(run)) as reader:
        return [json.loads(line(record, run)) for record in reader.records()]


def told(page: Page, text: str, inside: str = "body") -> None:
    """Wait until a text stands on the page."""
    page.until(f"document.querySelector({json.dumps(inside)})?.innerText.includes({json.dumps(text)})")


def tab(page: Page, name: str) -> None:
    page.click('[role="tab"]', name)
    page.until(f"document.querySelector('[role=\"tab\"][aria-selected=\"true\"]').textContent.startsWith('{name}')")


def complaints(page: Page) -> list[str]:
    """What the browser's console has said of faults and refused content."""
    details = [each["exceptionDetails"] for each in page.heard("Runtime.exceptionThrown")]
    thrown = [each.get("exception", {}).get("description", each["text"]) for each in details]
    entries = [each["entry"] for each in page.heard("Log.entryAdded")]
    return thrown + [each["text"] for each in entries if each["source"] != "network"]


def unnamed(page: Page) -> list[str]:
    """Controls that a screen reader would have no name for."""
    wanted = {
        "button",
        "textbox",
        "searchbox",
        "combobox",
        "slider",
        "checkbox",
        "tab",
        "link",
        "meter",
        "image",
        "list",
        "log",
    }
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if not node["ignored"] and node.get("role", {}).get("value") in wanted and not node.get("name", {}).get("value")
    ]


def test_a_live_run_is_watched_steered_and_brought_to_its_end(dash: Dash, place: Place, chromium: Browser) -> None:
    """A live run is watched and steered (edit, approve, say, hold, limits, cancel one actor); the counts are right."""
    model = prepare(place.workspace, hostile=HOSTILE)
    with place.live("Write release notes " + HOSTILE, "--model", model) as (run, process):
        page = chromium.page(dash.link)
        told(page, "Write release notes", "table.runs")
        assert "#/runs" == page.js("location.hash")
        page.click("a", run)

        # The loop's actor has an alarm, the one that asks is said to wait for us.
        told(page, "waits for you: a1", ".tree")
        told(page, "stopped: loop", ".tree")
        assert "researcher-1 !" in page.js("document.querySelector('.tree').innerText")

        # The diff is coloured; a draft that is no JSON is refused here, a sound one is what gets written.
        assert page.js("document.querySelectorAll('.ask .added').length") >= 3
        page.click(".ask button", "Edit")
        page.type(".ask textarea", "{no")
        page.click(".ask button", "Approve as edited")
        told(page, "this is no JSON", ".ask")
        page.type(".ask textarea", json.dumps({"path": "docs/notes.md", "content": "edited by hand\n"}))
        page.click(".ask button", "Approve as edited")
        page.until("!document.querySelector('.ask')")
        page.until("document.querySelector('.node.lit')?.innerText.includes('writer-1')")
        assert "edited by hand\n" == (place.workspace / "docs" / "notes.md").read_text()

        # Say, hold and continue, other limits: to the writer, by the keyboard where one may.
        page.click(".who", "writer-1")
        page.type(".steer textarea", "Be brief " + HOSTILE)
        page.click(".steer button", "Say")
        told(page, "say: done", ".said")
        tab(page, "Messages")
        told(page, "says: Be brief", ".sequence")
        page.click(".steer button", "Hold writer-1")
        page.click(".steer button", "Continue writer-1")
        told(page, "Hold writer-1", ".steer")
        page.type(".limits input", "+5")
        page.until("!document.querySelector('.limits button').disabled")
        page.js("(() => { const set = document.querySelector('.limits button'); set.click(); set.click(); })()")
        told(page, "0 of 15", ".budgets")
        page.until("document.querySelector('.limits button').disabled")  # both have their answer
        page.type(".limits input", "many")
        page.click(".limits button", "Set limit")
        told(page, "max_steps must be a number", ".said")
        page.click(".head button", "Hold run")
        page.click(".head button", "Continue run")
        page.until("[...document.querySelectorAll('.head button')].some((b) => b.textContent === 'Hold run')")

        # Cancel the writer alone: the coordinator has its report and ends by itself.
        page.click(".steer button", "Cancel writer-1")
        page.click(".steer button", "Yes, cancel writer-1")
        page.until("document.querySelector('.head .state.completed')")
        assert 0 == process.wait(60)

        # The page and the journal count the same; a button that was pressed twice has counted once.
        kept = journal(place, run)
        assert [15] == [each["limits"]["max_steps"] for each in kept if each["type"] == "limits.changed"]
        (row,) = [each for each in json_lines(place.run("runs", "--json")) if each["id"] == run]
        page.until(f"document.querySelector('.scrub .where').textContent.startsWith('{len(kept)} of {len(kept)}')")
        facts = page.js("document.querySelector('.head .facts').innerText")
        assert f"{row['steps']} steps · {row['tokens'] / 1000:.1f}".removesuffix(".0") + "k tokens" in facts
        tab(page, "Alerts")
        alerts = [each for each in kept if each["type"].startswith("loop.")]
        assert len(alerts) == page.js("document.querySelectorAll('.alert').length")
        page.js("document.querySelectorAll('.alert details').forEach((each) => (each.open = true))")
        assert page.js("document.querySelectorAll('.alert:last-of-type .evidence li').length") >= 3
        tab(page, "Events")
        page.until("document.querySelector('.event')")

        # Back through time: as it was when the approval stood open, with nothing to press; and to now again.
        asked = next(each["seq"] for each in kept if each["type"] == "approval.requested")
        page.js(
            f"""(() => {{ const slider = document.querySelector('.scrub input'); slider.value = {asked};
            slider.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"""
        )
        told(page, f"as it was after event {asked}", ".head")
        assert page.js("document.querySelector('.ask') !== null && !document.querySelector('.ask button.first')")
        page.key("[")
        page.until("!document.querySelector('.ask')")
        page.key("]")
        page.until("document.querySelector('.ask')")
        page.click(".scrub button", "Now")
        page.until("document.querySelector('.head .state.completed')")

        # Through the actors by keys: one up, and down again to the writer.
        chosen = "document.querySelector('.card.actor h2').textContent"
        assert page.js(chosen).startswith("writer-1")
        page.key("k")
        page.until(f"!{chosen}.startsWith('writer-1')")
        page.key("j")
        page.until(f"{chosen}.startsWith('writer-1')")

        # What is taken away is what is on record.
        page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(place.workspace))
        page.click(".head button", "Export events")
        file = place.workspace / f"{run}.jsonl"
        give_up = time.monotonic() + 60
        while not file.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        assert kept == [json.loads(each) for each in file.read_text().splitlines()]

        # Whatever was said in markup is on the page as text, and did nothing.
        page.click(".who", "coordinator")
        tab(page, "Conversation")
        page.click(".check input")
        page.until("document.querySelector('.item')")
        page.js("document.querySelector('.pane .virtual').scrollTop = 0")
        told(page, HOSTILE, ".pane")
        for name in ("Timeline", "Messages", "Alerts", "Events"):
            tab(page, name)
        assert page.js("window.owned") is None
        assert 0 == page.js("document.querySelectorAll('main img, main script, [onerror]').length")
        assert [] == complaints(page)
        assert [] == unnamed(page)


def test_calls_are_denied_with_a_reason_questions_answered_and_a_run_cancelled(
    dash: Dash, place: Place, chromium: Browser
) -> None:
    """Calls are approved and denied with a typed reason, questions answered, and the run cancelled, from the page."""
    (place.workspace / "agents").mkdir(exist_ok=True)
    head = "name: asker\ndescription: asks\ntools: [write_file, ask_user]"
    (place.workspace / "agents" / "asker.md").write_text(f"---\n{head}\n---\nAsk.\n")

    def write(path: str) -> dict[str, Any]:
        return {"calls": [{"name": "write_file", "arguments": {"path": path, "content": "x\n"}}]}

    asking = {"name": "ask_user", "arguments": {"question": "Which one?", "options": ["left", "right"]}}
    turns = [write("one.txt"), write("one.txt"), write("two.txt"), {"calls": [asking]}, {"stall": 600, "text": "never"}]
    model = place.script("asker.json", {"asker": turns})
    with place.live("asker", "do it", "--model", model) as (run, process):
        page = chromium.page(f"{dash.link}&/run/{run}")
        told(page, "a1", ".ask")
        page.key("a")
        assert "Approve" == page.js("document.activeElement.textContent")
        page.click(".ask button", "In this run")
        told(page, "a2", ".ask")  # the same call once more is allowed without a word
        assert (place.workspace / "one.txt").exists()
        page.type(".ask form input", "not there")
        page.click(".ask button", "Deny")
        told(page, "Which one?", ".ask")
        assert not (place.workspace / "two.txt").exists()
        page.click(".ask button", "right")
        page.until("document.querySelector('.node.lit')")
        page.click(".head button", "Cancel run")
        page.click(".head button", "Yes, cancel the run")
        page.until("document.querySelector('.head .state.cancelled')")
        assert 130 == process.wait(60)
        kept = journal(place, run)
    denied = next(each for each in kept if each.get("decision") == "deny")
    assert ("not there", "you") == (denied["why"], denied["by"])
    assert ["right"] == [each["answer"] for each in kept if each["type"] == "question.answered"]
    assert [] == complaints(page)


def test_a_run_that_nobody_works_on_takes_decisions_for_its_next_process(
    dash: Dash, place: Place, chromium: Browser
) -> None:
    """A run that waits with no process takes a decision for its next one; the page follows it when it goes on."""
    turns = [
        {"calls": [{"name": "write_file", "arguments": {"path": "late.txt", "content": "x\n"}}]},
        {"text": "Done."},
    ]
    model = place.script("late.json", {"coordinator": turns})
    assert 4 == place.run("run", "late", "--model", model).returncode
    page = chromium.page(dash.link)
    page.click(".runs tbody tr:first-child a")
    page.click(".ask button", "Approve")
    told(page, "recorded: it counts when the run goes on", ".said")
    page.until("!document.querySelector('.ask')")
    run = page.js("location.hash.slice(6)")
    resumed = place.run("resume", run)
    assert 0 == resumed.returncode, resumed.stderr
    page.until("document.querySelector('.head .state.completed')")
    assert (place.workspace / "late.txt").exists()
    assert [] == complaints(page)


DROPS = """(() => {
  const real = window.fetch;
  let size = 1000;
  window.dropped = 0;
  window.fetch = async (path, options) => {
    const answer = await real(path, options);
    if (!String(path).includes("/events?")) return answer;
    const reader = answer.body.getReader();
    let left = (size = size > 60_000 ? 6000 : size * 2);
    return new Response(new ReadableStream({
      async pull(out) {
        const { done, value } = await reader.read();
        if (done) return out.close();
        const part = value.slice(0, left);
        left -= part.length;
        if (part.length) out.enqueue(part);
        if (left <= 0) {
          window.dropped += 1;
          reader.cancel();
          out.error(new TypeError("the connection was dropped"));
        }
      },
    }), { status: answer.status, headers: answer.headers });
  };
})()"""


def test_no_event_is_lost_or_doubled_over_dropped_connections(dash: Dash, place: Place, chromium: Browser) -> None:
    """No event is lost or doubled though the connection drops again and again, in the middle of lines too."""
    assert 0 == place.run("run", "How are words split?").returncode
    run = next(each["id"] for each in json_lines(place.run("runs", "--json")) if each["state"] == "completed")
    page = chromium.page(dash.link)
    told(page, run)
    page.send("Page.addScriptToEvaluateOnNewDocument", source=DROPS)
    page.js(f"location.hash = '#/run/{run}'")
    page.send("Page.reload")
    page.until("window.dropped > 1 && document.querySelector('.state.completed')")
    kept = journal(place, run)
    found = page.js(
        f"""import("/api.js").then(({{follow}}) => new Promise((done) => {{
          const all = [];
          const end = follow({json.dumps(run)}, {{
            events: (events) => all.push(...events), state() {{}}, reached() {{ end(); done(all); }},
          }});
        }}))"""
    )
    assert kept == found
    assert page.js("window.dropped") >= 4
    tab(page, "Events")
    page.until(f"document.querySelector('.scrub input').max === '{len(kept)}'")


def test_a_page_of_another_origin_or_name_gets_nothing(dash: Dash, place: Place, chromium: Browser) -> None:
    """A page of another origin, or of a name that leads here, reads nothing, steers nothing and shows nothing."""
    model = place.script("wait.json", {"coordinator": [{"stall": 600, "text": "never"}]})
    with place.live("wait", "--model", model) as (run, process), elsewhere() as port:
        ours = f"http://127.0.0.1:{dash.port}"
        page = chromium.page(f"http://127.0.0.1:{port}/")
        told(page, "somebody else")
        tries: list[tuple[str, dict[str, Any]]] = [
            ("/api/runs", {}),
            ("/api/runs", {"headers": {"authorization": f"Bearer {dash.token}"}}),
            (f"/api/runs/{run}/commands", {"method": "POST", "body": '{"op": "cancel"}'}),
            (
                f"/api/runs/{run}/commands",
                {"method": "POST", "body": '{"op": "cancel"}', "headers": {"content-type": "application/json"}},
            ),
        ]
        for path, options in tries:
            asked = f"fetch({json.dumps(ours + path)}, {json.dumps(options)}).then((a) => a.text(), () => 'refused')"
            assert "refused" == page.js(asked), options
        blind = {"method": "POST", "body": '{"op": "cancel"}', "mode": "no-cors", "credentials": "include"}
        path = f"{ours}/api/runs/{run}/commands"
        assert "refused" == page.js(
            f"fetch({json.dumps(path)}, {json.dumps(blind)}).then((a) => a.type, () => 'refused')"
        )
        page.js(
            f"""new Promise((done) => {{
              const frame = document.createElement("iframe");
              frame.onload = done;
              frame.src = {json.dumps(ours)};
              document.body.append(frame);
            }})"""
        )
        assert any("frame-ancestors" in text for text in complaints(page))
        assert process.poll() is None

        named = chromium.page(f"http://rebound.test:{dash.port}/")
        told(named, "its own address only")
        locked = chromium.page(f"{ours}/")
        told(locked, "This page has no key")
        assert "cookie" not in json.dumps(locked.js("document.cookie"))
        locked.type("input", f"{ours}/#t={dash.token}")
        locked.key("Enter", 13, "\r")
        told(locked, run)


@pytest.mark.parametrize("name", ["50%", "", "a/b"])
def test_an_address_that_names_no_run_is_a_run_nobody_has(dash: Dash, chromium: Browser, name: str) -> None:
    """An address that names no run, such as a lone %, nothing or a path, is a run nobody has, not an empty page."""
    page = chromium.page(f"{dash.link}&/run/{name}")
    told(page, f"no run '{name}'")
    assert complaints(page) == []


def test_a_run_that_is_deleted_while_its_page_is_open_is_not_to_be_steered_any_more(
    dash: Dash, place: Place, chromium: Browser
) -> None:
    """A run that is deleted while its page is open says so, and nothing that would steer it stays."""
    asking = {"calls": [{"name": "write_file", "arguments": {"path": "never.txt", "content": "x\n"}}]}
    model = place.script("gone.json", {"coordinator": [asking]})
    assert 4 == place.run("run", "soon gone", "--model", model).returncode
    page = chromium.page(dash.link)
    page.click(".runs tbody tr:first-child a")
    page.until("document.querySelector('.ask button')")
    told(page, "Hold run", ".head")
    assert 0 == place.run("delete", page.js("location.hash.slice(6)")).returncode
    told(page, "has been deleted", ".head")
    assert "Hold run" not in page.js("document.querySelector('.head').innerText")
    assert 0 == page.js("document.querySelectorAll('.ask button.first, .steer, .head .bad, .head code').length")


def test_the_list_filters_and_the_pages_fit_a_narrow_screen_in_light_and_dark(
    dash: Dash, place: Place, chromium: Browser
) -> None:
    """The list filters by words, state and agent; the pages fit a narrow screen, light and dark; all has a name."""
    page = chromium.page(dash.link)
    page.until("document.querySelectorAll('.runs tbody tr').length >= 2")
    page.key("/")
    page.send("Input.insertText", text="release notes")
    page.until("document.querySelectorAll('.runs tbody tr').length === 1")
    page.type("#words", "")
    page.key("Backspace", 8)
    page.js(
        """(() => {
          const states = document.querySelector("[aria-label=state]");
          states.value = "cancelled";
          states.dispatchEvent(new Event("change", { bubbles: true }));
        })()"""
    )
    page.until(
        "[...document.querySelectorAll('tbody .state')].every((each) => each.textContent.startsWith('cancelled'))"
    )
    page.until("document.querySelectorAll('.runs tbody tr').length >= 1")
    assert [] == unnamed(page)
    ground = "getComputedStyle(document.body.parentElement).backgroundColor"
    light = page.js(ground)
    page.dark(True)
    assert light != page.js(ground)
    page.click("header button")  # from auto to light
    page.until(f"{ground} === {json.dumps(light)}")
    page.size(390, 800)
    assert page.js("document.documentElement.scrollWidth") <= 390
    page.click(".runs tbody a")
    page.until("document.querySelector('.item')")
    for name in ("Timeline", "Messages", "Alerts", "Events", "Conversation"):
        tab(page, name)
        assert page.js("document.documentElement.scrollWidth") <= 390, name
    assert [] == complaints(page)


def json_lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(each) for each in done.stdout.splitlines()]


@contextlib.contextmanager
def elsewhere() -> Generator[int]:
    """A server of somebody else's on this machine."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><body>a page of somebody else</body>")

        def log_message(self, format: str, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
