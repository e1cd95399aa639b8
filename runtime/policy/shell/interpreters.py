"""Programs that run program text: from an argument, from standard input, or from a file named by an option.

A rule that allows the interpreter never allows such text. Shell text is read and its commands are decided too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import awk
from .behind import Behind, Words, name_of
from .languages import INTERPRETERS, LISP, PYTHON, VIM, Interpreter
from .words import Word, literal, names

_SHELLS = names(
    "sh bash dash zsh ksh ksh93 mksh pdksh ash rbash rksh yash posh fish csh tcsh rc es nu xonsh elvish oksh"
)
_SHELL_VALUES = frozenset({"--rcfile", "--init-file", "--init-command", "--profile", "--config", "--env-config"})
_SHELL_FLAGS = names(
    "--norc --noprofile --posix --login --restricted --verbose --debugger --noediting --interactive"
    " --no-config --private --no-rcs --emacs --vi"
)
_SHELL_STOPS = frozenset({"--version", "--help", "--dump-strings", "--dump-po-strings"})
_ALWAYS = frozenset({"ed", "gdb", "lldb", "at", "batch"})
_EVALUATING = frozenset({"eval", "repl"})
_DATABASES = frozenset({"sqlite3", "sqlite", "duckdb", "psql", "mysql", "mariadb", "redis-cli"})
_FILES = frozenset({"sqlite3", "sqlite", "duckdb"})
_DATABASE_ESCAPE = re.compile(
    r"\\[!oiwgc|]|\\copy|(?m:^\s*[.!])|(?:^|;)\s*(?:system|source|tee|pager|edit|eval|shell)\b"
    r"|\b(?:load_extension|writefile|edit)\s*\(|\battach\b|\bvacuum\s+into\b|\binto\s+(?:out|dump)file\b"
    r"|\bcopy\b.*\b(?:to|from|program)\b",
    re.IGNORECASE | re.DOTALL,
)
_DATABASE_FILE = re.compile(r"-(?:f|init|cmd|-file|-init|o|L|-output|-log-file|-tee|-pager|-eval|-rcfile)")
_DATABASE_TEXT = re.compile(r"-(?:c|e|-command|-execute|l|-list|V|-version|-help)")
_LEAD = re.compile(r"\s*(?:\.(?:shell|system)|\\!|system|!)\s*")
_MODULE = re.compile(r"-[bBdEhiIOPqRsStuvVx]*m(.*)", re.DOTALL)
_RUN_CODE = names("timeit pdb trace cProfile profile code asyncio IPython idlelib runpy")
_STANDARD_INPUT = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/(?:self|\d+)/fd/\d+")
_VERSION = re.compile(r"[0-9.]+t?\Z")


def look_for_code(words: Words, behind: Behind) -> None:
    """Find program text a command is given."""
    name = name_of(words)
    base = _VERSION.sub("", name).rstrip("-")
    if name in _SHELLS or base in _SHELLS:
        _shell(words, behind)
    elif name in INTERPRETERS or base in INTERPRETERS:
        known = name if name in INTERPRETERS else base
        _interpreter(words, behind, INTERPRETERS[known], known)
    elif name in ("awk", "gawk", "mawk", "nawk", "original-awk"):
        if awk.runs_something(words):
            behind.flags.add("interpreter_inline")
    elif name in _DATABASES:
        _database(words, behind)


def _shell(words: Words, behind: Behind) -> None:
    at, inline, stdin = 1, False, False
    while at < len(words):
        word = words[at]
        text = word.text
        if not word.static or word.glob or word.braced:
            if text.startswith(("-", "+", "$", "{", "*")) and not inline and '"' not in word.raw:
                _inline(behind, words)
                return
            break
        if text in _SHELL_STOPS and not inline:
            return
        if text in ("--", "-"):
            at += 1
            break
        name, equals, value = text.partition("=")
        if name == "--command":
            behind.reads(literal(value) if equals else words[at + 1] if at + 1 < len(words) else literal(""))
            return
        if name in _SHELL_VALUES:
            behind.notes.append(f"{name} changes what a shell reads first")
            at += 1 if equals else 2
        elif text in _SHELL_FLAGS:
            at += 1
        elif text.startswith("--"):
            _inline(behind, words)
            return
        elif text[:1] in ("-", "+") and len(text) > 1:
            letters = text[1:]
            inline = inline or (text[0] == "-" and ("c" in letters or "C" in letters))
            stdin = stdin or "s" in letters
            at += 1 + sum(letter in "oO" for letter in letters)
        else:
            break
    rest = words[at:]
    if inline:
        if rest:
            behind.reads(rest[0])
            behind.maybe.extend(rest[start:] for start in range(1, min(len(rest), 8)))
        else:
            behind.flags.add("interpreter_inline")
    elif stdin or not rest or _is_standard_input(rest[0]):
        behind.flags.add("interpreter_inline")
        behind.feeds = True


def _inline(behind: Behind, words: Sequence[Word]) -> None:
    behind.flags.add("interpreter_inline")
    behind.feeds = True
    behind.guesses.extend(word.text for word in words[1:] if word.static)


def _is_standard_input(word: Word) -> bool:
    return word.raw.startswith(("<(", '"<(')) or _STANDARD_INPUT.fullmatch(word.text) is not None


def _interpreter(words: Words, behind: Behind, known: Interpreter, name: str) -> None:
    if name in _ALWAYS:
        _inline(behind, words)
        given = [word.text for word in words].index("--args") + 1 if any(w.text == "--args" for w in words) else 0
        if given and given < len(words):
            behind.runs(words[given:])
        return
    if name == "crontab":
        if [word.text for word in words[1:]] != ["-l"]:
            behind.notes.append("crontab runs commands later")
        return
    anywhere = known is VIM or known is LISP
    at, loose, files = 1, False, 0
    while at < len(words):
        word = words[at]
        text = word.text
        if text in known.stops and len(words) == 2:
            return
        if text == "-" or _is_standard_input(word) or (known is VIM and re.fullmatch(r"\+.*[^\d].*", text)):
            _inline(behind, words)
            return
        if text == "--":
            files += at + 1 < len(words)
            break
        if text.startswith("-"):
            code, skip, sure = _option(word, known)
            if code:
                _inline(behind, words)
                return
            module = _MODULE.match(text) if known is PYTHON else None
            if module is not None:
                name = module[1] or (words[at + 1].text if at + 1 < len(words) else "")
                if name.split(".")[0] in _RUN_CODE or not name:
                    _inline(behind, words)
                return
            loose = loose or not sure
            at += skip
        else:
            if not files and text in _EVALUATING and name in ("deno", "crystal", "bun"):
                _inline(behind, words)
                return
            if not word.static and '"' not in word.raw and not anywhere:
                _inline(behind, words)
                return
            files += 1
            if not loose and not anywhere:
                break
        at += 1
    if not files and known.reads:
        _inline(behind, words)


def _option(word: Word, known: Interpreter) -> tuple[bool, int, bool]:
    """Whether an option holds code, how many words its value takes, and whether it is known at all."""
    text = word.text
    if not word.static:
        return True, 0, False
    bare, equals, _ = text.lstrip("-").partition("=")
    if text.startswith("--") or known.words:
        low = bare.lower() if known.words else bare
        if low in known.longs or any(len(low) > 2 and each.startswith(low) for each in known.longs):
            return True, 0, True
        if bare in known.long_values:
            return False, 0 if equals else 1, True
        return False, 0, bool(equals)
    if bare in known.longs:
        return True, 0, True
    if bare in known.long_values:
        return False, 0 if equals else 1, True
    for at, letter in enumerate(text[1:], 2):
        if letter in known.code:
            return True, 0, True
        if letter in known.values:
            return False, 0 if at < len(text) else 1, True
        if letter not in known.flags:
            return False, 0, False
    return False, 0, True


def _database(words: Words, behind: Behind) -> None:
    """SQL is data; what leaves the database from there is not."""
    name = name_of(words)
    operands = [word for word in words[1:] if not word.text.startswith("-")]
    given = len(operands) > 1 if name in _FILES else any(_DATABASE_TEXT.match(word.text) for word in words[1:])
    given = given or (name == "redis-cli" and bool(operands))
    escapes = any(not word.static or _DATABASE_ESCAPE.search(word.text) for word in words[1:])
    if escapes or not given or any(_DATABASE_FILE.match(word.text) for word in words[1:]):
        _inline(behind, words)
        behind.guesses.extend(_LEAD.sub("", word.text) for word in words[1:])


def is_interpreter(name: str) -> bool:
    """Whether a file name among its arguments would be run."""
    base = _VERSION.sub("", name).rstrip("-")
    return bool({name, base} & (_SHELLS | INTERPRETERS.keys() | _DATABASES)) or name.endswith("awk")
