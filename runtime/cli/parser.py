"""The words of the command line: one table of commands, each with its flags and examples."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from runtime.errors import UsageError, did_you_mean

from .visible import one_line

SANDBOXES = ("read-only", "workspace-write", "unsandboxed")
NETWORKS = ("none", "tools", "all")
if TYPE_CHECKING:
    from runtime.plugins import PluginCommand

WIRES = ("openai-chat", "openai-responses", "anthropic-messages")
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


class Words(argparse.ArgumentParser):
    """argparse with errors that are one line and name the nearest known word."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_in_our_words(message)}  ({self.prog} --help)")

    def print_help(self, file: object = None) -> None:
        sys.stdout.write(self.format_help())


def _in_our_words(message: str) -> str:
    """What argparse says of a slip, as the rest of the command would say it."""
    flag, _, rest = message.removeprefix("argument ").partition(": ")
    flag = flag.rpartition("/")[2]
    if message.startswith("the following arguments are required: "):
        return f"give {rest}"
    if rest.startswith("expected"):
        return f"{flag} needs a value"
    if rest.startswith("ignored explicit argument"):
        return f"{flag} takes no value"
    if found := re.fullmatch(r"invalid int value: (.*)", rest, re.DOTALL):
        return f"{flag} must be a whole number, not {one_line(found[1], 60)}"
    if found := re.fullmatch(r"invalid choice: '(.*)' \(choose from (.*)\)", rest, re.DOTALL):
        known = re.findall(r"[\w-]+", found[2])
        return f"{flag} is one of {', '.join(known)}, not '{one_line(found[1], 60)}'{did_you_mean(found[1], known)}"
    return message


def _run_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="PROVIDER/MODEL", help="which model answers; agent files may name another")
    group.add_argument("--base-url", metavar="URL", help="a compatible server, such as http://127.0.0.1:8080/v1")
    group.add_argument("--wire", choices=WIRES, help="the dialect it speaks")
    group = parser.add_argument_group("places")
    group.add_argument("--workspace", metavar="DIR", help="the folder the agents work in (default: this one)")
    group = parser.add_argument_group("limits (the tightest of flags, agent files and settings wins)")
    limit_flags(group)
    group = parser.add_argument_group("permissions")
    _rules(group)
    group.add_argument(
        "--no-input", action="store_true", help="never ask: what needs a human suspends the run (exit 4)"
    )
    group = parser.add_argument_group("walls around commands")
    group.add_argument("--sandbox", choices=SANDBOXES, help="what commands may write (default: workspace-write)")
    group.add_argument("--network", choices=NETWORKS, help="who reaches the network (default: tools, no command)")
    group = parser.add_argument_group("MCP servers, for this run")
    group.add_argument("--mcp", metavar="NAME", action="append", default=[], help="use one that is disabled")
    group.add_argument("--no-mcp", metavar="NAME", action="append", default=[], help="go without one")
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="every event as one JSON line on stdout")
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("--output", metavar="FILE", help="write the answer to FILE as well")
    group.add_argument("--output-schema", metavar="FILE", help="a JSON Schema: print nothing but JSON that fits it")
    group.add_argument("--record", metavar="DIR", help="keep the raw exchanges with model servers, keys taken out")


