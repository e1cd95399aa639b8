"""A server over pipes that does what no server should. python wayward_server.py MODE... ; of the standard library alone.

Modes that change how it starts or ends, any number of them:
  silent       never answers to initialize        quits        ends at once with code 3 and a word on stderr
  banner       greets on stdout first             latin        writes bytes that are no UTF-8 first
  deaf         ignores the end of its input       stubborn     ignores SIGTERM as well
  child        leaves a child behind              daemon       leaves a child in a session of its own behind
  odd-tool     lists a tool that is none          pages        lists its tools on five pages
  circle       lists pages that never end         twice        lists a tool two times
  repeatable   says that all its tools only read  moody        asks something else each time it is started
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

MODES = set(sys.argv[1:])
OUT = sys.stdout.buffer
LOCK = threading.Lock()
ANSWERS = {}
GROWN = []
OBJECT = {"type": "object"}


def write(data):
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def ask(method, params):
    """Ask the client something and wait for what it says."""
    number = f"server-{len(ANSWERS)}"
    answered = threading.Event()
    ANSWERS[number] = answered
    send(id=number, method=method, params=params)
    answered.wait(30)
    return ANSWERS[number]


def tools():
    names = ["echo", "sleep", "big", "flood", "die", "hang", "half", "garble", "close", "grow", "wrong", "malformed"]
    found = [{"name": name, "description": f"Does {name}.", "inputSchema": OBJECT} for name in [*names, *GROWN]]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    found.append({"name": "lies", "inputSchema": OBJECT, "outputSchema": schema})
    found += [{"name": name, "inputSchema": OBJECT} for name in ("ask_human", "ask_model", "ask_roots", "picture")]
    for tool in found if "repeatable" in MODES else found[:1]:
        tool["annotations"] = {"readOnlyHint": True}
    return found


def listed(params):
    if "pages" in MODES:
        page = int(params.get("cursor") or 0)
        one = {"tools": [{"name": f"tool{page}", "inputSchema": OBJECT}]}
        return {**one, "nextCursor": str(page + 1)} if page < 4 else one
    if "circle" in MODES:
        return {"tools": [{"name": "only", "inputSchema": OBJECT}], "nextCursor": "again"}
    if "odd-tool" in MODES:
        return {"tools": [{"name": "good", "inputSchema": OBJECT}, {"name": "bad"}, "none"]}
    if "twice" in MODES:
        return {"tools": [{"name": "echo", "inputSchema": OBJECT}] * 2}
    return {"tools": tools()}


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(number, name, given, token):
    if name == "echo":
        return text(json.dumps(given, sort_keys=True))
    if name == "sleep":
        steps = max(1, round(given.get("seconds", 1) / 0.1))
        for step in range(steps):
            time.sleep(0.1)
            if token is not None:
                params = {"progressToken": token, "progress": step + 1, "total": steps, "message": "sleeping"}
                send(method="notifications/progress", params=params)
        return text("slept")
    if name == "big":
        return text("x" * given["size"])
    if name == "flood":
        for _ in range(given["lines"]):
            sys.stderr.write("e" * 999 + "\n")
        sys.stderr.flush()
        return text("flooded")
    if name == "die":
        sys.stderr.write("I am not well\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "hang":
        return None
    if name == "half":
        write(b'{"jsonrpc": "2.0", "id":')
        os._exit(0)
    if name == "garble":
        write(b'DEBUG \xff\xfe not json\n\n[]\n{"jsonrpc": "2.0"}\n')
        return text("garbled")
    if name == "close":
        OUT.flush()
        os.close(1)
        time.sleep(60)
    if name == "grow":
        GROWN.append(given.get("name", "grown"))
        send(method="notifications/tools/list_changed")
        return text("grown")
    if name == "wrong":
        send(id=999999, result=text("for nobody"))
        return None
    if name == "malformed":
        send(id=number, result=7)
        return None
    if name == "lies":
        return text("lies", structuredContent={"n": "no number"})
    if name == "ask_human":
        schema = given.get("schema") or {"type": "object", "properties": {"word": {"type": "string"}}}
        words = f"Which word, {os.getpid()}?" if "moody" in MODES else "Which word?"
        return text(json.dumps(ask("elicitation/create", {"message": words, "requestedSchema": schema})))
    if name == "ask_model":
        messages = [{"role": "user", "content": {"type": "text", "text": given.get("text", "Say something.")}}]
        return text(json.dumps(ask("sampling/createMessage", {"messages": messages, "maxTokens": 500})))
    if name == "ask_roots":
        return text(json.dumps(ask("roots/list", {})))
    if name == "picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}]}
    return text(f"no tool {name}", isError=True)


def serve(message):
    number, method, params = message["id"], message["method"], message.get("params") or {}
    if method == "initialize":
        if "silent" not in MODES:
            offers = {"tools": {"listChanged": True}}
            about = {"name": "wayward", "version": "1"}
            version = params["protocolVersion"]
            send(id=number, result={"protocolVersion": version, "capabilities": offers, "serverInfo": about})
    elif method == "tools/list":
        send(id=number, result=listed(params))
    elif method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        result = call(number, params["name"], params.get("arguments") or {}, token)
        if result is not None:
            send(id=number, result=result)
    elif "silent" not in MODES:
        send(id=number, error={"code": -32601, "message": f"no {method}"})


if "quits" in MODES:
    sys.stderr.write("no settings found\n")
    sys.exit(3)
if "stubborn" in MODES:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in MODES:
    print("child", subprocess.Popen(["sleep", "300"]).pid, file=sys.stderr, flush=True)
if "daemon" in MODES:
    print("daemon", subprocess.Popen(["sleep", "300"], start_new_session=True).pid, file=sys.stderr, flush=True)
if "banner" in MODES:
    write(b"Welcome!\nListening on stdio\n")
if "latin" in MODES:
    write(b"\xff\xfe gr\xfc\xdfe \x80\n")
LOG = os.environ.get("WAYWARD_LOG")
for line in sys.stdin:
    message = json.loads(line)
    if LOG:
        with open(LOG, "a") as log:
            log.write(line)
    if "method" not in message:
        waiting = ANSWERS.get(message.get("id"))
        ANSWERS[message.get("id")] = message.get("result", message.get("error"))
        if waiting is not None:
            waiting.set()
    elif "id" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
while "deaf" in MODES or "stubborn" in MODES:
    time.sleep(1)
os._exit(0)
