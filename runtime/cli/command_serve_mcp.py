"""`elenco serve-mcp`: the agents of this workspace as tools for other programs that speak MCP."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from runtime.cast import find
from runtime.errors import ElencoError, UsageError, first_of
from runtime.known import TOOL_NAMES, ModelFlags
from runtime.outline import RunOptions, outline
from runtime.workplace import check_workspace

from .command_run import flag_limits

TOKEN = "ELENCO_MCP_TOKEN"


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves, or Ctrl-C. Raises UsageError, DefinitionError."""
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    cast = find(workspace)
    usable = [name for name, each in cast.members.items() if each.definition is not None]
    agents = {name: cast.get(name) for name in arguments.agents or usable}
    model = ModelFlags(arguments.model, arguments.base_url, arguments.wire)
    limits = flag_limits(arguments)
    for name in agents:  # what is wrong with one is told now, not to the first who calls it
        seen = outline(
            RunOptions(
                agent=name, task="-", model=model, workspace=workspace, limits=limits, allow=tuple(arguments.allow)
            ),
            tools=TOOL_NAMES,
        )
        seen.refuse_unpriced()
        if seen.notice:
            print(seen.notice, file=sys.stderr)
            break
    if arguments.port is not None and not 0 <= arguments.port < 65536:
        raise UsageError("--port is a number from 0, for any that is free, to 65535")

    import trio

    from runtime.journal.folder import open_state
    from runtime.library import Runtime
    from runtime.mcps.cast_server import Terms, cast_server, serve_http, serve_pipes

    from .interrupted import until_interrupted

    runtime = Runtime(workspace, (), model, {}, open_state(arguments.state))
    server = cast_server(runtime, agents, Terms(limits, tuple(arguments.allow), arguments.yes))
    if arguments.port is None:
        serve = partial(serve_pipes, server)
    else:
        serve = partial(serve_http, server, arguments.port, os.environ.get(TOKEN, ""), _tell)
    try:
        return 130 if trio.run(until_interrupted, serve) else 0
    except BaseExceptionGroup as group:
        if (taken := first_of(group, OSError)) is not None and arguments.port:
            raise ElencoError(f"cannot listen at port {arguments.port}: {taken.strerror}") from None
        raise
    except OSError as error:
        raise ElencoError(f"cannot listen at port {arguments.port}: {error.strerror}") from None


def _tell(address: str) -> None:
    guarded = "" if os.environ.get(TOKEN) else f"   any program of this machine may call it; {TOKEN} sets a token"
    print(f"serving at {address}   Ctrl-C ends it{guarded}", file=sys.stderr, flush=True)
