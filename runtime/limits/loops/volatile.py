"""The parts of a result that change by themselves: times, ids, durations, process numbers.

Two results that differ only there say the same thing. What would be left of a result must still say something,
though: a clock's answer is nothing but volatile, and there the time *is* the answer. Likewise the times at the
head of log lines tell one entry from the next, a duration with a statistical name is a measurement, and time left
is progress.

Each pass looks for one kind of thing, and only where its mark is in the text: one pattern for all of it costs ten
times as much.
"""

import re

_UNIT = r"(?:ns|us|µs|ms|s|secs?|seconds?|min|mins|minutes?|h|hrs?|hours?|d|days?)"
_FIELD = re.compile(r"""(?<![\w-])([\w-]+)(["']?\s*[:=]\s*)("[^"\n]*"|'[^'\n]*'|[^\s,;}\])]+)""")
_VOLATILE_FIELD = re.compile(
    r"(?!.*(?:[Rr]emain|[Ll]eft|[Ee]stimat|eta\b)).*"
    r"(?:_at|At|_ts|[Tt]imestamp|[Ee]lapsed|[Dd]uration|uptime|_time|Time|nonce|etag|_ms|Ms)"
    r"|(?:idle|elapsed).*|age|took|time|date|now|ts|pid|ppid|tid"
    r"|(?:.*[_-])?(?:request|req|message|msg|trace|span|correlation|receipt|event|delivery|transaction|invocation"
    r"|session|run|response|call)[_-]?(?:id|Id|ID)"
)
_NUMBER = re.compile(
    r"\d(?<![\w.]\d)(?:"
    r"\d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d?:\d\d:\d\d(?:[.,]\d+)?"
    r"|\d{9,18}(?:\.\d+)?(?![\w-])"
    rf"|(?P<duration>\d*\s?(?:d\s?\d+\s?)?(?:h\s?\d+\s?)?(?:m\s?\d+)?(?:\.\d+)?\s?{_UNIT}\b)"
    r")"
)
_NAMED = re.compile(
    r"(?:\b(?:mean|avg|average|median|min|max|best|worst|stddev|latency|p\d\d(?:\.\d)?|rtt|eta|remaining|left)|±)"
    r"\s*[:=]?\s*$",
    re.IGNORECASE,
)
_TO_GO = re.compile(r"\s(?:left|remaining|to go)\b")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_HEX = re.compile(r"[0-9a-f]{7,64}(?![\w-])")
_TAGGED = re.compile(
    r"\b(?:(?:req|request|msg|message|trace|span|evt|event|call|sess|session|tx|txn|run)[-_](?=\w*\d)[A-Za-z0-9]{4,}"
    r"|tmp[\w-]{6,})"
)
_PROCESS = re.compile(r"\b(?:pid|PID|tid)[ ]+\d+\b")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")
_LOG_HEAD = re.compile(
    r"^\W{0,2}(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2}\s+\d{1,2}\s+)?\d{1,2}:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?",
    re.MULTILINE,
)
_WORDY = re.compile(r"[^\W_]")
_DIGIT = re.compile(r"\d")
_MEASURING = re.compile(
    r"bench|hyper|\b(?:perf|time|timeit|timing|measure|profile|latency|throughput|load-?test|wrk|k6)\b",
    re.IGNORECASE,
)
_ERROR_PARTS = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|`[^`\n]{0,200}`|\d+(?:[.,:]\d+)*")
_EXIT = re.compile(r"(?:exit(?:ed)?(?: with)?(?: code| status)?|code|status)\W*\d+|no output", re.IGNORECASE)
_ERROR_START = re.compile(
    r"\W*(?:error|fatal|failed|failure|exception|traceback|cannot|could not|unable to|permission denied|no such)\b",
    re.IGNORECASE,
)


def masked(text: str, measured: bool = False) -> str:
    """The text with its volatile parts blanked, or as it is where nothing else would be left.

    Durations are kept where they are `measured`, because then they are the answer.
    """
    if not _DIGIT.search(text):
        return text
    heads = [(m.start(), m.end()) for m in _LOG_HEAD.finditer(text)] if ":" in text else []
    if len(heads) > 1:
        pieces: list[str] = []
        here = 0
        for start, end in heads:
            pieces += [_blanked(text[here:start], measured), text[start:end]]
            here = end
        return "".join(pieces) + _blanked(text[here:], measured)
    blanked = _blanked(text, measured)
    return blanked if _WORDY.search(blanked) else text


def _blanked(text: str, measured: bool) -> str:
    if ":" in text or "=" in text:
        text = _FIELD.sub(_blank_field, text)
    if "-" in text or "_" in text or "tmp" in text:
        text = _TAGGED.sub("~", _UUID.sub("~", text))
    if "0x" in text:
        text = _ADDRESS.sub("~", text)
    if "id " in text or "ID " in text:
        text = _PROCESS.sub("~", text)
    text = _HEX.sub(_blank_hex, text)
    return _NUMBER.sub(_keep_duration if measured else _blank_number, text)


def _blank_field(match: re.Match[str]) -> str:
    name, between, _ = match.groups()
    return f"{name}{between}~" if _VOLATILE_FIELD.fullmatch(name) else match[0]


def _blank_hex(match: re.Match[str]) -> str:
    run, start = match[0], match.start()
    if run.isdigit() or run.isalpha():
        return run
    before = match.string[start - 1] if start else " "
    return run if before.isalnum() or before in "_-." else "~"


def _blank_number(match: re.Match[str]) -> str:
    if match["duration"] is not None:
        text = match.string
        if _NAMED.search(text[max(0, match.start() - 16) : match.start()]) or _TO_GO.match(text, match.end()):
            return match[0]
    return "~"


def _keep_duration(match: re.Match[str]) -> str:
    return "~" if match["duration"] is None else match[0]


def measures(arguments: str) -> bool:
    """Whether a call asks for a measurement."""
    return _MEASURING.search(arguments) is not None


def is_clock(text: str) -> bool:
    """Whether the text has volatile parts and nothing else."""
    return len(text) < 200 and _WORDY.search(text) is not None and not _WORDY.search(_blanked(text, False))


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
    return _ERROR_START.match(text) is not None


def says_something(text: str) -> bool:
    """Whether a failure says more than that there was one: `grep` without a match exits 1 and is silent."""
    if len(text) > 60:
        return True
    return _WORDY.search(_EXIT.sub("", text)) is not None
