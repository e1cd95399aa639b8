"""The pages beside the conversation: agents at work, skills, MCP servers, subagents, budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static, TabbedContent, TabPane
from textual.widgets.option_list import Option

from runtime.chat.figures import budget_lines
from runtime.chat.view import View
from runtime.cli.tree import Row, rows
from runtime.cli.visible import one_line, visible

PAGES = ("agents", "skills", "servers", "subagents", "budget")
_TITLES = {"agents": "Agents", "skills": "Skills", "servers": "MCP", "subagents": "Subagents", "budget": "Budget"}
_STYLES = {"●": "$accent bold", "✓": "$success", "■": "$warning", "✗": "$error"}


class Tree(OptionList):
    """The live tree of actors; Enter opens one."""


class Side(Vertical):
    """One tab a page; `paint` brings the open one up to date."""

    class Chosen(Message):
        """An actor was chosen in the tree."""

        def __init__(self, actor: str) -> None:
            super().__init__()
            self.actor = actor

    def __init__(self) -> None:
        super().__init__(id="side")
        self._shown: dict[str, str] = {}
        self._paths: list[str] = []

    def compose(self) -> ComposeResult:
        with TabbedContent(initial="agents"):
            for name in PAGES:
                with TabPane(_TITLES[name], id=name):
                    if name == "agents":
                        yield Tree(id="tree", markup=False)
                    else:
                        with VerticalScroll():
                            yield Static("", id=f"page-{name}", markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._paths):
            self.post_message(self.Chosen(self._paths[event.option_index]))

    def paint(self, view: View, looked: Mapping[str, Any], now: float) -> None:
        match self.query_one(TabbedContent).active:
            case "agents":
                self._tree(view, now)
            case "skills":
                self._page("skills", _skills(view, looked))
            case "servers":
                self._page("servers", _servers(view, looked))
            case "subagents":
                self._page("subagents", _subagents(view, looked))
            case "budget":
                self._page("budget", "\n".join(budget_lines(view, now)))
            case _:
                pass

    def _page(self, name: str, text: str) -> None:
        if self._shown.get(name) != text:
            self._shown[name] = text
            self.query_one(f"#page-{name}", Static).update(Content(visible(text)))

    def _tree(self, view: View, now: float) -> None:
        tree = self.query_one("#tree", Tree)
        found = rows(view.state, now, view.told, view.speaking)
        paths = _paths(view)
        text = "\n".join(map(str, found)) or "nobody works yet"
        if self._shown.get("agents") == text:
            return
        self._shown["agents"] = text
        lines = [_line(row) for row in found] or [Content.styled("nobody works yet", "$foreground 60%")]
        if paths == self._paths and tree.option_count == len(lines):
            for index, line in enumerate(lines):
                tree.replace_option_prompt_at_index(index, line)
            return
        chosen = tree.highlighted
        self._paths = paths
        tree.clear_options()
        tree.add_options([Option(line) for line in lines])
        tree.highlighted = chosen if chosen is not None and chosen < len(lines) else None


def _line(row: Row) -> Content:
    facts = "  ".join(fact for fact in row.facts if fact)
    return Content.assemble(
        (row.branch, "$foreground 60%"),
        (f"{row.mark} {row.name}", _STYLES.get(row.mark, "")),
        f"  {row.doing}\n",
        (f"{' ' * len(row.branch)}  {facts}", "$foreground 60%"),
    )


def _paths(view: View) -> list[str]:
    """The actors in the order of the tree's rows."""
    found: list[str] = []

    def add(path: str) -> None:
        found.append(path)
        for child in view.state.actors[path].children:
            add(child)

    if view.state.root:
        add(view.state.root)
    return found


def _listed(looked: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", looked.get(name, []))


def _skills(view: View, looked: Mapping[str, Any]) -> str:
    loaded = {name for actor in view.state.actors.values() for name in actor.skills}
    found: list[str] = []
    for each in _listed(looked, "skills"):
        mark = "✓" if each["name"] in loaded else "·" if each["given"] else " "
        found += [f"{mark} {one_line(each['name'], 40)}", f"    {one_line(each['description'], 160)}"]
    return "\n".join([*found, "", "✓ loaded   · the agent may load it"]) if found else "no skills here"


def _servers(view: View, looked: Mapping[str, Any]) -> str:
    found: list[str] = []
    for each in _listed(looked, "servers"):
        name = str(each["name"])
        state = view.state.servers.get(name) or ("disabled" if each["disabled"] else "not started yet")
        mark = "●" if state == "connected" else "✗" if state.startswith("lost") else "○"
        tools = view.state.server_tools.get(name, ())
        found.append(f"{mark} {one_line(name, 40)}  {one_line(state, 120)}")
        found += [f"    {one_line(tool, 60)}" for tool in tools]
    return "\n".join([*found, "", "/mcps on|off NAME"]) if found else "no MCP servers here (mcps: in the agent's file)"


def _subagents(view: View, looked: Mapping[str, Any]) -> str:
    found: list[str] = []
    for each in _listed(looked, "agents"):
        if not each["subagent"]:
            continue
        own = [actor for actor in view.state.actors.values() if actor.agent == each["name"]]
        working = sum(actor.status == "running" for actor in own)
        count = f"   {working} at work, {len(own) - working} done" if own else ""
        found.append(f"{'●' if working else '○'} {one_line(each['name'], 40)}{count}")
        found += [
            f"    {one_line(each['description'], 160)}",
            f"    {each['model'] or 'the run' + chr(39) + 's model'}",
        ]
    return "\n".join(found) or "this agent has nobody to delegate to"
