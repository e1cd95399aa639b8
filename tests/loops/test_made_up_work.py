"""Work that repeats itself and is right to: other tools, lengths and outputs than the recorded runs.

Nothing here may ever be blocked or stopped. A nudge is wrong where `nudge_ok` is not given.
"""

from collections.abc import Callable
from typing import Any

import pytest

SEEDS = 10
Make = Callable[[Any], Any]
KINDS: dict[str, Make] = {}


def kind(make: Make) -> Make:
    KINDS[make.__name__] = make
    return make


@kind
def polling_that_moves(s: Any) -> Any:
    which, count = s.chance.randint(0, 4), s.chance.randint(8, 40)
    for i in range(count):
        match which:
            case 0:
                call = s.call(s.poll, {"id": 5}, f"running {100 * i // count}%")
            case 1:
                call = s.call(s.shell, {s.command: "kubectl rollout status d/web"}, f"{i} of {count} replicas updated")
            case 2:
                call = s.call(s.poll, {"id": 5}, f"uploading, ETA {10 * (count - i)} s")
            case 3:
                answer = f"{count - i} left in queue; updated_at=2026-01-01T10:00:{i:02d}Z"
                call = s.call(s.poll, {"id": 5}, answer)
            case _:
                call = s.call(s.poll, {"id": 5}, "\n".join(f"[{i * 3 + j}] building {s.line()}" for j in range(3)))
        s.step(call, text="Still going.")
    return s.legit()


@kind
def waiting_for_others(s: Any) -> Any:
    which, count = s.chance.randint(0, 4), s.chance.randint(4, 40)
    answer = s.chance.choice(["pending", "in_progress", "12 of 40 completed", "status: training, failed: 0"])
    s.tools["get_status"] = s.tools[s.read]
    for _ in range(count):
        match which:
            case 0:
                s.step(s.call(s.poll, {"id": 5, "timeout": 60}, answer, False, s.chance.choice([30.0, 60.0])))
            case 1:
                s.step(s.call(s.poll, {"seconds": 60}, "waited 60 s", False, 60.0))
                s.step(s.call(s.poll, {"id": 5}, answer, False, 0.3))
            case 2:
                s.at += s.chance.uniform(40, 90)
                s.step(s.call(s.poll, {"id": 5}, answer, False, 0.3))
            case 3 if _ < 12:
                s.step(s.call("get_status", {"id": 5}, answer, False, 0.3))
                s.step(s.call(s.poll, {"seconds": 30}, "waited 30 s", False, 30.0))
            case 4 if _ < 12:
                s.step(s.call("ask_user", {"question": "May I deploy to staging?"}, "no answer yet", False, 300.0))
            case _:
                pass
    return s.legit(nudge_ok=True)


@kind
def waiting_in_the_shell(s: Any) -> Any:
    which = s.chance.randint(0, 3)
    for i in range(s.chance.randint(4, 9)):
        if which == 3:
            s.step(s.call(s.shell, {s.command: "sleep 30; curl -fs x:8080"}, "curl: (7) refused", True, 30.2))
        elif which == 0:
            s.step(s.call(s.shell, {s.command: "sleep 45; ci status 12"}, "running", False, 45.3))
        elif which == 1:
            s.step(s.call(s.shell, {s.command: "sleep 60"}, "", False, 60.0))
            s.step(s.call(s.shell, {s.command: "docker ps"}, f"db Up {i + 1} minutes (starting)", False, 0.4))
        else:
            s.step(s.call(s.shell, {s.command: ""}, "[still running, no new output]", False, 30.0))
    return s.legit(nudge_ok=True)


