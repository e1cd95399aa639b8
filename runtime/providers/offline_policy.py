"""What offline/extract does next: a pure function of the offered tools and the conversation so far.

The tools decide the part it plays: whoever may delegate coordinates, whoever may search for passages does the research,
whoever may only read files reviews, and whoever has no tools writes. It quotes and counts; it makes no sentence of its
own. It is asked anew at every turn and remembers nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import attrs

from runtime.context.found import read_numbered
from runtime.handover.brief import without_brief
from runtime.messages import JsonObject, Text, ToolCall, Usage
from runtime.model import ModelRequest, Reply

from . import offline_digest as say
from .offline_handover import Findings, read_findings, render_findings
from .offline_quotes import Quote, fold, is_verbatim, share
from .offline_research import READ, SEARCH, Stuck, Wanted, research
from .offline_transcript import Done, Transcript, read_transcript

DELEGATE = "delegate_to_"
PARTIAL = "Its partial work:\n"

_TO_RESEARCHER = (
    "Find the passages of this workspace that answer the question; hand them over as quotes with path and line."
)
_TO_REVIEWER = "Re-read every quote from disk, drop those that do not stand there word for word, mark the weak ones."
_TO_WRITER = "Write the digest from these quotes; add nothing to them."

_ORDER = re.compile(
    r"^(?:(?:please|now|can you|could you|would you|i want you to|i need you to|help me(?: to)?)[, ]+)*"
    r"(?P<verb>write|implement|fix|refactor|rewrite|translate|generate|create|add|build|draft|compose|calculate|compute|"
    r"convert|optimi[sz]e|rename|delete|remove|install|execute|deploy|commit|edit|change|update|improve|debug|solve|"
    r"code|program|merge|port|migrate|format)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_POLITE = re.compile(r"^\s*(?:please|can you|could you|would you)\b", re.IGNORECASE)
_SUM = re.compile(r"^(?:what(?:'s| is)|how much is|calculate|compute)?[\s\d.,()+*/^%=x×÷?-]+$", re.IGNORECASE)


def decide(request: ModelRequest) -> Reply:
    """The reply to a request; the same request always gives the same reply."""
    transcript = read_transcript(request.messages)
    offered = tuple(tool.name for tool in request.tools)
    last = request.tool_choice == "none" or not offered
    part = {*offered, *transcript.names}
    if request.output_schema is not None:
        return _text(say.NO_SCHEMA)
    if any(name.startswith(DELEGATE) for name in part):
        return _coordinate(transcript, offered, last)
    if SEARCH in part:
        return _research(transcript, offered, last)
    if READ in part:
        return _review(transcript, last)
    return _write(transcript) if not offered else _text(say.NO_ROLE)


def beyond_it(task: str) -> bool:
    """Whether a task asks for more than quotes: code, a change, a translation, a sum."""
    folded = fold(task)
    if any(mark.isdigit() for mark in folded) and _SUM.match(folded):
        return True
    return bool(_ORDER.match(folded)) and (bool(_POLITE.match(folded)) or not folded.endswith("?"))


# --- the coordinator ----------------------------------------------------------------------------------------------


@attrs.frozen
class _Cast:
    """The delegation tools by the part they play; an unknown child counts as a researcher."""

    researcher: str = ""
    reviewer: str = ""
    writer: str = ""


def _cast(names: Iterable[str]) -> _Cast:
    children = [name for name in dict.fromkeys(names) if name.startswith(DELEGATE)]

    def playing(part: str) -> str:
        return next((name for name in children if part in name.removeprefix(DELEGATE)), "")

    reviewer, writer = playing("review"), playing("writ")
    others = [name for name in children if name not in (reviewer, writer)]
    return _Cast(playing("research") or next(iter(others), ""), reviewer, writer)


def _coordinate(transcript: Transcript, offered: tuple[str, ...], last: bool) -> Reply:
    """Researcher, reviewer, writer: each gets what the one before found, as far as they are there and answer."""
    if beyond_it(transcript.task):
        return _text(say.CANNOT)
    cast = _cast((*offered, *sorted(transcript.names)))
    found = _found(transcript, cast, offered, last)
    if isinstance(found, Reply):
        return found
    if found.quotes and cast.reviewer:
        reviewed = _report(transcript, cast.reviewer)
        if reviewed is None and not last:
            return _delegate(cast.reviewer, render_findings(found, _TO_REVIEWER))
        checked = read_findings(_work(reviewed)) if reviewed is not None else None
        if checked is not None and checked.reread is not None:
            found = attrs.evolve(found, quotes=checked.quotes, reread=checked.reread, dropped=checked.dropped)
    if found.quotes and cast.writer:
        written = _report(transcript, cast.writer)
        if written is None and not last:
            return _delegate(cast.writer, render_findings(found, _TO_WRITER))
        if written is not None and written.ok and _work(written).strip():
            return _text(_work(written))
    return _text(say.digest(found))


def _found(transcript: Transcript, cast: _Cast, offered: tuple[str, ...], last: bool) -> Findings | Reply:
    """What the research brought, or the call or the answer that has to come first."""
    question = fold(transcript.task)
    if not cast.researcher:
        if SEARCH in offered or SEARCH in transcript.names:
            return _own(research(question, transcript, reads=READ in offered, last=last))
        return _text(say.NO_ROLE)
    report = _report(transcript, cast.researcher)
    if report is None:
        if last:
            return _text(f"{question}\n{say.TOO_EARLY}")
        return _delegate(cast.researcher, f"{_TO_RESEARCHER}\nQuestion: {question}")
    found = read_findings(_work(report))
    if found.quotes or found.closed:
        return attrs.evolve(found, question=question)
    if not report.ok or not _work(report).strip():
        return _text(say.failed(cast.researcher.removeprefix(DELEGATE), report.result.content))
    return _text(_work(report))


def _report(transcript: Transcript, name: str) -> Done | None:
    """A child's last report. One that was interrupted before it could answer is asked once more."""
    reports = transcript.of(name)
    if not reports or (len(reports) == 1 and reports[0].result.kind == "interrupted"):
        return None
    return reports[-1]


