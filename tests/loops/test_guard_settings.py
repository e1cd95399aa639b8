"""What may stand under `loops:` in an agent file."""

import pytest

from runtime.limits.loops import GuardSettings, Ladder, guard_settings


def test_nothing_said_is_the_default() -> None:
    """The guard is on by default, with nudge 3, block 6, stop 7."""
    assert GuardSettings() == guard_settings(None) == guard_settings("on") == guard_settings(True)
    assert Ladder(3, 6, 7) == guard_settings({}).ladder


@pytest.mark.parametrize("value", ["off", False])
def test_off_is_off(value: object) -> None:
    """YAML's off and false both switch the guard off."""
    assert guard_settings(value).off


def test_agent_file_form_is_read() -> None:
    """The form of the agent file, with a tool of its own and one that is not watched."""
    found = guard_settings(
        {
            "nudge": 4,
            "block": 8,
            "stop": 9,
            "ignore_fields": ["request_id"],
            "tools": {"shell": {"nudge": 5, "block": 12, "stop": 20}, "clock": "off"},
        }
    )
    assert ("request_id",) == found.ignore_fields
    assert Ladder(4, 8, 9) == found.for_tool("read_file")
    assert Ladder(5, 12, 20) == found.for_tool("shell")
    assert found.for_tool("clock").off


def test_later_numbers_rise_with_earlier_ones() -> None:
    """Whoever is patient with the nudge need not repeat the others."""
    assert Ladder(10, 10, 10) == guard_settings({"nudge": 10}).ladder


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"nugde": 3}, r"loops: unknown key 'nugde'; did you mean 'nudge'\?"),
        ({"xyz": 3}, r"loops: unknown key 'xyz' \(known: "),
        ({"nudge": "3"}, "loops.nudge: expected a whole number, got '3'"),
        ({"nudge": True}, "loops.nudge: expected a whole number"),
        ({"nudge": 5, "block": 4}, "loops: nudge, block and stop must rise from 2, got 5, 4, 7"),
        ({"nudge": 1}, "must rise from 2"),
        ({"ignore_fields": "id"}, "loops.ignore_fields: expected a list of names"),
        ({"tools": ["shell"]}, "loops.tools: expected a mapping"),
        ({"tools": {"shell": 3}}, "loops.tools.shell: expected off or a mapping, got 3"),
        ({"tools": {"shell": {"stopp": 3}}}, r"loops.tools.shell: unknown key 'stopp'; did you mean 'stop'\?"),
        ([], r"loops: expected off or a mapping, got \[\]"),
        ("sometimes", "loops: expected off or a mapping, got 'sometimes'"),
    ],
)
def test_mistakes_are_named(value: object, message: str) -> None:
    """Every mistake says where it is and what was expected."""
    with pytest.raises(ValueError, match=message):
        guard_settings(value)


def test_settings_made_in_code_are_checked_too() -> None:
    """Numbers that fall are refused wherever they come from."""
    with pytest.raises(ValueError, match="must rise"):
        GuardSettings(3, 2, 7)
