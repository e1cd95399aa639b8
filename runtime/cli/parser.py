"""The words of the command line: one table of commands, each with its flags and examples."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from runtime.errors import UsageError, did_you_mean

from . import flags, flags_cast, flags_record, flags_steering, flags_work
from .visible import one_line
from .words import Words, flag_without_value, too_much

if TYPE_CHECKING:
    from runtime.plugins import PluginCommand

Command: TypeAlias = Callable[[argparse.Namespace], int]

HELP = """\
Elenco: a cast of agents whose runs always end.

Try first
  elenco run "What does this project do?"          no key needed: quotes your files
  elenco run coordinator "Write release notes" --max-steps 40 --cost-budget 0.50
  elenco runs                                      what ran, how it ended, what to type next

Run        run [AGENT] "TASK"   chat   resume RUN   cancel RUN
Steer      approve | deny | answer RUN ID   say RUN "TEXT"   hold | continue | limits RUN
Look       runs   show RUN   tail RUN --follow   dash   rename RUN NAME   delete RUN
Go back    undo RUN   fork RUN --at SEQ   run --continue RUN "TASK"   import FILE   runs --prune
Cast       agents   skills   models   tools   mcp   memory   check [PATH...]   init   trust   doctor   debug FAMILY
Serve      serve-mcp   acp

Model      --model anthropic/NAME | openai/NAME | openrouter/NAME | ollama/NAME | offline/extract
           --base-url URL --wire openai-chat    any compatible server
Limits     --max-steps N  --total-steps N  --token-budget N  --cost-budget USD  --timeout SECONDS
Rules      --allow RULE  --ask RULE  --deny RULE  --yes  --no-input
Output     --json  --quiet  --output FILE  --output-schema FILE  --detach

Exit codes 0 completed  1 failed  2 usage  3 stopped by a limit or the loop guard
           4 waiting for a human  130 cancelled
