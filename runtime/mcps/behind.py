"""Who is behind a call, for a server that asks back within it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from runtime.sampling import Sample, SampleRequest


class Behind(Protocol):
    """A human and a model. Each raises ToolError where it has nothing to say; a cancelled call leaves nothing open."""

    async def ask(self, text: str, options: Sequence[str] = ()) -> str:
        """A human's answer."""
        ...

    async def sample(self, request: SampleRequest) -> Sample:
        """A reply of the model."""
        ...
