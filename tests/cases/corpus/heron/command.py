"""The `heron` command."""

import argparse
import sys

EXIT_LOCKED = 75


def main(argv=None):
    parser = argparse.ArgumentParser(prog="heron")
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto")
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("init", help="make an empty database")
    parts.add_parser("work", help="start workers")
    parts.add_parser("status", help="what waits, runs and failed")
    parts.add_parser("morgue", help="jobs that ran out of attempts")
    parts.add_parser("revive", help="put a dead job back")
    parts.add_parser("migrate", help="bring an old database up to date")
    chosen = parser.parse_args(argv)
    return dispatch(chosen)


def dispatch(chosen):
    """Exit status: 0 fine, 1 something failed, 75 the database stayed locked."""
    try:
        return COMMANDS[chosen.part](chosen)
    except TimeoutError:
        print("heron: the database is locked by another program", file=sys.stderr)
        return EXIT_LOCKED


COMMANDS = {}