def _rules(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    for word in ("allow", "ask", "deny"):
        parser.add_argument(
            f"--{word}", metavar="RULE", action="append", default=[], help=f"{word} what the rule names; repeatable"
        )
    parser.add_argument("--yes", action="store_true", help="allow what would ask; never what is denied")
    parser.add_argument("--mode", choices=("default", "accept-edits", "plan"), default="default")


def limit_flags(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    """The flags that bound a run; on resume `+N` raises what is there."""
    parser.add_argument("--max-steps", metavar="N", help="model replies of the root agent")
    parser.add_argument("--total-steps", metavar="N", help="model replies of the whole tree")
    parser.add_argument("--token-budget", metavar="N", help="input and output tokens of the whole tree")
    parser.add_argument("--cost-budget", metavar="USD", help="of the whole tree")
    parser.add_argument("--timeout", metavar="SECONDS", help="stands still while a human is waited for")
    parser.add_argument("--max-tool-calls", metavar="N")
    parser.add_argument("--max-depth", metavar="N")
    parser.add_argument("--max-children", metavar="N", help="alive at once")


def _run(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco run [AGENT] "TASK" [FLAGS]'
    parser.add_argument("words", nargs="*", metavar='[AGENT] "TASK"', help="TASK - reads standard input")
    parser.add_argument("--continue", dest="continues", metavar="RUN", help="begin with what that run has said")
    parser.add_argument(
        "--detach",
        action="store_true",
        help="leave it to work on its own, print its id: closing the terminal ends nothing",
    )
    _otel(parser)
    _run_flags(parser)


def _chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: coordinator")
    parser.add_argument("--plain", action="store_true", help="line by line")
    parser.add_argument("--resume", metavar="RUN", help="go on where that run stands: its turn is finished first")
    parser.add_argument("--detach", action="store_true", help="a turn under way goes on when you leave")
    _run_flags(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    limit_flags(parser.add_argument_group("limits: N sets, +N raises"))
    parser.add_argument(
        "--refresh", action="store_true", help="take agent files as they are now, not as the run began with them"
    )
    parser.add_argument(
        "--confirm-unknown", action="store_true", help="ask what became of calls that may have taken effect"
    )
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--no-input", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--output", metavar="FILE")
    _otel(parser)


def _fork(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--at", metavar="SEQ", type=int, required=True, help="the last event to take over")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="event lines; - reads standard input")


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prune", action="store_true", help="list what has outlived its time; --yes removes it")
    parser.add_argument("--older-than", metavar="DAYS", type=float, help="with --prune (default: 30)")
    parser.add_argument("--keep", metavar="N", type=int, help="with --prune: leave the N newest")
    parser.add_argument("--yes", action="store_true", help="with --prune: remove them")
    parser.add_argument("--json", action="store_true", help="one JSON line a run")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--format", choices=("text", "md", "json", "jsonl"), default="text")
    parser.add_argument("--context", action="store_true", help="what fills the window of each agent's model, by part")


def _tail(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the run ends")
    parser.add_argument("--json", action="store_true", help="the events as JSON lines")
    parser.add_argument("--from", dest="from_seq", metavar="SEQ", type=int, default=0)
    _otel(parser, "print nothing: send spans and metrics of the run to a collector")


def _otel(parser: argparse.ArgumentParser, words: str = "send spans and metrics to a collector") -> None:
    parser.add_argument("--otel", action="store_true", help=f"{words} (OTEL_EXPORTER_OTLP_ENDPOINT)")


def _of_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="only this actor")


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="whose limits (default: the root agent's)")
    limit_flags(parser.add_argument_group("limits: N sets, +N raises; without any, show what is used of what"))
    parser.add_argument("--json", action="store_true", help="what is used of what, as JSON")


def _one_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="which one (default: the root agent)")


def _decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("id", metavar="ID", help="as the question shows it, such as a1")


def _approve(parser: argparse.ArgumentParser) -> None:
    _decision(parser)
    parser.add_argument(
        "--scope",
        choices=("once", "run", "workspace"),
        default="once",
        help="also the same calls later (default: once)",
    )
    parser.add_argument("--arguments", metavar="JSON", help="allow the call with these arguments instead of its own")


def _answer(parser: argparse.ArgumentParser) -> None:
    _decision(parser)
    parser.add_argument("text", metavar="TEXT", help="the answer, or the number of an option")


def _deny(parser: argparse.ArgumentParser) -> None:
    _decision(parser)
    parser.add_argument("--why", metavar="TEXT", help="the agent reads this")


def _say(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--actor", metavar="PATH", help="whom to tell (default: the root agent)")
    parser.add_argument("--interrupt", action="store_true", help="cancel its running calls first")


def _workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument("--json", action="store_true")


def _skills(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco skills [note NAME ["LESSON"]] [FLAGS]'
    parser.add_argument("words", nargs="*", metavar='note NAME "LESSON"', help="keep a lesson; without one, list them")
    parser.add_argument("--drop", metavar="N", type=int, help="with note NAME: forget the lesson of that number")
    _workspace(parser)


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco memory [list ["WORDS"] | show ID… | add "TEXT" | edit ID ["TEXT"] | forget ID… | …] [FLAGS]'
    parser.add_argument("words", nargs="*", metavar="ACTION", help="list (default), show, add, edit, forget")
    parser.add_argument("--user", action="store_true", help="facts about you, not about the workspace")
    parser.add_argument("--all", action="store_true", help="those of every workspace too")
    parser.add_argument("--limit", metavar="N", type=int, help="with list: the first N")
    parser.add_argument(
        "--run", metavar="RUN", help="with forget: all that this run has noted; without --yes a preview"
    )
    parser.add_argument("--yes", action="store_true", help="with forget --run: do it")
    _workspace(parser)


def _models(parser: argparse.ArgumentParser) -> None:
    _workspace(parser)
    parser.add_argument("--check", action="store_true", help="one tiny call to each provider with a key")
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="check this one only")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)


def _tools(parser: argparse.ArgumentParser) -> None:
    _workspace(parser)
    parser.add_argument("--agent", metavar="NAME", help="what this agent really gets, and under which rules")
    _rules(parser)


def _mcp(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "elenco mcp [tools [NAME…] | test NAME | call NAME TOOL [JSON] | login NAME | logout NAME |\n"
        "                   enable NAME --run RUN | disable NAME --run RUN] [FLAGS]"
    )
    parser.add_argument("words", nargs="*", metavar="ACTION", help="list (default), tools, test, call, login, logout")
    parser.add_argument("--run", metavar="RUN", help="enable, disable: the run in which, live or to be resumed")
    _workspace(parser)


def _serve_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="which agents (default: all)")
    parser.add_argument(
        "--port", type=int, metavar="N", help="streamable HTTP on 127.0.0.1 instead of the pipes; 0: any"
    )
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument("--model", metavar="PROVIDER/MODEL")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)
    limit_flags(parser.add_argument_group("limits of each run"))
    parser.add_argument("--allow", metavar="RULE", action="append", default=[], help="allow what the rule names")
    parser.add_argument("--yes", action="store_true", help="allow what would ask; never what is denied")


