"""Commands that run another one: `env`, `timeout`, `sudo`, `find -exec`. Each is looked through; both are decided."""

from __future__ import annotations

from .behind import Behind, Words, name_of
from .looks import SPECIAL
from .options import Options, split
from .wrapping import LOADER, RUNNER_OPERANDS, RUNNER_OPTIONS, RUNNERS, WRAPPERS


def look_through(words: Words, behind: Behind) -> None:
    """Find what a wrapper runs."""
    name = name_of(words)
    special = SPECIAL.get(name)
    if special is not None:
        special(words, behind)
    elif name in WRAPPERS:
        _ordinary(words, behind, WRAPPERS[name])
    elif LOADER.match(name):
        _ordinary(words, behind, Options(values="l", any_long=True))
    elif name in RUNNERS:
        _runner(words, behind)


def is_wrapper(name: str) -> bool:
    """Whether some of its arguments may be a command."""
    return name in SPECIAL or name in WRAPPERS or name in RUNNERS


def _ordinary(words: Words, behind: Behind, options: Options) -> None:
    found = split(words, options)
    name = name_of(words)
    if found.assigned:
        behind.flags.add("env_wrapper")
        behind.notes.append(f"{name} sets a variable")
    for text in found.texts:
        behind.flags.add("env_wrapper")
        behind.reads(text)
    if name in ("strace", "ltrace", "time", "gtime") and any(seen in ("o", "output") for seen, _ in found.seen):
        behind.notes.append(f"{name} writes a file")
    if found.trouble:
        behind.flags.add("env_wrapper")
        behind.puzzled(words, f"{name}: {found.trouble}")
    elif name == "sudo" and any(seen in ("s", "i", "shell", "login") for seen, _ in found.seen):
        behind.flags.add("env_wrapper")
        behind.feeds = found.rest == len(words)
        behind.puzzled(words, "sudo starts a shell")
        if found.rest < len(words):
            behind.runs(words[found.rest :])
    elif found.stopped or found.rest == len(words):
        return
    elif name == "flock" and words[found.rest].text in ("-c", "--command"):
        behind.flags.add("env_wrapper")
        for text in words[found.rest + 1 :]:
            behind.reads(text)
    elif name == "entr" and any(seen == "s" for seen, _ in found.seen):
        behind.flags.add("env_wrapper")
        behind.reads(words[found.rest])
    else:
        behind.runs(words[found.rest :])


def _runner(words: Words, behind: Behind) -> None:
    name = name_of(words)
    for lead in RUNNERS[name]:
        count = len(lead.split())
        if [word.text for word in words[1 : 1 + count]] != lead.split():
            continue
        options = Options(
            RUNNER_OPTIONS.flags,
            RUNNER_OPTIONS.values,
            " ".join(RUNNER_OPTIONS.longs),
            RUNNER_OPERANDS.get(name, 0),
        )
        found = split(words, options, 1 + count)
        if found.trouble:
            behind.flags.add("env_wrapper")
            behind.puzzled(words, f"{name}: {found.trouble}")
        elif found.rest < len(words) and not found.stopped:
            behind.named = True
            behind.runs(words[found.rest :])
        return