def _work(done: Done) -> str:
    """The report itself, without what is said around it: that the child was stopped, what it read."""
    text = without_brief(done.result.content)
    return text.partition(PARTIAL)[2] or text


# --- the others ---------------------------------------------------------------------------------------------------


def _research(transcript: Transcript, offered: tuple[str, ...], last: bool) -> Reply:
    asked = read_findings(transcript.task).question
    if beyond_it(asked):
        return _text(say.CANNOT)
    found = _own(research(asked, transcript, reads=READ in offered or READ in transcript.names, last=last))
    if isinstance(found, Reply):
        return found
    return _text(render_findings(attrs.evolve(found, question=say.shown(found.question))))


def _own(found: Wanted | Findings | Stuck) -> Findings | Reply:
    match found:
        case Wanted(calls=calls):
            return _calls(calls)
        case Stuck(text=text):
            return _text(text)
        case Findings():
            return found


def _review(transcript: Transcript, last: bool) -> Reply:
    handed = read_findings(transcript.task)
    if not handed.quotes:
        return _no_quotes(handed)
    reads = transcript.of(READ)
    if not reads and not last:
        ranges = [_range(quote) for quote in handed.quotes]
        return _calls(tuple((READ, each) for place, each in enumerate(ranges) if each not in ranges[:place]))
    kept = tuple(
        attrs.evolve(quote, weak=share(handed.question, quote) < 0.5)
        for quote in handed.quotes
        if any(_stands(quote, done) for done in reads)
    )
    dropped = len(handed.quotes) - len(kept)
    asked = say.shown(handed.question)
    checked = attrs.evolve(handed, question=asked, quotes=kept, reread=len(handed.quotes), dropped=dropped)
    return _text(render_findings(checked))


def _range(quote: Quote) -> JsonObject:
    return {"path": quote.path, "start": quote.line, "end": quote.end}


def _stands(quote: Quote, done: Done) -> bool:
    if not done.ok or done.call.arguments != _range(quote):
        return False
    lines = read_numbered(done.result.content)
    return is_verbatim(quote.text, " ".join(lines[number] for number in sorted(lines)))


def _write(transcript: Transcript) -> Reply:
    handed = read_findings(transcript.task)
    return _text(say.digest(handed)) if handed.quotes else _no_quotes(handed)


def _no_quotes(handed: Findings) -> Reply:
    return _text(say.CANNOT if beyond_it(handed.question) else say.NO_QUOTES)


# --- replies ------------------------------------------------------------------------------------------------------


def _text(text: str) -> Reply:
    return Reply((Text(text),), "stop", Usage(), 0.0, "offline")


def _delegate(name: str, task: str) -> Reply:
    return _calls(((name, {"task": task}),))


def _calls(calls: tuple[tuple[str, JsonObject], ...]) -> Reply:
    parts = tuple(
        ToolCall("", name, arguments, json.dumps(arguments, ensure_ascii=False, sort_keys=True))
        for name, arguments in calls
    )
    return Reply(parts, "tool_calls", Usage(), 0.0, "offline")