@kind
def tail_of_a_log(s: Any) -> Any:
    forms = ["10:{m:02d}:{s:02d} {l}", "2026-02-03T10:{m:02d}:{s:02d}Z {l}", "Feb 03 10:{m:02d}:{s:02d} host {l}"]
    form, which, lines, still = s.chance.choice(forms), s.chance.randint(0, 2), list[str](), True
    for _ in range(s.chance.randint(10, 30)):
        still = not still and s.chance.random() < 0.25
        for _ in range(0 if still else s.chance.randint(1, 3)):
            entry = s.chance.choice(["GC 14ms", "cache miss", "flush 12 rows", "GET /x 200"])
            lines.append(form.format(m=len(lines) // 60, s=len(lines) % 60, l=entry))
        shown = "\n".join(lines[-6:])
        if which == 0:
            s.step(s.call(s.poll, {"log": "app", "lines": 6}, shown))
        elif which == 1:
            s.step(s.call(s.shell, {s.command: "tail -n 6 /var/log/x"}, shown))
        else:
            s.step(s.call(s.read, {s.key: "/tmp/x.log", "tail": 6}, shown))
    return s.legit()


@kind
def edit_and_test(s: Any) -> Any:
    count, stuck = s.chance.randint(6, 16), s.chance.random() < 0.5
    for i in range(count):
        s.step(s.editing())
        took = f"in {s.chance.uniform(1, 5):.2f}s"
        answer = f"1 failed {took}" if stuck else f"{count - i} failed, {i} passed {took}"
        s.step(s.call(s.shell, {s.command: "make test"}, answer, True))
    return s.legit()


@kind
def edit_and_read_again(s: Any) -> Any:
    for _ in range(s.chance.randint(5, 12)):
        s.step(s.editing(s.paths[0]))
        s.step(s.reading(s.paths[0]))
    return s.legit()


@kind
def edit_and_lint(s: Any) -> Any:
    answer = s.chance.choice(["(no output)", "ok", "All checks passed!\n0 warnings\n12 files\nclean\nbye"])
    for _ in range(s.chance.randint(6, 20)):
        s.step(s.editing())
        s.step(s.call(s.shell, {s.command: "lint ."}, answer))
    return s.legit()


@kind
def status_between_work(s: Any) -> Any:
    states = [("pwd", "/home/x"), ("git status", "clean"), ("tickets --mine", "T-4 open\nT-9 open")]
    (command, answer), which = s.chance.choice(states), s.chance.randint(0, 2)
    for i in range(s.chance.randint(6, 12)):
        s.step(s.call(s.shell, {s.command: command}, answer))
        if which == 0:
            s.step(s.editing())
        elif which == 1:
            s.step(s.call(s.read, {s.key: f"notes/d{i}.md"}, "\n".join(s.content())))
        else:
            s.step(s.call(s.write, {s.key: f"o/{i}.md", "content": s.line()}, "ok"))
    return s.legit()


@kind
def pages(s: Any) -> Any:
    which, file = s.chance.randint(0, 3), s.content(900)
    for i in range(s.chance.randint(8, 22)):
        body = "\n".join(file[i * 40 : i * 40 + 40])
        match which:
            case 0:
                s.step(s.call(s.read, {s.key: "big.txt", "offset": i * 40, "limit": 40}, body))
            case 1:
                items = list(range(i * 9, i * 9 + 9))
                s.step(s.call(s.search, {"state": "late", "page": i}, f'{{"items":{items},"next":{i + 1}}}'))
            case 2:
                s.step(s.call(s.shell, {s.command: "next-batch c1"}, f'{{"rows":["r{i}-0","r{i}-1"],"cursor":"c1"}}'))
            case _:
                s.step(s.call(s.shell, {s.command: f"sed -n '{i * 40 + 1},{i * 40 + 40}p' big.txt"}, body))
    return s.legit()


@kind
def one_command_in_many_places(s: Any) -> Any:
    which = s.chance.randint(0, 2)
    for place in s.chance.sample(s.paths, s.chance.randint(6, 10)):
        folder = place.split("/")[0]
        if which == 0:
            s.step(s.call(s.shell, {s.command: "git pull", "cwd": f"/srv/{folder}"}, "Already up to date."))
        elif which == 1:
            s.step(s.call(s.shell, {s.command: f"cd /srv/{folder}"}, ""))
            s.step(s.call(s.shell, {s.command: "ls *.toml | wc -l"}, s.chance.choice(["1", "1", "2"])))
        else:
            s.step(s.call(s.shell, {s.command: "vet ./...", "workdir": folder}, "ok"))
    return s.legit()


@kind
def one_change_for_many_items(s: Any) -> Any:
    which = s.chance.randint(0, 2)
    for i in range(s.chance.randint(10, 40)):
        if which == 0:
            s.step(s.call(s.write, {s.key: f"i18n/part{i}.json", "content": "{}"}, "ok"))
        elif which == 1:
            s.step(s.call(s.edit, {"id": i, "file": f"inv_{i}.pdf"}, "true"))
        else:
            s.step(s.call(s.shell, {s.command: f"mv old/{i}.c new/{i}.c"}, ""))
            s.step(s.call(s.search, {"pattern": f"old/{i}", "path": "src"}, "no matches"))
    return s.legit()


@kind
def retries(s: Any) -> Any:
    error = s.chance.choice(["503 Service Unavailable", "connection reset by peer", "deadlock, try again"])
    for i in range(s.chance.randint(1, 3)):
        for _ in range(2):
            s.step(s.call(s.shell, {s.command: f"push b{i}"}, error, True))
        s.step(s.call(s.poll, {"seconds": 10}, "waited 10 s", False, 10.0))
        s.step(s.call(s.shell, {s.command: f"push b{i}"}, f"ok {i}"))
        s.step(s.reading(s.paths[i]))
    return s.legit()


@kind
def backing_off(s: Any) -> Any:
    same = s.chance.random() < 0.5
    for i in range(s.chance.randint(4, 6)):
        what = "all" if same else i
        s.step(s.call(s.search, {"url": f"https://a.example/items/{what}"}, "429 Too Many Requests", True))
        pause = s.chance.choice([5, 2]) * 2**i
        s.step(s.call(s.poll, {"seconds": pause}, f"waited {pause} s", False, float(pause)))
    return s.legit(nudge_ok=True)


@kind
def probing_for_a_file(s: Any) -> Any:
    which, count = s.chance.randint(0, 2), s.chance.randint(4, 8)
    paths = [[f"{p.split('/')[0]}/app.toml", p, f"/usr/{p}.so"][which] for p in s.paths[:count]]
    calls = [s.call(s.read, {s.key: path}, "Error: file not found", True) for path in paths]
    if s.chance.random() < 0.3:
        s.step(*calls)
    else:
        for call in calls:
            s.step(call)
    s.step(s.finding())
    return s.legit(nudge_ok=True)


@kind
def audit_that_finds_nothing(s: Any) -> Any:
    which = s.chance.randint(0, 3)
    banned = ["eval(", "exec(", "pickle.loads", "yaml.load(", "md5(", "os.system", "shell=True", "verify=False"]
    banned += ["strcpy", "rand()", "gets(", "system(", "popen2", "tempnam", "marshal"]
    for call in s.chance.sample(banned, s.chance.randint(8, 15)):
        if which == 0:
            s.step(s.call(s.search, {"pattern": call, "path": "src"}, "No matches found"))
        elif which == 1:
            s.step(s.call(s.shell, {s.command: f"grep -rn '{call}' ."}, "", True))
        elif which == 2:
            s.step(s.call(s.search, {"query": f"{call} advisory"}, f"1. About {call}\n2. {s.line()}"))
        else:
            s.step(s.call(s.search, {"pattern": call, "path": "."}, f"0 matches for {call}"))
    return s.legit(nudge_ok=True)


@kind
def one_check_for_many_items(s: Any) -> Any:
    which = s.chance.randint(0, 2)
    for i in range(s.chance.randint(8, 14)):
        if which == 0:
            s.step(s.call(s.search, {"exists": s.paths[i]}, "true"))
        elif which == 1:
            s.step(s.call(s.search, {"id": 100 + i}, "active"))
        else:
            s.step(s.call(s.search, {"service": s.paths[i].split("/")[0]}, "healthy"))
    return s.legit()


@kind
def different_errands(s: Any) -> Any:
    which, together = s.chance.randint(0, 2), s.chance.random() < 0.4
    calls: list[dict[str, Any]] = []
    for i in range(s.chance.randint(4, 10)):
        path, word = s.paths[i], s.paths[i].split("/")[0]
        match which:
            case 0:
                calls.append(s.call(s.ask, {"task": f"Review {path} for leaks in the cache"}, "No problems found."))
            case 1:
                task = {"name": f"w{i}", "task": f"Study the {word} subsystem and report"}
                calls.append(s.call(s.ask, task, "started"))
            case _:
                calls.append(s.call(s.ask, {"task": f"Translate the {word} chapter into Danish"}, "Done."))
    if together:
        s.step(*calls)
    else:
        for call in calls:
            s.step(call)
    return s.legit()


@kind
def rounds_between_two_children(s: Any) -> Any:
    count = s.chance.randint(4, 8)
    for i in range(count):
        fixed = f"Fixed case_{count - i} in {s.paths[i]}."
        s.step(s.call("delegate_to_coder", {"task": "Fix the next failing test of the suite"}, fixed))
        figures = f"{count - i - 1} failed, {20 + i} passed"
        s.step(s.call("delegate_to_tester", {"task": "Run the whole test suite and report"}, figures))
    return s.legit()


@kind
def running_a_shaky_test_again(s: Any) -> Any:
    for _ in range(s.chance.randint(3, 6)):
        fails = s.chance.random() < 0.3
        answer = f"1 {'failed' if fails else 'passed'} in {s.chance.uniform(0.3, 2):.2f}s"
        s.step(s.call(s.shell, {s.command: "make test T=x"}, answer, fails), text="Again, to see whether it is flaky.")
    return s.legit(nudge_ok=True)


@kind
def measuring_two_ways(s: Any) -> Any:
    which = s.chance.randint(0, 3)
    for i in range(s.chance.randint(3, 6) * 2):
        on, took = i % 2 == 0, s.chance.uniform(12, 13) + 3 * (i % 2)
        match which:
            case 0:
                s.step(s.call("set_flag", {"name": "f", "value": on}, "ok"))
                s.step(s.call(s.shell, {s.command: "./bench"}, f"throughput {900 - took * 9:.1f} req/s ({took:.1f} s)"))
            case 1:
                s.step(s.call(s.shell, {s.command: f"FAST={on} ./run"}, f"mean {took:.2f} ms, p95 {took * 2:.2f} ms"))
            case 2:
                s.step(s.call(s.shell, {s.command: f"FAST={on} ./bench"}, f"real 0m{took:.3f}s"))
            case _:
                s.step(s.call(s.shell, {s.command: f"hyper --c={on}"}, f"Time: {took:.2f} ms ± 0.31 ms, 10 runs"))
    return s.legit(nudge_ok=True)


@kind
def bisecting(s: Any) -> Any:
    which, low, high = s.chance.randint(0, 2), 0, s.chance.choice([256, 500, 1000])
    culprit = s.chance.randint(1, high - 1)
    while high - low > 1:
        middle = (low + high) // 2
        bad = middle >= culprit
        match which:
            case 0:
                s.step(s.call(s.shell, {s.command: "make test"}, "1 failed" if bad else "all passed", bad))
                mark = f"[{s.chance.getrandbits(48):012x}] change {middle}"
                command = f"git bisect {'bad' if bad else 'good'}"
                s.step(s.call(s.shell, {s.command: command}, f"Bisecting: {high - low} left\n{mark}"))
            case 1:
                s.step(s.call(s.search, {"sql": f"SELECT ok FROM e WHERE id = {middle}"}, "f" if bad else "t"))
            case _:
                arguments = {s.key: "load.cfg", "old": f"n={middle - 1}", "new": f"n={middle}"}
                s.step(s.call(s.edit, arguments, "Edited load.cfg"))
                s.step(s.call(s.shell, {s.command: "./load"}, "FAIL" if bad else "PASS", bad))
        low, high = (low, middle) if bad else (middle, high)
    return s.legit(nudge_ok=which == 1)


@kind
def counting(s: Any) -> Any:
    which = s.chance.randint(0, 3)
    s.tools["now"] = s.tools[s.read]
    for i in range(s.chance.randint(6, 20)):
        now = s.call("now", {}, f"2026-01-01T08:{i:02d}:11Z")
        match which:
            case 0:
                s.step(s.call("increment", {"key": "visits"}, str(i + 1)))
            case 1:
                s.step(s.call(s.shell, {s.command: "next(rows)"}, f"Row(id={i}, w={i * 37 % 101})"))
            case 2:
                s.step(now)
                s.step(s.call(s.write, {s.key: f"log/{i}", "content": "x"}, "ok"))
            case _:
                s.step(now)
    return s.legit()


@kind
def stepping_in_a_debugger(s: Any) -> Any:
    line = 40
    for i in range(s.chance.randint(10, 30)):
        line += s.chance.choice([1, 1, 2, -3])
        where = f"main.c:{line} in {s.line().split()[0]}()\n-> x = {i * 31 % 80}"
        s.step(s.call("debugger", {"command": "next"}, where))
        if i % 6 == 5:
            s.step(s.call("debugger", {"command": "print t"}, f"t = {i}"))
    return s.legit()


@kind
def clicking_on(s: Any) -> Any:
    which = s.chance.randint(0, 3)
    s.tools["snapshot"] = s.tools[s.read]
    for i in range(s.chance.randint(6, 12)):
        match which:
            case 0:
                s.step(s.call("click", {"name": "Next"}, '{"success": true}'))
                s.step(s.call("snapshot", {}, f"page {i + 2} of 40: {s.line()}"))
            case 1:
                s.step(s.call("click", {"selector": "#more"}, f"clicked; {20 * i} items"))
            case 2:
                s.step(s.call("press_key", {"key": "PageDown"}, "ok"))
                s.step(s.call("snapshot", {}, "\n".join(s.content(4))))
            case _:
                for _ in range(s.chance.randint(1, 3)):
                    s.step(s.call("press_key", {"key": "Down"}, "ok"))
                s.step(s.call("snapshot", {}, f"row {i * 3}: {s.line()}"))
    return s.legit()


@kind
def keeping_a_list(s: Any) -> Any:
    items = [s.line() for _ in range(8)]
    for i in range(8):
        todos = [{"content": item, "status": "done" if j < i else "open"} for j, item in enumerate(items)]
        s.step(s.call(s.notes, {"todos": todos}, "saved"))
        s.step(s.reading(s.paths[i]))
        s.step(s.editing(s.paths[i]))
        if s.chance.random() < 0.3:
            s.step(s.call(s.notes, {"todos": todos}, "saved"))
    return s.legit()


@kind
def a_human_who_asks_again(s: Any) -> Any:
    again, talks = s.fixed(), s.chance.random() < 0.5
    for _ in range(s.chance.randint(6, 12)):
        s.step(again(), event="user_message")
        if talks:
            s.step(text="There are 41 of them.")
    return s.legit()


@kind
def reading_once_more_after_compaction(s: Any) -> Any:
    paths = s.chance.sample(s.paths, s.chance.randint(1, 6))
    for path in paths:
        s.step(s.reading(path))
    for round_ in range(s.chance.randint(2, 4)):
        for i in range(4):
            s.step(s.call(s.write, {s.key: f"out/g{round_}_{i}.md", "content": f"{round_}{i}"}, "written"))
        s.step(s.call(s.shell, {s.command: "make test"}, f"{3 - round_} failed, {20 + round_} passed", True))
        for i, path in enumerate(paths):
            s.step(s.reading(path), event=None if i else "compaction")
    return s.legit()


@kind
def a_loop_left_by_itself(s: Any) -> Any:
    count, wrong, reading = s.chance.randint(3, 5), s.misediting(s.paths[3]), s.reading(s.paths[3])
    s.step(s.editing(s.paths[5]))
    again = s.fixed()
    pairs = s.chance.random() < 0.5
    for i in range(count):
        s.step(dict(wrong) if pairs else again())
        if pairs and i < count - 1:
            s.step(dict(reading))
    s.step(s.reading(s.paths[9]))
    s.step(s.editing(s.paths[9]))
    return s.legit(nudge_ok=True)


@kind
def finding_and_fixing(s: Any) -> Any:
    for path in s.chance.sample(s.paths, 6):
        s.step(s.misediting(path))
        s.step(s.reading(path))
        s.step(s.editing(path))
        s.step(s.call(s.shell, {s.command: "make test"}, "3 failed", True))
    return s.legit()


@kind
def thinking_between_steps(s: Any) -> Any:
    s.tools["think"] = s.tools[s.notes]
    for i in range(10):
        s.step(s.call("think", {"thought": s.line()}, "ok"))
        s.step(s.editing() if s.chance.random() < 0.5 else s.reading(s.paths[i]))
    return s.legit()


@kind
def telling_what_was_done(s: Any) -> Any:
    for i in range(s.chance.randint(5, 10)):
        receipt = f'{{"ok":true,"id":"{s.chance.getrandbits(128):032x}"}}'
        s.step(s.call("send_message", {"to": "#ops", "text": f"Step {i} is done: {s.line()}"}, receipt))
    return s.legit()


@kind
def a_long_answer_in_parts(s: Any) -> Any:
    for i in range(s.chance.randint(4, 8)):
        s.step(text=f"Part {i}: {s.line()} {s.line()}", event="continuation" if i else None)
    return s.legit()


@kind
def a_long_day(s: Any) -> Any:
    bad = 20
    for i in range(40):
        match s.chance.randint(0, 5):
            case 0:
                s.step(s.editing())
                s.step(s.call(s.shell, {s.command: "lint ."}, "All checks passed!"))
            case 1:
                bad -= 1
                s.step(s.editing())
                took = s.chance.uniform(2, 8)
                s.step(s.call(s.shell, {s.command: "make test"}, f"{bad} failed in {took:.2f}s", True))
            case 2:
                s.step(s.call(s.write, {s.key: f"gen/{i}.txt", "content": str(i)}, "written"))
                s.step(s.call(s.search, {"status": True}, f"modified: {i} files"))
            case 3:
                s.step(s.call(s.notes, {"todos": [s.line()]}, "saved"))
                s.step(s.editing())
            case 4:
                files = s.chance.sample(s.paths, 3)
                s.step(*[s.call(s.read, {s.key: f, "offset": i * 10}, "\n".join(s.content(10))) for f in files])
            case _:
                mark = f"[main {s.chance.getrandbits(28):07x}] part {i}"
                s.step(s.call(s.shell, {s.command: f"git commit -m 'part {i}'"}, mark))
    return s.legit()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_work_is_never_blocked_or_stopped(name: str, scene: Callable[[str], Any], replay: Callable[..., Any]) -> None:
    """Made-up work is never blocked or stopped, and not nudged where a careful person would not ask either."""
    for seed in range(SEEDS):
        made = scene(f"{name}-{seed}")
        made.opening()
        score = replay(KINDS[name](made))
        assert score.right, (seed, score)
        assert not score.nudged_wrongly, (seed, score)
