"""The parts of a result that change by themselves: times, ids, durations, process numbers.

Two results that differ only there say the same thing. What would be left of a result must still say something,
though: a clock's answer is nothing but volatile, and there the time *is* the answer. Likewise the times at the
head of log lines tell one entry from the next, a duration with a statistical name is a measurement, and time left
is progress.
"""

import re

_UNIT = r"(?:ns|us|µs|ms|s|secs?|seconds?|min|mins|minutes?|h|hrs?|hours?|days?)"
_NAMED = (
    r"(?:mean|avg|average|median|min|max|best|worst|stddev|latency|p\d\d(?:\.\d)?|rtt|±|eta|ETA"
    r"|remaining|left)"
)
_VOLATILE_KEY = (
    r"(?:[\w-]*(?:_at|At|_ts|timestamp|Timestamp|elapsed|Elapsed|duration|Duration|uptime|nonce|etag|_ms|Ms)"
    r"|(?:idle|elapsed)\w*|age|took|ts|pid|ppid|tid"
    r"|(?:[\w-]*[_-])?(?:request|req|message|msg|trace|span|correlation|receipt|event|delivery|transaction"
    r"|invocation|session|run|response|call)[_-]?(?:id|Id|ID))"
)
_PATTERN = re.compile(
    rf"""
      (?P<keep>\b{_NAMED}\s*[:=]?\s*\d+(?:\.\d+)?\s?{_UNIT}\b
        | \b\d+(?:\.\d+)?\s?{_UNIT}\s(?:left|remaining|to\sgo)\b)
    | (?P<key>["']?\b{_VOLATILE_KEY}["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s,;}}\]]+)
    | \b\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?
    | (?<![\d.:])\d{{1,2}}:\d\d:\d\d(?:[.,]\d+)?(?![\d:])
    | \b[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}\b
    | \b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,64}}\b
    | \b0x[0-9a-fA-F]{{4,16}}\b
    | \b(?:req|request|msg|message|trace|span|evt|event|call|sess|session|tx|txn|run)[-_](?=\w*\d)[A-Za-z0-9]{{4,}}\b
    | \b(?:pid|PID|tid)[ ]+\d+\b
    | \btmp[\w-]{{6,}}
    | (?<![\w.])(?:\d+\s?h\s?)?(?:\d+\s?m\s?)?\d+(?:\.\d+)?\s?{_UNIT}\b
    | (?<![\w.-])\d{{10,19}}\b
    """,
    re.VERBOSE,
)
_LOG_HEAD = re.compile(
    r"^\W{0,2}(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2}\s+\d{1,2}\s+)?\d{1,2}:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?",
    re.MULTILINE,
)
_WORDY = re.compile(r"[^\W_]")
_ERROR_PARTS = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|`[^`\n]{0,200}`|\d+(?:[.,:]\d+)*")
_EXIT = re.compile(r"(?:exit(?:ed)?(?: with)?(?: code| status)?|code|status)\W*\d+|no output", re.IGNORECASE)
_ERROR_START = re.compile(
    r"\W*(?:error|fatal|failed|failure|exception|traceback|cannot|could not|unable to|permission denied|no such)\b",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """The text with its volatile parts blanked, or as it is where nothing else would be left."""
    heads = [(m.start(), m.end()) for m in _LOG_HEAD.finditer(text)]
    if len(heads) > 1:
        pieces: list[str] = []
        here = 0
        for start, end in heads:
            pieces += [_PATTERN.sub(_blank, text[here:start]), text[start:end]]
            here = end
        return "".join(pieces) + _PATTERN.sub(_blank, text[here:])
    blanked = _PATTERN.sub(_blank, text)
    return blanked if _WORDY.search(blanked) else text


def is_clock(text: str) -> bool:
    """Whether the text has volatile parts and nothing else."""
    return len(text) < 200 and bool(_WORDY.search(text)) and not _WORDY.search(_PATTERN.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return match["keep"] or (match["key"] or "") + "~"


def without_echo(text: str, arguments: list[str]) -> str:
    """The text with what it only repeats from the call's arguments blanked."""
    for value in sorted(arguments, key=len, reverse=True):
        leaf = value.rstrip("/").rpartition("/")[2]
        for echo in (value, leaf):
            if len(echo) > 2:
                text = text.replace(echo, "@")
    return text


def masked_error(text: str, arguments: list[str]) -> str:
    """What a failure says once numbers, quoted parts and echoes of the arguments are blanked."""
    return _ERROR_PARTS.sub("#", without_echo(masked(text[:1200]), arguments))


def reads_as_error(text: str) -> bool:
    """Whether a result that is not flagged as an error begins like one."""
    return bool(_ERROR_START.match(text))


def says_something(text: str) -> bool:
    """Whether a failure says more than that there was one: `grep` without a match exits 1 and is silent."""
    return _WORDY.search(_EXIT.sub("", text)) is not None
