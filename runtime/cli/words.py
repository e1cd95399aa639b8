"""argparse in our words: its errors are one line, and name the nearest known word."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from runtime.errors import UsageError, did_you_mean

from .visible import one_line


class Words(argparse.ArgumentParser):
    """argparse with errors that are one line and name the nearest known word."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_in_our_words(message)}  ({self.prog} --help)")

    def print_help(self, file: object = None) -> None:
        # Here and now: argparse ends the command itself, and a reader that has left is told to nobody at the exit.
        print(self.format_help(), end="", flush=True)


def _in_our_words(message: str) -> str:
    """What argparse says of a slip, as the rest of the command would say it."""
    flag, _, rest = message.removeprefix("argument ").partition(": ")
    flag = flag.rpartition("/")[2]
    if message.startswith("the following arguments are required: "):
        return f"give {rest}"
    if rest.startswith("expected"):
        return f"{flag} needs a value"
    if rest.startswith("ignored explicit argument"):
        return f"{flag} takes no value"
    if found := re.fullmatch(r"invalid int value: (.*)", rest, re.DOTALL):
        return f"{flag} must be a whole number, not {one_line(found[1], 60)}"
    if found := re.fullmatch(r"invalid float value: (.*)", rest, re.DOTALL):
        return f"{flag} must be a number, not {one_line(found[1], 60)}"
    if found := re.fullmatch(r"invalid choice: '(.*)' \(choose from (.*)\)", rest, re.DOTALL):
        known = re.findall(r"[\w-]+", found[2])
        return f"{flag} is one of {', '.join(known)}, not '{one_line(found[1], 60)}'{did_you_mean(found[1], known)}"
    return message


def flag_without_value(parser: argparse.ArgumentParser, found: argparse.Namespace) -> str | None:
    """The first flag that was given an empty text."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        value = getattr(found, action.dest, None)
        if action.option_strings and (value == "" or (isinstance(value, list) and "" in value)):
            return action.option_strings[-1]
    return None


def too_much(parser: argparse.ArgumentParser, rest: list[str]) -> str:
    """What to say of words that no argument took."""
    flag = next((word for word in rest if word.startswith("-")), None)
    if flag is None:
        return f"one word too many: '{one_line(rest[0], 60)}'"
    flags = [option for action in parser._actions for option in action.option_strings]  # pyright: ignore[reportPrivateUsage]
    flag = flag.partition("=")[0]
    return f"unknown flag '{one_line(flag, 60)}'{did_you_mean(flag, flags)}"
