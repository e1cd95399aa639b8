"""The program that holds an answer against a schema or a function of somebody's own, in a process that can be ended.

It reads one JSON request from standard input and writes one JSON verdict: `faults`, or `broken` where it could not
judge. It gets the import path of its parent, so that it finds what the parent would.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterable
from typing import Any, cast

MOST_FAULTS = 8
MOST_CHARS = 2000


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # what a check prints is no verdict
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    sys.path[:] = request["path"]
    verdict = judge(request)
    with open(answers, "wb") as out:
        out.write(json.dumps(verdict).encode())
    sys.stdout.flush()
    os._exit(0)  # a thread that the check left behind is nobody's any more


def judge(request: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a request of `value`, `schema` or None, `check` or None with the `root` its module is under."""
    value = request["value"]
    if request["schema"] is not None:
        from runtime.output.schema import value_faults

        try:
            found = value_faults(request["schema"], value)
        except ValueError as error:
            return {"broken": str(error)}
        if found:
            return {"faults": found}
    if request["check"] is None:
        return {"faults": []}
    sys.path.insert(0, request["root"])
    return checked(request["check"], value)


def checked(check: str, value: Any) -> dict[str, Any]:
    """What the function says of the value: nothing or True is good; a text, or a list of them, says what is not."""
    module, _, name = check.partition(":")
    try:
        function = getattr(__import__(module, fromlist=[name]), name)
    except BaseException as error:  # noqa: BLE001  # somebody's module may end in any way while it is loaded
        return {"broken": f"{check} cannot be loaded: {said(error)}"}
    try:
        found = function(value)
    except (ImportError, NameError, SyntaxError) as error:
        return {"broken": f"{check} is broken: {said(error)}"}
    except (ValueError, AssertionError) as error:
        return {"faults": [cut(str(error) or "the check refused it without a reason")]}
    except Exception as error:  # noqa: BLE001  # an answer of the wrong shape trips a check in any way
        return {"faults": [cut(f"the check stumbled over it: {said(error)}")]}
    except BaseException as error:  # noqa: BLE001
        return {"broken": f"{check} ended its process: {said(error)}"}
    match found:
        case None | True | "":
            return {"faults": []}
        case False:
            return {"faults": ["the check refused it without a reason"]}
        case str():
            return {"faults": [cut(found)]}
        case list() | tuple():
            every = cast("Iterable[object]", found)
            return {"faults": [cut(str(each)) for each in itertools.islice(every, MOST_FAULTS)]}
        case _:
            kind = type(found).__name__
            return {"broken": f"{check} gave a {kind}; a check gives None, True, or a text that says what is wrong"}


def said(error: BaseException) -> str:
    return cut(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[:MOST_CHARS] + "…"


if __name__ == "__main__":
    main()
