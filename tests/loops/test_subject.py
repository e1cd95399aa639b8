"""Whether two questions or two asks are the same one in other words."""

import pytest

from runtime.limits.loops.errands import Ask, ask_of, facts
from runtime.limits.loops.subject import Relation, compare, flat, relation

SAME = [
    ("HandleEntry", "handleentry"),
    ("HandleEntry(", "[H]andleEntry"),
    ("HandleEntry", "def HandleEntry"),
    ("C:\\\\src\\\\app", "c:\\\\SRC\\\\app"),
    (r"HandleEntry\b", r"\bHandleEntry"),
    ("rounding of carrier rates", "carrier rates rounding"),
    ("rounding rules bug", "currency rounding rules bug"),
]
OTHER = [
    ("eval(", "exec("),
    ("src/a.py", "src/b.py"),
    ("/usr/lib/x.so", "/usr/local/lib/x.so"),
    ("SELECT ok FROM e WHERE id = 150", "SELECT ok FROM e WHERE id = 175"),
    ("grep -n os.system x", "grep -n pickle.loads x"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_another_spelling_is_the_same_question(one: str, two: str) -> None:
    """Case, punctuation, order and added words change nothing."""
    assert Relation.SAME is compare(one, two) is compare(two, one)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_another_name_is_another_question(one: str, two: str) -> None:
    """A path, a name or a number in the place of another is a new subject."""
    assert Relation.OTHER is compare(one, two) is compare(two, one)


def test_only_fields_that_changed_are_compared() -> None:
    """A constant folder does not make two searches alike, and a limit does not make them different."""
    assert Relation.OTHER is relation({"pattern": "eval(", "path": "src"}, {"pattern": "exec(", "path": "src"})
    assert Relation.SAME is relation({"q": "late orders", "limit": 10}, {"q": "late orders", "limit": 11})
    assert Relation.SAME is relation({"q": "late orders", "page": 40}, {"q": "late orders", "page": 41})
    assert Relation.OTHER is relation({"id": 1}, {"id": 2})


def test_arguments_are_flattened_by_path() -> None:
    """Lists and objects come out as scalars with a name."""
    assert {"a.b": 1, "c.0": "x", "c.1.d": None} == flat({"a": {"b": 1}, "c": ["x", {"d": None}]})


def ask(text: str, name: str = "delegate_to_coder") -> Ask:
    found = ask_of(name, {"task": text}, False)
    assert found is not None
    return found


def test_reworded_errand_is_recognised() -> None:
    """Please, could you and another order do not make another errand."""
    first = ask("Push the branch and open the pull request")
    assert Relation.VARIANT is first.relation(ask("Please open a pull request after you push the branch now, PR"))
    assert Relation.SAME is first.relation(ask("Open the pull request and push the branch, please"))
    assert Relation.OTHER is first.relation(ask("Write the release notes for version 2"))


def test_errand_with_another_item_is_a_template() -> None:
    """One place that differs, with everything else around it, is the same form for another item."""
    first = ask("Translate the harbor chapter into Danish")
    assert first.is_template_of(ask("Translate the meadow chapter into Danish"))
    assert Relation.OTHER is ask("Review src/a.py for leaks").relation(ask("Review src/b.py for leaks"))


@pytest.mark.parametrize(
    "name",
    ["delegate_to_writer", "start_reviewer", "ask_agent", "spawn_agent", "task", "handoff_to_legal", "ask_reviewer"],
)
def test_delegations_are_known_by_their_names(name: str) -> None:
    """The names the field uses for asking another agent are recognised."""
    assert ask_of(name, {"task": "Find out how it is done"}, False) is not None


@pytest.mark.parametrize("name", ["await_agent", "ask_user", "list_agents", "read_file", "start"])
def test_other_tools_are_no_delegations(name: str) -> None:
    """Waiting for an agent, asking a human and plain tools are not."""
    assert ask_of(name, {"task": "Find it"}, False) is None


def test_telling_somebody_is_an_errand_whose_answer_is_a_receipt() -> None:
    """A message sent is compared by its text; what comes back is never news."""
    found = ask_of("send_message", {"to": "#ops", "text": "The import has finished"}, False)
    assert found is not None
    assert found.told


def test_facts_are_what_a_rewording_leaves() -> None:
    """Paths, names with a mark in them and figures are facts; plain words are not."""
    assert {"src/fx/rates.go", "7", "open_store"} == facts("See src/fx/rates.go: 7 calls of open_store in all.")
