"""What it costs to import Elenco and to print its help, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

SLOW = ("mcp", "textual", "rich", "starlette", "pydantic")
REFERENCE = "import trio, httpx"
PROGRAMS = {
    "reference": REFERENCE,
    "runtime": "import runtime",
    "library": "from runtime import open_runtime, tool",
    "help": "import sys; from runtime.cli import main; sys.argv = ['elenco', '--help']; main()",
}
_PROGRAM = """
import contextlib, io, json, os, sys, time
began = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    try:
        exec({program!r})
    except SystemExit:
        pass
spent = time.process_time() - began
print(json.dumps([spent, [name for name in {slow!r} if name in sys.modules]]))
"""


def measure(name: str) -> tuple[float, list[str]]:
    """CPU seconds of one of PROGRAMS, and which of the slow packages it loaded."""
    program = _PROGRAM.format(program=PROGRAMS[name], slow=SLOW)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    spent, loaded = json.loads(done.stdout.splitlines()[-1])
    return spent, loaded
