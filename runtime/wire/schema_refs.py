"""References inside a schema: found, followed, renamed, and dropped where they lead nowhere or only in a circle."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from runtime.shapes import is_list, is_object

from .schema_nodes import LISTS, MAPS, SINGLES

_IN_PLACE_LISTS = ("anyOf", "oneOf", "allOf")
_IN_PLACE_SINGLES = ("not", "if", "then", "else")


def target(root: dict[str, Any], ref: str) -> Any:
    """What a local reference points at; None if it is remote or there is nothing."""
    if not ref.startswith("#"):
        return None
    pointer = unquote(ref[1:])
    if not pointer:
        return root
    if not pointer.startswith("/"):
        return next(
            (node for node in nodes(root) if pointer in (node.get("$anchor"), node.get("$dynamicAnchor"))), None
        )
    found: Any = root
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901
        if is_object(found) and token in found:
            found = found[token]
        elif is_list(found) and token.isdecimal() and int(token) < len(found):
            found = found[int(token)]
        else:
            return None
    return found if is_object(found) or isinstance(found, bool) else None


def nodes(root: Any) -> list[dict[str, Any]]:
    """Every schema node of a schema, without recursion."""
    found: list[dict[str, Any]] = []
    todo = [root]
    while todo:
        node = todo.pop()
        if not is_object(node):
            continue
        found.append(node)
        for key, value in node.items():
            if key in MAPS and is_object(value):
                todo.extend(value.values())
            elif key in LISTS and is_list(value):
                todo.extend(value)
            elif key in SINGLES:
                todo.append(value)
    return found


class Refs:
    """The references of one schema, which is changed in place."""

    def __init__(self, root: dict[str, Any], notes: list[str]) -> None:
        self._root = root
        self._notes = notes

    def drop_dangling(self) -> None:
        """A reference that is remote, leads nowhere or back to itself without any content now takes anything."""
        for node in nodes(self._root):
            for key in ("$ref", "$dynamicRef"):
                if isinstance(ref := node.get(key), str) and (why := self._useless(node, ref)) is not None:
                    del node[key]
                    self._notes.append(f"the reference {ref!r} {why}")

    def _useless(self, node: dict[str, Any], ref: str) -> str | None:
        if target(self._root, ref) is None:
            return "is not in the schema" if ref.startswith("#") else "is remote, and never fetched"
        return "leads back to itself" if self._circles(node) else None

    def rename_properties(self, new: dict[str, str]) -> None:
        """Follow top-level properties that got another name."""
        for node in nodes(self._root):
            ref = node.get("$ref")
            if not isinstance(ref, str) or not ref.startswith("#/properties/"):
                continue
            name, slash, rest = ref.removeprefix("#/properties/").partition("/")
            old = unquote(name).replace("~1", "/").replace("~0", "~")
            if old in new:
                node["$ref"] = f"#/properties/{quote(new[old])}{slash}{rest}"

    def _circles(self, start: dict[str, Any]) -> bool:
        """Whether applying a node to a value comes back to the node with the same value."""
        seen: set[int] = set()
        todo = self._in_place(start)
        while todo:
            node = todo.pop()
            if node is start:
                return True
            if id(node) not in seen:
                seen.add(id(node))
                todo.extend(self._in_place(node))
        return False

    def _in_place(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """The nodes that are applied to the very value this one is applied to."""
        found: list[Any] = []
        if isinstance(ref := node.get("$ref"), str):
            found.append(target(self._root, ref))
        for key in _IN_PLACE_LISTS:
            if is_list(items := node.get(key)):
                found.extend(items)
        found.extend(node.get(key) for key in _IN_PLACE_SINGLES)
        if is_object(depends := node.get("dependentSchemas")):
            found.extend(depends.values())
        return [item for item in found if is_object(item)]
