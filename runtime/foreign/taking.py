"""The fields of another runtime's file: what is known is taken, what is not is told, a mistyped right refused."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import yaml

from runtime.definitions import NAME
from runtime.errors import Fault, did_you_mean
from runtime.frontmatter import Fields, Value, Wrong, kind, texts
from runtime.known import MEMORY_TOOLS
from runtime.nearness import resembles

from .rules import TokenError, tokens_of


def usual(tools: Collection[str]) -> tuple[str, ...]:
    """Those of the tools that are given to whoever gets all of them: memory has to be named."""
    return tuple(name for name in tools if name not in MEMORY_TOOLS)


class Taking:
    """One file's entries with the faults and warnings found so far."""

    def __init__(self, root: Value, shown: str, known: Collection[str], rights: Collection[str]) -> None:
        self.shown = shown
        self._known = tuple(known)
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        try:
            keys = [key for key, _ in root.pairs()]
        except Wrong:
            keys = []
        names = [name for key in keys if isinstance(name := key.plain(), str)]
        self.fields = Fields[Any](root, {*known, *names}, self.faults)
        for key in keys:
            name = key.plain()
            if isinstance(name, str) and name not in known:
                near = resembles(name, known)
                if near in rights:
                    # A right or a limit the author meant to set must not vanish.
                    self.faults.append(key.fault(f"unknown key '{name}'; did you mean '{near}'?"))
                else:
                    self.warn(key, f"unknown key '{name}' is not used{did_you_mean(name, known)}")

    def warn(self, at: Value | None, text: str) -> None:
        """Tell something that stops nothing, at its place."""
        fault = at.fault(text) if at is not None else Fault(self.shown, 1, text)
        self.warnings.append(Fault(fault.path, fault.line, text, fault.column, fault.source, fault.width, warning=True))

    def refuse(self, at: Value, text: str) -> None:
        self.faults.append(at.fault(text))

    def place(self, name: str) -> Value | None:
        return self.fields.place(name)

    def plain(self) -> dict[str, Any]:
        """The known entries as plain data, by their names as they are written here."""
        found = {_snake(name): value.plain() for name in self._known if (value := self.place(name)) is not None}
        return {name: value for name, value in found.items() if value is not None}

    def text(self, name: str) -> str:
        """A text, "" where there is none; what YAML took for something else counts as written."""
        place = self.place(name)
        if place is None or place.plain() is None:
            return ""
        plain = place.plain()
        if isinstance(plain, str):
            return plain
        if not isinstance(place.node, yaml.ScalarNode) or isinstance(plain, bytes):
            self.refuse(place, f"{name}: expected text, found {kind(place.plain())}")
            return ""
        self.warn(place, f"{name}: read as the text '{place.node.value}'")
        return str(place.node.value)

    def whole_number(self, name: str) -> int | None:
        """A number from 1; one in quotes counts, with a warning."""
        place = self.place(name)
        if place is None:
            return None
        plain = place.plain()
        if isinstance(plain, str) and re.fullmatch(r"[0-9]{1,9}", plain.strip()):
            self.warn(place, f"{name}: a number in quotes, read as {int(plain)}")
            plain = int(plain)
        if isinstance(plain, bool) or not isinstance(plain, int) or not 1 <= plain < 10**9:
            self.refuse(place, f"{name}: expected a whole number from 1, found {kind(plain)}")
            return None
        return plain

    def tokens(self, name: str) -> tuple[str, ...] | None:
        """A list of tools or names, None where the key is missing. What is no list of them is a fault."""
        place = self.place(name)
        if place is None:
            return None
        try:
            return tokens_of(iter(texts(place)))
        except Wrong as wrong:
            self.refuse(place, f"{name}: {wrong}; write [] for none")
            return ()
        except TokenError as error:
            self.refuse(place, f"{name}: {error}")
            return ()

    def name(self, written: str) -> str:
        """A name as it is allowed here."""
        if NAME.fullmatch(written):
            return written
        made = re.sub(r"[^a-z0-9-]+", "-", written.lower()).strip("-")[:64]
        if not made:
            place = self.place("name")
            text = f"'{written}' is no name: 1 to 64 of a-z, 0-9 and -"
            self.faults.append(place.fault(text) if place is not None else Fault(self.shown, 1, text))
            return "unnamed"
        self.warn(self.place("name"), f"it is called '{made}' here, for '{written}' is no name")
        return made


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
