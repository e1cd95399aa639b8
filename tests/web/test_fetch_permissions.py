"""Rules over hosts: who may be fetched unasked, and which private ones at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime import WaitingForHuman, open_runtime
from runtime.events import ApprovalRequested, Event, ToolFinished
from runtime.grants import Grants
from runtime.permits import Permits
from runtime.policy.decision import Ceiling
from runtime.policy.rules import parse_permissions


@pytest.mark.parametrize(
    ("rules", "host", "unasked", "private"),
    [
        ({}, "a.org", False, False),
        ({"allow": ["fetch_url"]}, "a.org", True, False),
        ({"allow": ["fetch_url(*.a.org)"]}, "x.a.org", True, False),
        ({"allow": ["fetch_url(*.a.org)"]}, "a.com", False, False),
        ({"allow": ["fetch_url(localhost)"]}, "localhost", True, True),
        ({"allow": ["fetch_url(LOCALHOST)"]}, "localhost.", True, True),
        ({"allow": ["fetch_url(*)"]}, "localhost", True, False),
        ({"allow": ["fetch_url(localhost)"], "deny": ["fetch_url"]}, "localhost", False, True),
        ({"allow": ["fetch_url"], "ask": ["fetch_url(a.org)"]}, "a.org", False, False),
    ],
)
def test_only_a_rule_that_names_a_host_opens_a_private_one(
    rules: dict[str, Any], host: str, unasked: bool, private: bool
) -> None:
    """A wildcard never lets one into a private network; deny and ask hold as for every call."""
    permits = Permits(parse_permissions(**rules), Ceiling())
    assert (permits.may_fetch(host), permits.may_fetch_private(host)) == (unasked, private)


def test_no_network_and_yes_and_grants_count_for_redirects_too() -> None:
    """What decides about a call decides about where a redirect leads."""
    assert not Permits(parse_permissions(["fetch_url"]), Ceiling(network="none")).may_fetch("a.org")
    assert Permits(parse_permissions(), Ceiling(), yes=True).may_fetch("a.org")
    assert Permits(parse_permissions(), Ceiling(), grants=Grants(allowed={"fetch_url(a.org)"})).may_fetch("a.org")


async def test_a_run_fetches_what_its_rules_name(web: Any, tmp_path: Path) -> None:
    """With a rule that names it a private host is fetched; without one it fails, and a public one asks."""
    web.page("/p", "<title>T</title><p>hello")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "lead.md").write_text("---\nname: lead\ndescription: d\ntools: [fetch_url]\n---\nLead.\n")
    script = tmp_path / "script.yaml"
    state = str(tmp_path / "state")

    async def run(url: str, *allow: str) -> list[Event]:
        script.write_text(f"lead: [{{calls: [{{name: fetch_url, arguments: {{url: '{url}'}}}}]}}, done]\n")
        events: list[Event] = []
        async with (
            open_runtime(tmp_path, model=f"scripted/{script}", state=state) as runtime,
            runtime.run("lead", "t", allow=allow) as running,
        ):
            async for record in running.events():
                events.append(record.event)
            try:
                await running.report()
            except WaitingForHuman as waiting:
                assert "a1" in str(waiting)
        return events

    def finished(events: list[Event]) -> list[ToolFinished]:
        return [event for event in events if isinstance(event, ToolFinished)]

    (allowed,) = finished(await run(web.url("/p"), "fetch_url(127.0.0.1)"))
    assert allowed.result.endswith("title: T\n\nhello")
    assert allowed.data is not None
    assert allowed.data["status"] == 200
    (refused,) = finished(await run(web.url("/p"), "fetch_url"))
    assert refused.is_error
    assert "private network" in refused.result
    asked = [event for event in await run("https://example.org/x?y=z") if isinstance(event, ApprovalRequested)]
    assert [event.preview for event in asked] == [
        "GET https://example.org/x?y=z\nWhat is in the address goes to example.org."
    ]
    assert asked[0].always == ("fetch_url(example.org)",)
