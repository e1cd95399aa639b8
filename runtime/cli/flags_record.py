"""The words of the commands for runs on record: look at them, name, copy, remove, undo them."""

from __future__ import annotations

import argparse

from .flags import otel_flag


def runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prune", action="store_true", help="list what has outlived its time; --yes removes it")
    parser.add_argument("--older-than", metavar="DAYS", type=float, help="with --prune (default: 30)")
    parser.add_argument("--keep", metavar="N", type=int, help="with --prune: leave the N newest")
    parser.add_argument("--yes", action="store_true", help="with --prune: remove them")
    parser.add_argument("--check", action="store_true", help="read every record through; 1 if one is damaged")
    parser.add_argument("--json", action="store_true", help="one JSON line a run")


def show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--format", choices=("text", "md", "json", "jsonl"), default="text")
    parser.add_argument("--context", action="store_true", help="what fills the window of each agent's model, by part")


def tail(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the run ends")
    parser.add_argument("--json", action="store_true", help="the events as JSON lines")
    parser.add_argument(
        "--from",
        dest="from_seq",
        metavar="SEQ",
        type=int,
        default=0,
        help="begin at this event; -N: with the last N shown",
    )
    otel_flag(parser, "print nothing: send spans and metrics of the run to a collector")


def dash(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="on 127.0.0.1 (default: any that is free)")
    parser.add_argument("--open", action="store_true", help="open it in your browser")


def rename(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("name", metavar="NAME", help="what the list shows, and what may be typed for the id")


def delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN")


def fork(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--at", metavar="SEQ", type=int, required=True, help="the last event to take over")


def import_(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="event lines; - reads standard input")


def undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--to", metavar="SEQ", type=int, default=0, help="keep what was changed up to this event")
