"""Flags that several commands have: model, limits, permissions, places, output."""

from __future__ import annotations

import argparse

SANDBOXES = ("read-only", "workspace-write", "unsandboxed")
NETWORKS = ("none", "tools", "all")
WIRES = ("openai-chat", "openai-responses", "anthropic-messages")


def run_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="PROVIDER/MODEL", help="which model answers; agent files may name another")
    group.add_argument("--base-url", metavar="URL", help="a compatible server, such as http://127.0.0.1:8080/v1")
    group.add_argument("--wire", choices=WIRES, help="the dialect it speaks")
    group = parser.add_argument_group("places")
    group.add_argument("--workspace", metavar="DIR", help="the folder the agents work in (default: this one)")
    group = parser.add_argument_group("limits (the tightest of flags, agent files and settings wins)")
    limit_flags(group)
    group = parser.add_argument_group("permissions")
    rule_flags(group)
    group.add_argument(
        "--no-input", action="store_true", help="never ask: what needs a human suspends the run (exit 4)"
    )
    group = parser.add_argument_group("walls around commands")
    group.add_argument("--sandbox", choices=SANDBOXES, help="what commands may write (default: workspace-write)")
    group.add_argument("--network", choices=NETWORKS, help="who reaches the network (default: tools, no command)")
    group = parser.add_argument_group("MCP servers, for this run")
    group.add_argument("--mcp", metavar="NAME", action="append", default=[], help="use one that is disabled")
    group.add_argument("--no-mcp", metavar="NAME", action="append", default=[], help="go without one")
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="every event as one JSON line on stdout")
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("--output", metavar="FILE", help="write the answer to FILE as well")
    group.add_argument("--output-schema", metavar="FILE", help="a JSON Schema: print nothing but JSON that fits it")
    group.add_argument("--record", metavar="DIR", help="keep the raw exchanges with model servers, keys taken out")


def rule_flags(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    for word in ("allow", "ask", "deny"):
        parser.add_argument(
            f"--{word}", metavar="RULE", action="append", default=[], help=f"{word} what the rule names; repeatable"
        )
    parser.add_argument("--yes", action="store_true", help="allow what would ask; never what is denied")
    parser.add_argument("--mode", choices=("default", "accept-edits", "plan"))


def limit_flags(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    """The flags that bound a run; on resume `+N` raises what is there."""
    parser.add_argument("--max-steps", metavar="N", help="model replies of the root agent")
    parser.add_argument("--total-steps", metavar="N", help="model replies of the whole tree")
    parser.add_argument("--token-budget", metavar="N", help="input and output tokens of the whole tree")
    parser.add_argument("--cost-budget", metavar="USD", help="of the whole tree")
    parser.add_argument("--timeout", metavar="SECONDS", help="stands still while a human is waited for")
    parser.add_argument("--max-tool-calls", metavar="N")
    parser.add_argument("--max-depth", metavar="N")
    parser.add_argument("--max-children", metavar="N", help="alive at once")


def otel_flag(parser: argparse.ArgumentParser, words: str = "send spans and metrics to a collector") -> None:
    parser.add_argument("--otel", action="store_true", help=f"{words} (OTEL_EXPORTER_OTLP_ENDPOINT)")


def workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR")
    parser.add_argument("--json", action="store_true")
