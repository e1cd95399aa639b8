"""The slash commands of a chat, one table for screen and line mode: how a line is read, what completes it; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from runtime.errors import UsageError, did_you_mean
from runtime.limits.limits import LIMIT_NAMES
from runtime.watch.commands import Cancel, ChangeLimits, Command, Compact, Say, SetModel, SwitchServer

Origin: TypeAlias = Literal["chat", "plugin", "server"]


@attrs.frozen
class Slash:
    """A command: `lines` says whether the line mode has it as well; `origin` who brings it."""

    name: str
    usage: str
    summary: str
    lines: bool = True
    origin: Origin = "chat"

    @property
    def shown(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


OWN: tuple[Slash, ...] = (
    Slash("help", "", "these commands and the keys"),
    Slash("skills", "", "the skills that can be found"),
    Slash("agents", "", "the agents that can be found; those at work"),
    Slash("models", "[PROVIDER/MODEL]", "the models; or go on with another one, also within a turn"),
    Slash("status", "", "where the turn stands: actors, tokens, cost, limits"),
    Slash("thinking", "", "show or hide what the model thinks"),
    Slash("debug", "[on|off]", "the bodies of the last request and response, keys taken out; on: keep them"),
    Slash("mcps", "[on|off NAME]", "the MCP servers; switch one on or off"),
    Slash("tools", "", "the tools the agent really gets, under which rules"),
    Slash("budget", "[LIMIT N|+N]", "what is used of which limit; or change one, such as max_steps +20"),
    Slash("compact", "", "make the conversation shorter, keeping what matters"),
    Slash("undo", "[SEQ]", "put back the files the last turn changed (up to an event)"),
    Slash("sessions", "[RUN]", "earlier conversations here; or go on with one"),
    Slash("new", "", "begin a new conversation"),
    Slash("fork", "[TURNS]", "branch off here, or some turns back; the original stays"),
    Slash("rename", "NAME", "name this conversation"),
    Slash("export", "[FILE]", "write the conversation as Markdown"),
    Slash("copy", "", "copy the last answer to the clipboard"),
    Slash("cancel", "", "cancel the turn (also Ctrl-C)"),
    Slash("say", "TEXT", "tell the agent something within the turn"),
    Slash("theme", "[NAME]", "other colours", lines=False),
    Slash("exit", "", "leave; the command that goes on is printed"),
)


@attrs.frozen
class Given:
    """A command as it was typed; `rest` is what follows its name."""

    slash: Slash
    rest: str = ""

    @property
    def words(self) -> list[str]:
        """Raises ValueError for a quote that is not closed."""
        return shlex.split(self.rest)


@attrs.frozen
class Prompt:
    """A line for the agent."""

    text: str


@attrs.frozen
class Wrong:
    """A line that is no command; `why` is for the person."""

    why: str


def read(line: str, more: Iterable[Slash] = (), *, lines: bool = False) -> Given | Prompt | Wrong:
    """What a line is. `more` are what plugins and servers bring, `lines` says that it was typed in the line mode.

    A path is no command, `//` begins a prompt that begins with a slash, and `/SERVER:PROMPT` may be unknown here.
    """
    text = line.strip()
    if text.startswith("//"):
        return Prompt(text[1:])
    if not text.startswith("/"):
        return Prompt(text)
    word, _, rest = text[1:].partition(" ")
    word, newline, below = word.partition("\n")
    if "/" in word:
        return Prompt(text)
    known = {slash.name: slash for slash in (*more, *OWN) if slash.lines or not lines}
    slash = known.get(word) or (Slash(word, "", "", origin="server") if _names_prompt(word) else None)
    if slash is not None:
        return Given(slash, f"{below} {rest}".strip() if newline else rest.strip())
    if lines and any(slash.name == word for slash in OWN):
        return Wrong(f"/{word} needs the screen: elenco chat without --plain")
    return Wrong(f"unknown command '/{word}'{_near(word, known)}  (/help; // begins a prompt with a slash)")


def completions(line: str, more: Iterable[Slash] = (), *, lines: bool = False) -> list[Slash]:
    """The commands a line may become while its first word is typed, those that begin so before those that hold it."""
    if not line.startswith("/") or line.startswith("//") or any(mark in line for mark in " \n"):
        return []
    word = line[1:]
    known = list({slash.name: slash for slash in (*more, *OWN) if slash.lines or not lines}.values())
    begin = [slash for slash in known if slash.name.startswith(word)]
    inside = [slash for slash in known if word and word in slash.name[1:] and slash not in begin]
    return sorted(begin, key=lambda slash: slash.origin != "chat") + inside


def completed(line: str, more: Iterable[Slash] = ()) -> str:
    """The line with as much added as all that it may become have in common."""
    names = [slash.name for slash in completions(line, more) if slash.name.startswith(line[1:])]
    if not names:
        return line
    if len(names) == 1:
        return f"/{names[0]} "
    common = 0
    while all(len(name) > common and name[common] == names[0][common] for name in names):
        common += 1
    return f"/{names[0][:common]}"


def help_lines(more: Iterable[Slash] = (), *, lines: bool = False) -> list[str]:
    """The table for a person."""
    shown = [slash for slash in (*OWN, *more) if slash.lines or not lines]
    width = max(len(slash.shown) for slash in shown) + 2
    return [f"{slash.shown:<{width}}{slash.summary}" for slash in shown]


def elenco_words(given: Given, *, workspace: str, agent: str, run: str | None) -> Sequence[str] | str | None:
    """The words of the `elenco` command that does what is wanted, None where none does, or why it cannot be done.

    `run` is the conversation's newest run. Raises ValueError for a quote that is not closed.
    """
    words, here = given.words, ("--workspace", workspace)
    match given.slash.name:
        case name if given.slash.origin == "plugin":
            return (name, *words)
        case "skills" | "agents" as name:
            return (name, *here)
        case "models" if not words:
            return ("models", *here)
        case "mcps" if not words:
            return ("mcp", *here)
        case "tools":
            return ("tools", *here, "--agent", agent)
        case "undo" | "rename" | "export" | "status" if run is None:
            return "nothing has been said yet"
        case "undo":
            return ("undo", str(run), *(("--to", words[0]) if words else ()))
        case "rename":
            return ("rename", str(run), given.rest) if given.rest else "write /rename NAME"
        case "status":
            return ("show", str(run))
        case _:
            return None


def steering(given: Given, by: str) -> Command | None:
    """What the command asks of a turn under way, None where it asks nothing of it.

    Raises UsageError, ValueError for a quote that is not closed.
    """
    match given.slash.name:
        case _ if given.slash.origin != "chat":
            return None
        case "cancel":
            return Cancel(by=by)
        case "say" if not given.rest:
            raise UsageError("write /say TEXT")
        case "say":
            return Say(text=given.rest, by=by)
        case "compact":
            return Compact(by=by)
        case "models" if given.rest:
            return SetModel(model=given.rest, by=by)
        case "budget" if given.rest:
            return _limit(given.words, by)
        case "mcps" if given.rest:
            return _server(given.words, by)
        case _:
            return None


def _limit(words: Sequence[str], by: str) -> Command:
    match words:
        case [name, value] if (limit := name.replace("-", "_")) in LIMIT_NAMES:
            return ChangeLimits(limits={limit: value}, by=by)
        case _:
            raise UsageError(f"write /budget LIMIT N, LIMIT one of {', '.join(LIMIT_NAMES)}")


def _server(words: Sequence[str], by: str) -> SwitchServer:
    match words:
        case ["on" | "off" as word, name]:
            return SwitchServer(server=name, on=word == "on", by=by)
        case _:
            raise UsageError("write /mcps, /mcps on NAME or /mcps off NAME")


def _names_prompt(word: str) -> bool:
    server, colon, prompt = word.partition(":")
    return bool(server and colon and prompt)


def _near(word: str, known: Iterable[str]) -> str:
    return did_you_mean(f"/{word}", [f"/{name}" for name in known])