More       elenco COMMAND --help      elenco --version"""


def _debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", metavar="FAMILY", help=", ".join(DEBUG))


DEBUG = {
    "stream": "wire",
    "names": "wire",
    "schema": "wire",
    "guard": "guard",
    "path": "path",
    "shell": "shell",
    "skill": "skill",
    "agent": "agent",
}
"""The families of `elenco debug`, with the module (`debug_…`) in which each is a function of its name."""

Spec: TypeAlias = tuple[Callable[[argparse.ArgumentParser], None], str, str]

COMMANDS: dict[str, Spec] = {
    "run": (
        flags_work.run,
        "Give an agent a task and print its answer.",
        'elenco run "What does this project do?"\n'
        'elenco run researcher --model ollama/qwen3 "Where are paths checked?"\n'
        "git diff | elenco run reviewer - --max-steps 10\n"
        'elenco run --continue k7f2 "And who calls it?"\n'
        'elenco run --output-schema answer.json "List the public functions" | jq .functions\n'
        'RUN=$(elenco run --detach "Write release notes") && elenco tail $RUN --follow',
    ),
    "chat": (
        flags_work.chat,
        "Talk with an agent on the whole screen, or line by line. /help lists its commands; Ctrl-C cancels the turn, "
        "Ctrl-Q leaves (Ctrl-D in the line mode).",
        "elenco chat\nelenco chat reviewer --model anthropic/claude-sonnet-5-5\nelenco chat --resume k7f2\n"
        "elenco chat --plain",
    ),
    "resume": (
        flags_work.resume,
        "Go on with a run that stopped.",
        "elenco resume k7f2\nelenco resume k7f2 --max-steps +20\n"
        "elenco resume k7f2 --model anthropic/claude-sonnet-5-5\n"
        "elenco resume k7f2 --detach && elenco tail k7f2 --follow",
    ),
    "runs": (
        flags_record.runs,
        "List all runs, newest first.",
        "elenco runs\nelenco runs --check\nelenco runs --prune --older-than 14 --keep 20 --yes",
    ),
    "show": (
        flags_record.show,
        "Show a run: answer, actors, what each did and spent.",
        "elenco show k7f2 --format md\nelenco show k7f2 --context",
    ),
    "tail": (
        flags_record.tail,
        "Print a run's events, live ones too.",
        "elenco tail k7f2 --follow --json\nelenco tail k7f2 --from -3",
    ),
    "approve": (
        flags_steering.approve,
        "Allow a call that waits for you.",
        'elenco approve m3qa a1 && elenco resume m3qa\nelenco approve m3qa a1 --arguments "$(cat edited.json)"',
    ),
    "deny": (
        flags_steering.deny,
        "Refuse a call that waits for you.",
        'elenco deny m3qa a1 --why "use docs/notes.md instead"',
    ),
    "answer": (
        flags_steering.answer,
        "Answer a question that an agent has put to you.",
        'elenco answer m3qa q1 "in docs/"',
    ),
    "say": (
        flags_steering.say,
        "Tell an agent something; it reads it at its next step.",
        'elenco say k7f2 "Only look in docs/"\nelenco say k7f2 "Stop" --actor coordinator/researcher-1 --interrupt',
    ),
    "hold": (
        flags_steering.of_actor,
        "Let everybody in a run, or one actor, stop before the next step; clocks stand still meanwhile.",
        "elenco hold k7f2\nelenco hold k7f2 --actor coordinator/researcher-1",
    ),
    "continue": (flags_steering.of_actor, "Let everybody who is held, or one actor, go on.", "elenco continue k7f2"),
    "limits": (
        flags_steering.limits,
        "Show what a run has used of its limits, or change them while it works.",
        "elenco limits k7f2\nelenco limits k7f2 --max-steps +20 --timeout 1200\n"
        "elenco limits k7f2 --actor coordinator/researcher-1 --token-budget +50000",
    ),
    "compact": (
        flags_steering.one_actor,
        "Make an agent's conversation smaller before its next request, full window or not.",
        "elenco compact k7f2\nelenco compact k7f2 --actor coordinator/writer-1",
    ),
    "cancel": (
        flags_steering.of_actor,
        "Cancel a live run, or one actor of it.",
        "elenco cancel k7f2\nelenco cancel k7f2 --actor coordinator/researcher-1",
    ),
    "agents": (flags.workspace, "List the agents that can be found, and where each is from.", "elenco agents"),
    "skills": (
        flags_cast.skills,
        "List the skills that can be found, or keep a lesson for one.",
        'elenco skills\nelenco skills note code-review "Look at the migrations first"\n'
        "elenco skills note code-review --drop 1",
    ),
    "memory": (
        flags_cast.memory,
        "What is remembered from run to run: search it, put it right, forget it.",
        'elenco memory\nelenco memory list "deploy key"\nelenco memory add "Release notes are in German" --user\n'
        'elenco memory edit 12\nelenco memory edit 12 "Tests need Python 3.12"\nelenco memory forget 12 15\n'
        "elenco memory forget --run k7f2 --yes",
    ),
    "models": (
        flags_cast.models,
        "List providers, whether a key is set, models with window and prices.",
        "elenco models",
    ),
    "tools": (flags_cast.tools, "List the tools, or what one agent really gets.", "elenco tools --agent researcher"),
    "mcp": (
        flags_cast.mcp,
        "List the MCP servers that are named here, look at their tools, call one by hand.",
        'elenco mcp\nelenco mcp tools time\nelenco mcp call time get_current_time \'{"timezone": "Europe/Lisbon"}\'',
    ),
    "dash": (
        flags_record.dash,
        "Watch and steer all runs of this machine in a browser.",
        "elenco dash --open\nelenco dash --port 8900",
    ),
    "serve-mcp": (
        flags_work.serve_mcp,
        "Offer agents as MCP tools, one for each: over the pipes, or over HTTP on this machine.",
        "elenco serve-mcp\nelenco serve-mcp researcher reviewer --workspace ~/notes --max-steps 30\n"
        "elenco serve-mcp --port 8765",
    ),
    "acp": (
        flags_work.acp,
        "An agent for editors that speak the Agent Client Protocol; the editor starts it.",
        "elenco acp\nelenco acp writer --model anthropic/claude-sonnet-5-5 --mode accept-edits",
    ),
    "check": (
        flags_cast.check,
        "Check agent files and settings: every fault with file and line.",
        "elenco check agents/writer.md\nelenco check --effective",
    ),
    "init": (
        flags_cast.init,
        "Put a starter here: one agent and the settings, with comments.",
        "elenco init\nelenco init my-cast",
    ),
    "trust": (
        flags_cast.trust,
        "Let this workspace's allow rules, hooks, MCP servers and Python count, after showing them.",
        "elenco trust --show\nelenco trust\nelenco trust --revoke",
    ),
    "doctor": (flags_cast.doctor, "What this machine offers and lacks, and how to connect a model.", "elenco doctor"),
    "rename": (flags_record.rename, "Give a run a name, to find it by.", "elenco rename k7f2 release-notes"),
    "delete": (
        flags_record.delete,
        "Remove runs and everything kept of them; not one that is live.",
        "elenco delete k7f2 m3qa",
    ),
    "fork": (
        flags_record.fork,
        "Copy a run up to an event, to go on from there in another way.",
        "elenco resume $(elenco fork k7f2 --at 120)",
    ),
    "import": (
        flags_record.import_,
        "Take in a run that was written with elenco show --format jsonl.",
        "elenco show k7f2 --format jsonl > k7f2.jsonl\nelenco import k7f2.jsonl",
    ),
    "undo": (
        flags_record.undo,
        "Put the files a run has changed back as they were; none of them if one has changed since.",
        "elenco undo k7f2\nelenco undo k7f2 --to 120",
    ),
    "debug": (
        _debug,
        "Why was this decided? JSON lines in, JSON lines out.",
        "elenco debug guard < steps.jsonl\nelenco debug stream < cases.jsonl",
    ),
}


STEERING = frozenset({"approve", "deny", "answer", "say", "hold", "continue", "compact", "cancel"})


def parse(words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """The command a line asks for, with its flags. Raises UsageError."""
    words = list(words)
    if len(words) > 1 and words[0] == "--state":
        words = [*words[2:3], *words[:2], *words[3:]]
    if not words or words[0] == "--state":
        return _module("welcome"), argparse.Namespace(state=words[1] if len(words) > 1 else None)
    if words[0] == "help" and len(words) > 1:
        words = [words[1], "--help"]
    if words[0] in ("--help", "-h", "help"):
        return _help, argparse.Namespace()
    if words[0] in ("--version", "-V"):
        return _module("version"), argparse.Namespace()
    name = words[0]
    spec = COMMANDS.get(name)
    if spec is None:
        what = "flag" if name.startswith("-") else "command"
        if not name.startswith("-") and (added := _added(name)) is not None:
            return (lambda _: added.run(words[1:]) or 0), argparse.Namespace()
        if " " in name:
            raise UsageError(f'a task needs its command: elenco run "{one_line(name, 60)}"')
        if what == "flag" and (command := next((word for word in words if word in COMMANDS), None)) is not None:
            raise UsageError(
                f"'{one_line(name, 60)}' stands before its command: elenco {command} {one_line(name, 60)} …"
            )
        raise UsageError(f"unknown {what} '{one_line(name, 60)}'{did_you_mean(name, COMMANDS)}  (elenco --help)")
    fill, summary, examples = spec
    parser = Words(
        prog=f"elenco {name}",
        description=summary,
        epilog="examples:\n  " + examples.replace("\n", "\n  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    fill(parser)
    parser.add_argument("--state", metavar="DIR", help="where runs are kept (or ELENCO_STATE)")
    parser.set_defaults(command=name)
    found, rest = parser.parse_known_intermixed_args(words[1:])
    if rest:
        raise UsageError(f"{too_much(parser, rest)}  (elenco {name} --help)")
    if (flag := flag_without_value(parser, found)) is not None:
        raise UsageError(f"{flag} needs a value: '' is none, as of a variable that is not set  (elenco {name} --help)")
    return _module("steer" if name in STEERING else name), found


def _added(name: str) -> PluginCommand | None:
    """A plugin's command; nobody pays for the look but who types a word that is none of ours."""
    from runtime.plugins import plugins

    return plugins().commands.get(name)


def _help(arguments: argparse.Namespace) -> int:
    del arguments
    print(HELP)
    return 0


def _module(name: str) -> Command:
    module = name.replace("-", "_")
    command: Command = importlib.import_module(f".command_{module}", __package__).run
    return command
