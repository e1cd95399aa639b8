"""A command hook hears of a compaction before the history is shortened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from runtime import config
from runtime.events import ContextCompacted, HookFinished
from runtime.model import ModelRequest

if TYPE_CHECKING:
    from tests.context.conftest import Model as Lab
    from tests.context.conftest import Small


async def test_a_command_hook_runs_before_a_history_is_shortened(small: Small, Model: type[Lab], call: Any) -> None:
    """The hook's command is told why and of how many messages, once for each compaction, and before it."""
    told = small.folder / "told.jsonl"
    program = small.folder / "note.py"
    program.write_text(f"import sys\nopen({str(told)!r}, 'a').write(sys.stdin.read().strip() + '\\n')\n")
    small.hooks = list(config.read(f"hooks: {{compaction: python3 -I -S {program}}}\n", "elenco.yaml").hooks)

    @small.tool(effects="none", private=True)
    async def look(at: int) -> str:
        """Look at a page."""
        return f"page {at} " * 300

    def answer(request: ModelRequest) -> Any:
        return call("look", at=request.turn) if request.turn < 24 else "done"

    small.model = Model(answer)
    report = await small.run()
    assert report.status == "completed"
    events = [event for event in small.events if isinstance(event, (ContextCompacted, HookFinished))]
    assert len(small.compactions) >= 2
    assert [HookFinished, ContextCompacted] * len(small.compactions) == [type(event) for event in events]
    heard = [json.loads(line) for line in told.read_text().splitlines()]
    assert [event.why for event in small.compactions] == [each["why"] for each in heard]
    assert all(each["messages"] > 2 and each["trigger"] == "auto" for each in heard)
