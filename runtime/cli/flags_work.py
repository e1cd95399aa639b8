"""The words of the commands that set an agent to work: run, chat, resume, and those that serve agents."""

from __future__ import annotations

import argparse

from .flags import SANDBOXES, WIRES, limit_flags, otel_flag, rule_flags, run_flags


def run(parser: argparse.ArgumentParser) -> None:
    parser.usage = 'elenco run [AGENT] "TASK" [FLAGS]'
    parser.add_argument("words", nargs="*", metavar='[AGENT] "TASK"', help="TASK - reads standard input")
    parser.add_argument("--continue", dest="continues", metavar="RUN", help="begin with what that run has said")
    _detach_flag(parser)
    otel_flag(parser)
    run_flags(parser)


def chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: coordinator")
    parser.add_argument("--plain", action="store_true", help="line by line")
    parser.add_argument("--resume", metavar="RUN", help="go on where that run stands: its turn is finished first")
    parser.add_argument("--detach", action="store_true", help="a turn under way goes on when you leave")
    run_flags(parser)


def resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    limit_flags(parser.add_argument_group("limits: N sets, +N raises"))
    parser.add_argument(
        "--model", metavar="PROVIDER/MODEL", help="another model goes on with it, where the run was asked"
    )
    parser.add_argument(
        "--refresh", action="store_true", help="take agent files as they are now, not as the run began with them"
    )
    parser.add_argument(
        "--confirm-unknown", action="store_true", help="ask what became of calls that may have taken effect"
    )
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--no-input", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--output", metavar="FILE")
    _detach_flag(parser)
    otel_flag(parser)


def _detach_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--detach",
        action="store_true",
        help="leave it to work on its own, print its id: closing the terminal ends nothing",
    )


def serve_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="which agents (default: all)")
    parser.add_argument(
        "--port", type=int, metavar="N", help="streamable HTTP on 127.0.0.1 instead of the pipes; 0: any"
    )
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument("--model", metavar="PROVIDER/MODEL")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)
    limit_flags(parser.add_argument_group("limits of each run"))
    parser.add_argument("--allow", metavar="RULE", action="append", default=[], help="allow what the rule names")
    parser.add_argument("--yes", action="store_true", help="allow what would ask; never what is denied")


def acp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: coordinator")
    parser.add_argument("--model", metavar="PROVIDER/MODEL")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument("--wire", choices=WIRES)
    limit_flags(parser.add_argument_group("limits of each prompt"))
    rule_flags(parser.add_argument_group("permissions"))
    parser.add_argument("--sandbox", choices=SANDBOXES, help="what commands may write; unsandboxed: in its terminal")
    parser.add_argument("--record", metavar="DIR", help="keep the raw exchanges with model servers, keys taken out")
