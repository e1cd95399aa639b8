"""The words of the commands for what agents are made of, and for the place they work in."""

from __future__ import annotations

import argparse

from .flags import WIRES, rule_flags, workspace


def skills(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco skills [note NAME ["LESSON"]] [FLAGS]'
    parser.add_argument("words", nargs="*", metavar='note NAME "LESSON"', help="keep a lesson; without one, list them")
    parser.add_argument("--drop", metavar="N", type=int, help="with note NAME: forget the lesson of that number")
    workspace(parser)


def memory(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco memory [list ["WORDS"] | show ID… | add "TEXT" | edit ID ["TEXT"] | forget ID… | …] [FLAGS]'
    parser.add_argument("words", nargs="*", metavar="ACTION", help="list (default), show, add, edit, forget")
    parser.add_argument("--user", action="store_true", help="facts about you, not about the workspace")
    parser.add_argument("--all", action="store_true", help="those of every workspace too")
    parser.add_argument("--limit", metavar="N", type=int, help="with list: the first N")
    parser.add_argument(
        "--run", metavar="RUN", help="with forget: all that this run has noted; without --yes a preview"
    )
    parser.add_argument("--yes", action="store_true", help="with forget --run: do it")
    workspace(parser)


def models(parser: argparse.ArgumentParser) -> None:
    workspace(parser)
    parser.add_argument("--check", action="store_true", help="one tiny call to each provider with a key")
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="check this one only")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)


def tools(parser: argparse.ArgumentParser) -> None:
    workspace(parser)
    parser.add_argument("--agent", metavar="NAME", help="what this agent really gets, and under which rules")
    rule_flags(parser)


def mcp(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "elenco mcp [tools [NAME…] | test NAME | call NAME TOOL [JSON] | login NAME | logout NAME |\n"
        "                   enable NAME --run RUN | disable NAME --run RUN] [FLAGS]"
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ACTION",
        help="list (default), tools, test, call, login, logout, enable, disable, conform",
    )
    parser.add_argument("--run", metavar="RUN", help="enable, disable: the run in which, live or to be resumed")
    workspace(parser)


def check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument(
        "--effective", action="store_true", help="also what counts in the end: each value, and who set it"
    )


def init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR")


def doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR")


def trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the workspace (default: this folder)")
    parser.add_argument("--workspace", metavar="DIR", help="the same")
    parser.add_argument("--show", action="store_true", help="only show what it would switch on")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--revoke", action="store_true", help="trust it no more")
    parser.add_argument("--list", action="store_true", help="every workspace you trust")
    parser.add_argument("--json", action="store_true")
