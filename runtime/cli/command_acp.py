"""`elenco acp`: an agent of this cast for editors, over standard input and output."""

from __future__ import annotations

import argparse
import sys

from runtime.errors import UsageError
from runtime.outline import RunOptions

from .command_run import flag_limits, model_flags


def run(arguments: argparse.Namespace) -> int:
    """Serve one editor until it leaves. Raises UsageError."""
    if sys.stdin.isatty():
        raise UsageError("an editor starts this and talks to it over its pipes: give it the command `elenco acp`")
    options = RunOptions(
        agent=arguments.agent or "coordinator",
        task="-",
        model=model_flags(arguments),
        limits=flag_limits(arguments),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        mode=arguments.mode or "default",
        sandbox=arguments.sandbox,
    )
    import trio

    from runtime.editor.agent import EditorAgent
    from runtime.journal.folder import open_state
    from runtime.pipes import pipes

    from .interrupted import until_interrupted

    state = open_state(arguments.state)

    async def serve() -> None:
        async with pipes() as (send, receive):
            await EditorAgent(send, receive, options, state).serve()

    return 130 if trio.run(until_interrupted, serve) else 0
