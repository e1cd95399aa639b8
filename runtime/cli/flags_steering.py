"""The words of the commands that steer a run."""

from __future__ import annotations

import argparse

from .flags import limit_flags


def of_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="only this actor")


def one_actor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="which one (default: the root agent)")


def limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--actor", metavar="PATH", help="whose limits (default: the root agent's)")
    limit_flags(parser.add_argument_group("limits: N sets, +N raises; without any, show what is used of what"))
    parser.add_argument("--json", action="store_true", help="what is used of what, as JSON")


def decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="as the question shows it, such as a1; without one, list them"
    )


def approve(parser: argparse.ArgumentParser) -> None:
    decision(parser)
    parser.add_argument(
        "--scope",
        choices=("once", "run", "workspace"),
        default="once",
        help="also the same calls later (default: once)",
    )
    parser.add_argument("--arguments", metavar="JSON", help="allow the call with these arguments instead of its own")


def answer(parser: argparse.ArgumentParser) -> None:
    decision(parser)
    parser.add_argument("text", nargs="?", metavar="TEXT", help="the answer, or the number of an option")


def deny(parser: argparse.ArgumentParser) -> None:
    decision(parser)
    parser.add_argument("--why", metavar="TEXT", help="the agent reads this")


def say(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--actor", metavar="PATH", help="whom to tell (default: the root agent)")
    parser.add_argument("--interrupt", action="store_true", help="cancel its running calls first")
