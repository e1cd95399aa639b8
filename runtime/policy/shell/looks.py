"""Commands that run another one in a way of their own: `env -S`, `su`, `xargs`, `find -exec`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .behind import Behind, Words, name_of
from .found import NotUnderstood
from .grammar import parse
from .options import Options, split
from .words import Word, literal


def _env(words: Words, behind: Behind) -> None:
    options = Options(
        "i0v",
        "uCaS",
        "ignore-environment null debug unset= chdir= argv0= split-string= block-signal default-signal ignore-signal"
        " list-signal-handling help version",
        assigns=True,
    )
    given = (words[0], *words[2:]) if len(words) > 1 and words[1].text == "-" else words
    found = split(given, options)
    if found.assigned:
        behind.flags.add("env_wrapper")
        behind.notes.append("env sets a variable")
    split_texts = [value for seen, value in found.seen if seen in ("S", "split-string") and value is not None]
    if found.trouble:
        behind.flags.add("env_wrapper")
        behind.puzzled(words, f"env: {found.trouble}")
    elif split_texts:
        behind.flags |= {"env_wrapper", "interpreter_inline"}
        behind.notes.append("env -S splits a text")
        _split_string(split_texts[-1], given[found.rest :], behind)
    elif found.rest < len(given) and not found.stopped:
        behind.runs(given[found.rest :])


def _split_string(text: Word, rest: Sequence[Word], behind: Behind) -> None:
    try:
        commands = parse(text.text).commands if text.static else []
    except NotUnderstood:
        commands = []
    if not commands:
        behind.puzzled(rest, "env -S: a text that is not understood")
        behind.guesses.append(text.text)
    for command in commands:
        inner = [*command, *rest]
        if inner[0].text.startswith("-"):
            inner.insert(0, literal("env"))
        behind.runs(inner)


def _su(words: Words, behind: Behind) -> None:
    """`su` and `runuser` take their options anywhere."""
    behind.flags.add("env_wrapper")
    as_user = any(word.text in ("-u", "--user") or word.text.startswith("--user=") for word in words[1:])
    if name_of(words) == "runuser" and as_user:
        found = split(words, Options("lmpPf", "ugGsw", "user= group= supp-group= shell="))
        if not found.trouble:
            if found.rest < len(words):
                behind.runs(words[found.rest :])
            return
    behind.puzzled(words, f"{name_of(words)} starts a shell")
    behind.feeds = True
    for at, word in enumerate(words[1:], 1):
        text = word.text
        name, equals, value = text[2:].partition("=")
        if (
            text.startswith("--")
            and len(name) > 0
            and any(each.startswith(name) for each in ("command", "session-command"))
        ):
            given = literal(value) if equals and word.static else word if equals else _next(words, at)
        elif text.startswith("-") and not text.startswith("--") and "c" in text:
            value = text[text.index("c") + 1 :]
            given = (literal(value) if word.static else word) if value else _next(words, at)
        else:
            continue
        if given is not None:
            behind.reads(given)


def _next(words: Words, at: int) -> Word | None:
    return words[at + 1] if at + 1 < len(words) else None


def _script(words: Words, behind: Behind) -> None:
    found = split(words, Options("aeqf", "EmTBIOo", "append command= return flush force quiet echo=", text="c"))
    rest = found.rest
    if rest < len(words) and not found.trouble:
        again = split(
            words, Options("aeqf", "EmTBIOo", "append command= return flush force quiet echo=", text="c"), rest + 1
        )
        found.texts += again.texts
        found.trouble = again.trouble
    behind.flags.add("env_wrapper")
    for text in found.texts:
        behind.reads(text)
    if found.trouble or not found.texts:
        behind.puzzled(words, f"script: {found.trouble or 'starts a shell'}")
        behind.feeds = not found.texts


def _joined(words: Words, behind: Behind) -> None:
    """`watch`: its arguments, with blanks between them, are shell text."""
    found = split(
        words, Options("bcCdegptxrwf", "nqs", "interval= differences no-title errexit exec color", stops="hv")
    )
    behind.flags.add("env_wrapper")
    rest = words[found.rest :]
    if found.trouble:
        behind.puzzled(words, f"watch: {found.trouble}")
    elif rest and any(seen in ("x", "exec") for seen, _ in found.seen):
        behind.runs(rest)
    elif rest and not found.stopped:
        _text(rest, behind)


def _text(words: Sequence[Word], behind: Behind) -> None:
    if all(word.static for word in words):
        behind.reads(literal(" ".join(word.text for word in words)))
    else:
        behind.flags.add("interpreter_inline")
        behind.puzzled((words[0], *words), "shell text that is known only at run time")
        behind.guesses.append(" ".join(word.text for word in words))


def _parallel(words: Words, behind: Behind) -> None:
    """GNU parallel puts a command line together from a template: never certain."""
    behind.flags |= {"env_wrapper", "interpreter_inline"}
    behind.puzzled(words, "parallel builds shell text at run time")
    behind.feeds = True
    behind.guesses.extend(word.text for word in words[1:] if word.static)
    found = split(words, Options("0kqXmv", "jnNIaLPsSdC", any_long=True))
    template: list[Word] = []
    for word in words[found.rest :]:
        if word.text.startswith(":::"):
            break
        template.append(word)
    if template and not found.trouble:
        behind.runs(template, open=True)


def _terminal(words: Words, behind: Behind) -> None:
    """tmux, screen and terminals: any argument may be a command or shell text."""
    behind.flags |= {"env_wrapper", "interpreter_inline"}
    behind.puzzled(words, f"{name_of(words)} runs commands out of sight")
    behind.guesses.extend(word.text for word in words[1:] if word.static)


def _xargs(words: Words, behind: Behind) -> None:
    longs = (
        "null arg-file= delimiter= eof replace max-lines max-args= max-procs= max-chars= no-run-if-empty verbose"
        " interactive open-tty process-slot-var= exit show-limits help version"
    )
    found = split(words, Options("0rtpxo", "adEILnPsJRS", longs, stops="eil"))
    if found.trouble or found.stopped:
        behind.flags.add("env_wrapper")
        behind.puzzled(words, f"xargs: {found.trouble or 'an old option'}")
        return
    inner = words[found.rest :]
    if not inner:
        return
    marks = [value.text for seen, value in found.seen if seen in ("I", "J") and value is not None]
    marks += [value.text if value else "{}" for seen, value in found.seen if seen == "replace"]
    mark = marks[-1] if marks else ""
    behind.runs(inner, open=not mark or any(word.text.startswith(mark) for word in inner[1:]))
    if mark and mark in inner[0].text:
        behind.notes.append("a command name from xargs' input")
    if mark and any(mark in word.text and mark != word.text for word in inner):
        behind.feeds = True


def _find(words: Words, behind: Behind) -> None:
    at = 1
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir"):
            inner: list[Word] = []
            at += 1
            ended = False
            while at < len(words) and not ended:
                text = words[at].text
                ended = text == ";" or (text == "+" and bool(inner) and inner[-1].text == "{}")
                if not ended:
                    inner.append(words[at])
                at += 1
            if not ended:
                behind.notes.append("find: a command without its end")
            if inner:
                behind.runs(inner)
                if "{}" in inner[0].text:
                    behind.notes.append("a command name that find fills in")
        else:
            if not words[at].static and '"' not in words[at].raw:
                behind.guesses.append(" ".join(word.text for word in words[at:]))
            at += 1


def _fd(words: Words, behind: Behind) -> None:
    for at, word in enumerate(words[1:], 1):
        if word.text in ("-x", "-X", "--exec", "--exec-batch") and at + 1 < len(words):
            inner = [each for each in words[at + 1 :] if each.text != ";"]
            behind.runs(inner, open=not any("{" in each.text for each in inner))
            return


def _nix_shell(words: Words, behind: Behind) -> None:
    for at, word in enumerate(words[:-1]):
        if word.text in ("--run", "--command"):
            behind.flags.add("env_wrapper")
            behind.reads(words[at + 1])


def _jobs(words: Words, behind: Behind) -> None:
    if len(words) > 2 and words[1].text == "-x":
        behind.runs(words[2:])


def _capsh(words: Words, behind: Behind) -> None:
    """`capsh -- ARGS` starts bash with these arguments."""
    behind.puzzled(words, "capsh starts a shell")
    texts = [word.text for word in words]
    if "--" in texts:
        behind.runs((literal("bash"), *words[texts.index("--") + 1 :]))


def _git(words: Words, behind: Behind) -> None:
    """`git bisect run` and `git submodule foreach`."""
    texts = [word.text for word in words]
    for lead in (["bisect", "run"], ["submodule", "foreach"], ["hook", "run"]):
        for at in range(1, len(words) - 2):
            if texts[at : at + 2] == lead:
                rest = [word for word in words[at + 2 :] if word.text not in ("--recursive", "-q", "--quiet")]
                if rest:
                    behind.maybe.append(tuple(rest))
                    behind.guesses.append(" ".join(word.text for word in rest))
                    behind.notes.append(f"git {' '.join(lead)} runs commands")
                return


SPECIAL: dict[str, Callable[[Words, Behind], None]] = {
    "env": _env,
    "genv": _env,
    "su": _su,
    "runuser": _su,
    "sg": _su,
    "script": _script,
    "watch": _joined,
    "parallel": _parallel,
    "tmux": _terminal,
    "screen": _terminal,
    "xterm": _terminal,
    "zellij": _terminal,
    "dtach": _terminal,
    "abduco": _terminal,
    "xargs": _xargs,
    "gxargs": _xargs,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "nix-shell": _nix_shell,
    "git": _git,
    "jobs": _jobs,
    "capsh": _capsh,
}
