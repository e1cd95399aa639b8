"""The simulator, for as long as you like: `python -m bench.simulate --seconds N`, or one seed again: `--seed N`."""

from __future__ import annotations

import argparse
import random
import sys
import time

from runtime.simulate import Broken, Tally, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this one seed, with the traceback of what breaks")
    parser.add_argument("--seeds", type=int, help="play so many seeds, from --start on")
    parser.add_argument("--start", type=int, help="the first seed; by default a random one")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--keep-on", action="store_true", help="go on after a seed that breaks")
    arguments = parser.parse_args()
    tally = Tally()
    if arguments.seed is not None:
        simulate(arguments.seed, tally)
        print(tally)
        return 0
    seed = arguments.start if arguments.start is not None else random.randrange(1 << 40)
    first, began, broken = seed, time.perf_counter(), 0
    while seed - first < arguments.seeds if arguments.seeds else time.perf_counter() - began < arguments.seconds:
        try:
            simulate(seed, tally)
        except Broken as error:
            broken += 1
            print(error, file=sys.stderr)
            if not arguments.keep_on or broken >= 10:
                break
        seed += 1
    seconds = time.perf_counter() - began
    print(tally)
    print(f"{tally.seeds / seconds:9.1f} seeds a second, {1000 * seconds / max(1, tally.seeds):.1f} ms each")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