def _dash(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="on 127.0.0.1 (default: any that is free)")
    parser.add_argument("--open", action="store_true", help="open it in your browser")


def _acp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: coordinator")
    parser.add_argument("--model", metavar="PROVIDER/MODEL")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)
    limit_flags(parser.add_argument_group("limits of each prompt"))
    _rules(parser.add_argument_group("permissions"))
    parser.add_argument("--sandbox", choices=SANDBOXES, help="what commands may write; unsandboxed: in its terminal")
    parser.add_argument("--record", metavar="DIR", help="keep the raw exchanges with model servers, keys taken out")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument(
        "--effective", action="store_true", help="also what counts in the end: each value, and who set it"
    )


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR")


def _trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the workspace (default: this folder)")
    parser.add_argument("--workspace", metavar="DIR", help="the same")
    parser.add_argument("--show", action="store_true", help="only show what it would switch on")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--revoke", action="store_true", help="trust it no more")
    parser.add_argument("--list", action="store_true", help="every workspace you trust")
    parser.add_argument("--json", action="store_true")


def _rename(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("name", metavar="NAME", help="what the list shows, and what may be typed for the id")


def _delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN")


def _undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--to", metavar="SEQ", type=int, default=0, help="keep what was changed up to this event")


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
        _run,
        "Give an agent a task and print its answer.",
        'elenco run "What does this project do?"\n'
        'elenco run researcher --model ollama/qwen3 "Where are paths checked?"\n'
        "git diff | elenco run reviewer - --max-steps 10\n"
        'elenco run --continue k7f2 "And who calls it?"\n'
        'elenco run --output-schema answer.json "List the public functions" | jq .functions\n'
        'RUN=$(elenco run --detach "Write release notes") && elenco tail $RUN --follow',
    ),
    "chat": (
        _chat,
        "Talk with an agent on the whole screen, or line by line. /help lists its commands; Ctrl-C cancels the turn, "
        "Ctrl-Q leaves (Ctrl-D in the line mode).",
        "elenco chat\nelenco chat reviewer --model anthropic/claude-sonnet-5-5\nelenco chat --resume k7f2\n"
        "elenco chat --plain",
    ),
    "resume": (_resume, "Go on with a run that stopped.", "elenco resume k7f2\nelenco resume k7f2 --max-steps +20"),
    "runs": (_runs, "List all runs, newest first.", "elenco runs\nelenco runs --prune --older-than 14 --keep 20 --yes"),
    "show": (
        _show,
        "Show a run: answer, actors, what each did and spent.",
        "elenco show k7f2 --format md\nelenco show k7f2 --context",
    ),
    "tail": (_tail, "Print a run's events, live ones too.", "elenco tail k7f2 --follow --json"),
    "approve": (
        _approve,
        "Allow a call that waits for you.",
        'elenco approve m3qa a1 && elenco resume m3qa\nelenco approve m3qa a1 --arguments "$(cat edited.json)"',
    ),
    "deny": (_deny, "Refuse a call that waits for you.", 'elenco deny m3qa a1 --why "use docs/notes.md instead"'),
    "answer": (_answer, "Answer a question that an agent has put to you.", 'elenco answer m3qa q1 "in docs/"'),
    "say": (
        _say,
        "Tell an agent something; it reads it at its next step.",
        'elenco say k7f2 "Only look in docs/"\nelenco say k7f2 "Stop" --actor coordinator/researcher-1 --interrupt',
    ),
    "hold": (
        _of_actor,
        "Let everybody in a run, or one actor, stop before the next step; clocks stand still meanwhile.",
        "elenco hold k7f2\nelenco hold k7f2 --actor coordinator/researcher-1",
    ),
    "continue": (_of_actor, "Let everybody who is held, or one actor, go on.", "elenco continue k7f2"),
    "limits": (
        _limits,
        "Show what a run has used of its limits, or change them while it works.",
        "elenco limits k7f2\nelenco limits k7f2 --max-steps +20 --timeout 1200\n"
        "elenco limits k7f2 --actor coordinator/researcher-1 --token-budget +50000",
    ),
    "compact": (
        _one_actor,
        "Make an agent's conversation smaller before its next request, full window or not.",
        "elenco compact k7f2\nelenco compact k7f2 --actor coordinator/writer-1",
    ),
    "cancel": (
        _of_actor,
        "Cancel a live run, or one actor of it.",
        "elenco cancel k7f2\nelenco cancel k7f2 --actor coordinator/researcher-1",
    ),
    "agents": (_workspace, "List the agents that can be found, and where each is from.", "elenco agents"),
    "skills": (
        _skills,
        "List the skills that can be found, or keep a lesson for one.",
        'elenco skills\nelenco skills note code-review "Look at the migrations first"\n'
        "elenco skills note code-review --drop 1",
    ),
    "memory": (
        _memory,
        "What is remembered from run to run: search it, put it right, forget it.",
        'elenco memory\nelenco memory list "deploy key"\nelenco memory add "Release notes are in German" --user\n'
        'elenco memory edit 12\nelenco memory edit 12 "Tests need Python 3.12"\nelenco memory forget 12 15\n'
        "elenco memory forget --run k7f2 --yes",
    ),
    "models": (_models, "List providers, whether a key is set, models with window and prices.", "elenco models"),
    "tools": (_tools, "List the tools, or what one agent really gets.", "elenco tools --agent researcher"),
    "mcp": (
        _mcp,
        "List the MCP servers that are named here, look at their tools, call one by hand.",
        'elenco mcp\nelenco mcp tools time\nelenco mcp call time get_current_time \'{"timezone": "Europe/Lisbon"}\'',
    ),
    "dash": (
        _dash,
        "Watch and steer all runs of this machine in a browser.",
        "elenco dash --open\nelenco dash --port 8900",
    ),
    "serve-mcp": (
        _serve_mcp,
        "Offer agents as MCP tools, one for each: over the pipes, or over HTTP on this machine.",
        "elenco serve-mcp\nelenco serve-mcp researcher reviewer --workspace ~/notes --max-steps 30\n"
        "elenco serve-mcp --port 8765",
    ),
    "acp": (
        _acp,
        "An agent for editors that speak the Agent Client Protocol; the editor starts it.",
        "elenco acp\nelenco acp writer --model anthropic/claude-sonnet-5-5 --mode accept-edits",
    ),
    "check": (
        _check,
        "Check agent files and settings: every fault with file and line.",
        "elenco check agents/writer.md\nelenco check --effective",
    ),
    "init": (
        _init,
        "Put a starter here: one agent and the settings, with comments.",
        "elenco init\nelenco init my-cast",
    ),
    "trust": (
        _trust,
        "Let this workspace's allow rules, hooks, MCP servers and Python count, after showing them.",
        "elenco trust --show\nelenco trust\nelenco trust --revoke",
    ),
    "doctor": (_doctor, "What this machine offers and lacks, and how to connect a model.", "elenco doctor"),
    "rename": (_rename, "Give a run a name, to find it by.", "elenco rename k7f2 release-notes"),
    "delete": (_delete, "Remove runs and everything kept of them; not one that is live.", "elenco delete k7f2 m3qa"),
    "fork": (
        _fork,
        "Copy a run up to an event, to go on from there in another way.",
        "elenco fork k7f2 --at 120 && elenco resume $(elenco fork k7f2 --at 120)",
    ),
    "import": (
        _import,
        "Take in a run that was written with elenco show --format jsonl.",
        "elenco show k7f2 --format jsonl > k7f2.jsonl\nelenco import k7f2.jsonl",
    ),
    "undo": (
        _undo,
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
        raise UsageError(f"{_too_much(parser, rest)}  (elenco {name} --help)")
    return _module("steer" if name in STEERING else name), found


def _added(name: str) -> PluginCommand | None:
    """A plugin's command; nobody pays for the look but who types a word that is none of ours."""
    from runtime.plugins import plugins

    return plugins().commands.get(name)


def _too_much(parser: argparse.ArgumentParser, rest: list[str]) -> str:
    flag = next((word for word in rest if word.startswith("-")), None)
    if flag is None:
        return f"one word too many: '{one_line(rest[0], 60)}'"
    flags = [option for action in parser._actions for option in action.option_strings]  # pyright: ignore[reportPrivateUsage]
    flag = flag.partition("=")[0]
    return f"unknown flag '{one_line(flag, 60)}'{did_you_mean(flag, flags)}"


def _help(arguments: argparse.Namespace) -> int:
    del arguments
    print(HELP)
    return 0


def _module(name: str) -> Command:
    module = name.replace("-", "_")
    command: Command = importlib.import_module(f".command_{module}", __package__).run
    return command
