"""Loops of every kind with other tools, lengths, periods and outputs than the recorded ones.

Each is built so that its bounds are known; a guard that had learned the recorded runs by heart would miss them.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

SEEDS = 10
Make = Callable[[Any], Any]
KINDS: dict[str, Make] = {}


def kind(make: Make) -> Make:
    KINDS[make.__name__] = make
    return make


def reordered(s: Any, call: dict[str, Any]) -> dict[str, Any]:
    """The same arguments with another key order and 10 written as 10.0."""
    items = list(call["arguments"].items())
    s.chance.shuffle(items)
    return {**call, "arguments": {k: float(v) if type(v) is int and s.chance.random() < 0.5 else v for k, v in items}}


@kind
def identical(s: Any) -> Any:
    again, start = s.fixed(), s.count
    for _ in range(14):
        s.step(reordered(s, again()), event="continuation" if s.chance.random() < 0.3 else None)
    return s.loop(start + 1, start + 3, start + 7)


@kind
def slow_and_identical(s: Any) -> Any:
    answers = [
        ("npm run build", "error TS2304: cannot find name\nbuild failed", True),
        ("make image", "Sending context\nStep 4/9: cached\nimage tagged", False),
    ]
    command, result, failed = s.chance.choice(answers)
    start = s.count
    for _ in range(14):
        s.step(s.call(s.shell, {s.command: command}, result, failed, s.chance.uniform(12, 60)))
    return s.loop(start + 1, start + 3, start + 7)


@kind
def circle(s: Any) -> Any:
    size = s.chance.randint(2, 12)
    calls, start = s.several(size), s.count
    for _ in range(8):
        for call in calls:
            s.step(call())
    return s.loop(start + size, start + 3 * size, start + 6 * size - 1)


@kind
def circle_with_a_poll(s: Any) -> Any:
    calls = s.several(s.chance.randint(2, 4))
    calls.insert(s.chance.randint(0, len(calls)), lambda: s.call(s.poll, {"id": 3}, "pending", False, 0.2))
    size, start = len(calls), s.count
    for _ in range(8):
        for call in calls:
            s.step(call())
    return s.loop(start + size, start + 3 * size, start + 6 * size - 1)


@kind
def same_error(s: Any) -> Any:
    which, path, word = s.chance.randint(0, 4), s.chance.choice(s.paths), s.chance.choice(s.paths).split("/")[0]
    start = s.count
    for i in range(16):
        match which:
            case 0:
                arguments = {s.key: path, "old": " " * i + word, "new": str(i)}
                s.step(s.call(s.edit, arguments, "Error: no occurrence of the old text", True))
            case 1:
                flag = s.chance.choice(["-s", "-k", "-v", "-L"])
                command = f"curl {flag} --max-time {i + 1} https://{word}.example/api"
                s.step(s.call(s.shell, {s.command: command}, f"curl: (6) could not resolve {word}.example", True))
            case 2:
                wanted = f"{word}=={i // 5}.{i % 5}.1"
                answer = f"ERROR: No matching distribution found for {wanted}"
                s.step(s.call(s.shell, {s.command: f"pip install {wanted}"}, answer, True))
            case 3:
                query = {"sql": f"SELECT {s.line().split()[0]}, {i} FROM {word}"}
                s.step(s.call(s.search, query, f"permission denied for table {word}", True))
            case _:
                s.step(s.call(s.write, {s.key: path, "content": s.line()}, f"{path}: read-only file system", True))
    return s.loop(start + 1, start + 5, start + 11)


@kind
def same_error_between_notes(s: Any) -> Any:
    path, places = s.chance.choice(s.paths), list[int]()
    for _ in range(16):
        places.append(s.count)
        s.step(s.call(s.edit, {s.key: path, "old": s.line(), "new": s.line()}, "String not found in file.", True))
        if s.chance.random() < 0.3:
            s.step(s.call(s.notes, {"items": [s.line()]}, "saved"))
    return s.loop(places[1], places[5], places[11])


@kind
def same_answer(s: Any) -> Any:
    which, name, words = s.chance.randint(0, 5), s.chance.choice(["HandleEntry", "RateTable", "openStore"]), s.line()
    spellings = [name, name.lower(), name.upper(), f"{name}(", f"def {name}", f"fn {name}", rf"{name}\b", rf"\b{name}"]
    spellings += [f"{name}.*", f"({name})", f"{name}|{name.lower()}", f"[{name[0]}]{name[1:]}", f"{name} ", f"'{name}'"]
    spellings += [f"{name}{mark}" for mark in ":=,;{"] + [f"^{name}", f"{name}$"]
    many = "\n".join(f"{path}:7: {name}" for path in s.paths[:4])
    none = s.chance.choice(["[]", "No results.", "(none)", "0 matches", ""])
    start = s.count
    for i, spelling in enumerate(spellings):
        match which:
            case 0:
                call = s.call(s.search, {"pattern": spelling, "path": "."}, many)
            case 1:
                call = s.call(s.search, {"pattern": spelling, "path": "."}, none)
            case 2:
                where = s.chance.choice(["all", "git", "any", "repo"])
                call = s.call(s.search, {"kind": where, "limit": 10 + i, "name": spelling}, none)
            case 3:
                call = s.call(s.notes, {"items": [words], "rev": i, "note": s.line()}, f"Plan saved (rev {i})")
            case 4:
                shuffled = s.chance.sample(words.split(), len(words.split()))
                query = " ".join([*shuffled, s.chance.choice(["bug", "issue", "error", "problem"])])
                call = s.call(s.search, {"query": query}, none)
            case _:
                call = s.call(s.search, {"q": name, "page": 40 + i}, none)
        s.step(call)
    return s.loop(start + 1, start + 8, start + 19)


@kind
def batches(s: Any) -> Any:
    size = s.chance.randint(2, 6)
    calls, start = s.several(size), s.count
    for _ in range(10):
        s.step(*[call() for call in s.chance.sample(calls, size)])
    return s.loop(start + size, start + 3 * size - 1, start + 7 * size - 1)


@kind
def twins_in_one_reply(s: Any) -> Any:
    again, first, later, start = s.fixed(), s.chance.randint(3, 20), s.chance.randint(3, 8), s.count
    for i in range(10):
        s.step(*[again() for _ in range(later if i else first)])
    return s.loop(start + 1, start + first + later - 1, start + first + 6 * later - 1)


@kind
def volatile_answers(s: Any) -> Any:
    which, message, path, bits = s.chance.randint(0, 7), s.line(), s.chance.choice(s.paths), s.chance.getrandbits
    s.tools.update(post_update=s.tools[s.edit], http_get=s.tools[s.read])
    start = s.count
    for i in range(16):
        clock = f"2026-03-1{s.chance.randint(0, 9)}T{s.chance.randint(10, 23)}:{s.chance.randint(10, 59)}:07Z"
        took = s.chance.uniform(0.2, 9)
        match which:
            case 0:
                receipt = f'{{"ok":true,"id":"{UUID(int=bits(128))}","created_at":"{clock}"}}'
                call = s.call("post_update", {"room": "ops", "body": "the import of " + message}, receipt)
            case 1:
                call = s.call(s.shell, {s.command: "make test"}, f"3 failed, 9 passed in {took:.2f}s\nFAILED", True)
            case 2:
                answer = f"down\n(exit 3, {s.chance.randint(4, 90)} ms, pid {s.chance.randint(1000, 60000)})"
                call = s.call(s.shell, {s.command: "service check"}, answer, True)
            case 3:
                answer = f'{{"status":"degraded","request_id":"req_{bits(60):x}","ts":{1760000000 + i * 7}}}'
                call = s.call("http_get", {"url": "https://x.example/health"}, answer)
            case 4:
                call = s.call(s.read, {s.key: path}, f"# generated {clock}\n" + "\n".join(s.files[path]))
            case 5:
                call = s.call(
                    "http_get", {"url": "https://x.example/q"}, f"no rows ({took:.1f} ms) trace={bits(128):032x}"
                )
            case 6:
                answer = f"Started at {clock}\nnothing to do\nElapsed: {took:.2f} s"
                call = s.call(s.shell, {s.command: "./run --all"}, answer)
            case _:
                call = s.call("post_update", {"to": "dana", "text": "please see " + message}, f"sent (ref {bits(16)})")
        s.step(call)
    return s.loop(start + 1, start + 5, start + 11)


@kind
def slow_circle_with_filler(s: Any) -> Any:
    again, which, path, places = s.fixed(), s.chance.randint(0, 3), s.chance.choice(s.paths), list[int]()
    for i in range(14):
        places.append(s.count)
        s.step(again())
        for j in range(s.chance.randint(1, 3)):
            query = s.line()
            match which:
                case 0:
                    arguments = {s.key: path, "old": f"v{i}{j} = {query}()", "new": s.line()}
                    s.step(s.call(s.edit, arguments, "old text was not found", True))
                case 1:
                    s.step(s.call(s.search, {"query": query}, "No documents matched the query."))
                case 2:
                    s.step(s.call(s.notes, {"plan": [query], "why": s.line()}, "Plan updated"))
                case _:
                    s.step(s.call(s.search, {"query": query}, f'No results for "{query}"'))
    return s.loop(places[1], places[5], places[11])


@kind
def late(s: Any) -> Any:
    s.work(s.chance.randint(15, 30))
    size = s.chance.randint(1, 3)
    calls, start = s.several(size), s.count
    for _ in range(10):
        for call in calls:
            s.step(call())
    if size == 1:
        return s.loop(start + 1, start + 3, start + 7)
    return s.loop(start + size, start + 3 * size, start + 6 * size - 1)


@kind
def in_a_child(s: Any) -> Any:
    again = s.fixed()
    s.step(s.call("spawn_agent", {"name": "kid", "task": "Look into " + s.line()}, "kid started"))
    s.step(s.finding(), agent="kid")
    start = s.count
    for _ in range(14):
        s.step(again(), agent="kid")
    return s.loop(start + 1, start + 3, start + 7)


@kind
def same_errand(s: Any) -> Any:
    path, start, worded = s.chance.choice(s.paths), s.count, s.chance.random() < 0.5
    ask = f"Find out how {s.line()} is handled in {path} and report the facts"
    answers = [
        f"It is handled in {path}; there are no tests.",
        f"My report: {path} does it, tests are missing.",
        f"As said before: see {path}, untested.",
        f"Facts: one place, {path}, no test coverage.",
    ]
    for i in range(14):
        s.step(s.call(s.ask, {"task": ask}, answers[i % 4 if worded else 0], False, s.chance.uniform(20, 130)))
    return s.loop(start + 1, start + (4 if worded else 3), start + (8 if worded else 7))


@kind
def reworded_errand(s: Any) -> Any:
    name, start = s.line().split()[0], s.count
    asks = [
        f"Deploy the {name} service and run the smoke checks",
        f"Please run the smoke checks after you deploy the {name} service",
        f"Could you deploy the {name} service? Then run smoke checks",
        f"We need the {name} service deployed and smoke checks run",
        f"Kindly deploy the {name} service now, smoke checks included",
    ]
    refusals = [
        "I cannot deploy: no credentials for the cluster here.",
        "Deploying is impossible, cluster credentials are missing.",
        "Still no credentials for the cluster, so I cannot deploy.",
        "No cluster credentials here; deploy not possible.",
    ]
    for i in range(16):
        s.step(s.call(s.ask, {"message": asks[i % 5]}, refusals[i % 4], False, s.chance.uniform(20, 130)))
    return s.loop(start + 1, start + 5, start + 11)


@kind
def same_errand_for_fresh_agents(s: Any) -> Any:
    ask, start = f"Collect everything about {s.line()} and report it", s.count
    answers = [
        "The facts: one module, no tests.",
        "One module holds it; tests are missing.",
        "Single module, untested.",
    ]
    for i in range(14):
        s.step(s.call("spawn_agent", {"name": f"helper-{i}", "task": ask}, s.chance.choice(answers), False, 40.0))
    return s.loop(start + 1, start + 4, start + 8)


@kind
def same_words(s: Any) -> Any:
    start, text = len(s.steps), s.chance.choice(["I am waiting for your input.", "The task is complete.", ""])
    for i in range(12):
        s.step(text=text, event="continuation" if i else None)
    return s.loop(start + 1, start + 3, start + 6, "step")


@kind
def chant(s: Any) -> Any:
    start = len(s.steps)
    block = s.chance.choice([f"I will check {s.line()}. ", f"Now {s.line()}.\n\nThen {s.line()}.\n\n", "No, wait. "])
    for i in range(6):
        s.step(text=s.line() + ". " + block * max(12, 900 // len(block)), event="continuation" if i else None)
    return s.loop(start, start, start + 2, "step")


@kind
def across_compactions(s: Any) -> Any:
    again, start = s.fixed(), s.count
    for i in range(14):
        event = s.chance.choice([None, None, "compaction", "resume", "continuation"])
        s.step(again(), event=event if i > 1 else None)
    return s.loop(start + 2, start + 4, start + 8)


@kind
def reading_anew_after_each_compaction(s: Any) -> Any:
    size = s.chance.randint(2, 6)
    paths, start = s.chance.sample(s.paths, size), s.count
    for round_ in range(10):
        for i, path in enumerate(paths):
            s.step(s.reading(path), event="compaction" if round_ and not i else None)
    return s.loop(start + 2 * size, start + 4 * size - 1, start + 7 * size - 1)


@kind
def busy_poll(s: Any) -> Any:
    which, start = s.chance.randint(0, 2), s.count
    for i in range(60):
        answer = "queued: no runner" if which else f"running; updated_at=2026-01-01T10:{i:02d}:00Z idle={i * 4}s"
        s.step(s.call(s.poll, {"id": i % 2 if which == 2 else 77}, answer, False, 0.1))
    return s.loop(start + 6, start + 14, start + 44)


@kind
def poll_after_the_end(s: Any) -> Any:
    for i in range(4):
        s.step(s.call(s.poll, {"id": 77}, f"running {i * 20}%", False, 0.2))
        s.step(s.call(s.poll, {"wait": 30}, "waited 30 s", False, 30.0))
    start, answer = s.count, s.chance.choice(["succeeded, 14 rows", "finished: exit 1", "state=DONE"])
    for _ in range(30):
        s.step(s.call(s.poll, {"id": 77}, answer, False, 0.2))
    return s.loop(start + 1, start + 7, start + 19)


@kind
def reading_in_shifted_windows(s: Any) -> Any:
    lines, size, which = s.chance.choice([250, 300, 480]), s.chance.choice([40, 50]), s.chance.randint(0, 2)
    path, file = s.chance.choice(s.paths), s.content(lines)

    def window(start: int) -> Any:
        body = "\n".join(file[start : start + size])
        if which == 0:
            return s.call(s.shell, {s.command: f"sed -n '{start + 1},{start + size}p' {path}"}, body)
        head = f"[lines {start + 1}-{start + size} of {lines}]\n" if which == 1 else ""
        return s.call(s.read, {s.key: path, "start": start + 1, "count": size}, head + body)

    starts = list(range(0, lines, size))
    for start in starts:
        s.step(window(start))
    first, passes = s.count, len(starts)
    for shift in range(1, 4):
        for start in s.chance.sample(starts, passes):
            s.step(window(max(0, start - 7 * shift)))
    return s.loop(first, first + passes - 1, first + 3 * passes - 1)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_loop_is_nudged_and_ended_in_time(name: str, scene: Callable[[str], Any], replay: Callable[..., Any]) -> None:
    """A made-up loop is nudged and ended within its bounds, whether or not refusals come back as results."""
    for seed in range(SEEDS):
        made = scene(f"{name}-{seed}")
        made.opening()
        run = KINDS[name](made)
        for veto in (False, True):
            score = replay(run, veto)
            assert score.right, (seed, veto, score)
