"""Providers that are no servers: what they say comes out without the secrets this process knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.known import ModelFlags
from runtime.messages import Text, UserMessage
from runtime.model import ModelRequest, ProviderError
from runtime.models import Models

KEY = "sk-planted-key-0123456789abcdef"
SCRIPT = f"""\
poet:
  - text: "it says {KEY}"
    calls: [{{name: read_file, arguments: {{path: "{KEY}"}}}}]
  - fail: {{kind: provider, message: "no {KEY} here", times: 9}}
"""


def request(turn: int) -> ModelRequest:
    return ModelRequest("x", (), (UserMessage("go"),), agent="poet", actor="poet", turn=turn)


async def test_a_provider_handed_over_tells_no_secret(tmp_path: Path) -> None:
    """Neither the pieces of a reply put together, nor the reply, nor an error hold one."""
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    name = f"scripted/{script}"
    provider = Models(ModelFlags(name), environment={"LAB_TOKEN": KEY}).resolve(name).provider
    pieces: list[str] = []
    reply = await provider.complete(request(0), lambda deltas: pieces.extend(delta.text for delta in deltas))
    assert "it says [redacted]" in "".join(pieces)
    assert KEY not in "".join(pieces)
    assert Text("it says [redacted]") == reply.parts[0]
    assert KEY not in repr(reply)
    with pytest.raises(ProviderError) as failed:
        await provider.complete(request(1), lambda deltas: None)
    assert KEY not in str(failed.value)
