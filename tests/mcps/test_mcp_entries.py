"""What settings say of servers: read strictly, with the place of every fault; others' files leniently."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config import Config
from runtime.config import read as read_config
from runtime.errors import DefinitionError
from runtime.mcps.content import output_of
from runtime.mcps.entry import CALL_TIMEOUT, Entry, Unset, expanded, tcp_address
from runtime.mcps.forms import Misfit, fields_of, filled
from runtime.mcps.frames import Frames, Overlong
from runtime.mcps.offer import Offer, mend
from runtime.mcps.pacing import FIRST, LONGEST, MOST_FAILURES, STEADY, Pace
from runtime.mcps.settings import read, servers_of

SETTINGS = """\
mcpServers:
  time: {command: uvx, args: [mcp-server-time, 1], env: {TZ: UTC}, timeout: 5, trust: true}
  web:
    url: https://example.org/mcp
    headers: {Authorization: "Bearer ${TOKEN}"}
  old: {type: sse, url: "http://127.0.0.1:8000/sse", mode: legacy}
  raw: {type: tcp, url: "tcp://127.0.0.1:9000"}
"""


def test_a_block_of_servers_is_read_with_its_places() -> None:
    """A block of servers is read, each with the place it stands at."""
    servers = read_config(SETTINGS, "elenco.yaml").mcp_servers
    assert ["time", "web", "old", "raw"] == list(servers)
    assert ["stdio", "http", "sse", "tcp"] == [each.transport for each in servers.values()]
    time = servers["time"]
    assert ("uvx", ("mcp-server-time", "1"), 5.0, True) == (time.command, time.args, time.timeout, time.trust)
    assert ("elenco.yaml:2", "elenco.yaml:3") == (time.place, servers["web"].place)
    assert CALL_TIMEOUT == servers["web"].timeout


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{}", "x needs a command to start, or a url to connect to"),
        ("{type: http}", "x needs a url"),
        ("{comand: y}", "unknown key 'comand'; did you mean 'command'?"),
        ("{type: pipe, command: y}", "type: expected stdio, http, sse or tcp, found the text 'pipe'"),
        ("{type: stdio}", "x needs a command to start, or a url to connect to"),
        ("{command: y, url: 'http://z'}", "url: a server that is started by its command has none"),
        ("{url: 'http://z', env: {A: b}}", "env: a server that is reached over http has none"),
        ("{url: 'z'}", "url: must begin with http:// or https://"),
        ("{type: tcp, url: 'http://z'}", "url: write tcp://HOST:PORT"),
        ("{command: y, timeout: 600000}", "timeout: is in seconds, at most 3600; did you mean 600?"),
        ("{command: y, args: [{a: b}]}", "args: expected text, found a mapping"),
        ("{command: y, args: z}", "args: expected a list, found the text 'z'"),
        ("{command: ' '}", "command: expected a program to start, found an empty text"),
        ("{url: 'http://z', headers: {'a b': c}}", "headers: 'a b' is no header that can be sent"),
        ("{command: y, mode: new}", "mode: expected auto, legacy or modern, found the text 'new'"),
        ("[]", "expected a mapping, found a list"),
    ],
)
def test_a_fault_of_an_entry_is_told_with_its_place(written: str, said: str) -> None:
    """A fault of an entry is told with file and line."""
    with pytest.raises(DefinitionError) as caught:
        read_config(f"model: offline/extract\nmcpServers:\n  x: {written}\n", "elenco.yaml")
    assert [said] == [fault.text for fault in caught.value.faults]
    assert {("elenco.yaml", 3)} == {(fault.path, fault.line) for fault in caught.value.faults}


def test_a_shared_file_is_read_leniently() -> None:
    """Keys of other programs are warned about, milliseconds are understood, tabs are blanks."""
    text = '{\n\t"mcpServers": {\n\t\t"a": {"command": "x", "timeout": 60000, "alwaysAllow": []}\n\t},\n"inputs": []}'
    servers = read(text, ".mcp.json")
    assert (60.0, ".mcp.json:3") == (servers.entries["a"].timeout, servers.entries["a"].place)
    assert [
        "unknown key 'inputs': not used",
        "unknown key 'alwaysAllow': not used",
        "60000 is taken as milliseconds: 60 s",
    ] == [fault.text for fault in servers.warnings]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"mcpServers": {"a": }}', (1, 22), "not valid JSON: Expecting value"),
        ('{"mcpServers": {\n"a": {"args": []}}}', (2, 1), "a needs a command to start, or a url to connect to"),
        ('{"mcpServers": []}', (1, 16), "mcpServers: expected a mapping, found a list"),
        ("[1]", (1, 1), "expected a mapping, found a list"),
    ],
)
def test_a_faulty_shared_file_is_told_with_its_place(text: str, place: tuple[int, int], said: str) -> None:
    """What is wrong with a shared file is told with line and column."""
    with pytest.raises(DefinitionError) as caught:
        read(text, ".mcp.json")
    (fault,) = caught.value.faults
    assert (place, said) == ((fault.line, fault.column), fault.text)


def test_the_nearest_place_names_a_server(tmp_path: Path) -> None:
    """Of one name in several places the workspace's settings win, then its shared file, then the user's settings."""
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "shared"}, "b": {"command": "shared"}}}')

    def config(path: str, *names: str) -> Config:
        return Config(path, mcp_servers={name: Entry(name, command=path) for name in names})

    found = servers_of(tmp_path, config("here", "a"), config("user", "a", "b", "c")).entries
    assert {"a": "here", "b": "shared", "c": "user"} == {name: entry.command for name, entry in found.items()}


def test_variables_are_filled_in() -> None:
    """Variables are filled in, with their default where they are not set; without one that is an error."""
    environment = {"KEY": "k"}
    assert "k-d-$x-${" == expanded("${KEY}-${NONE:-d}-$x-${", environment)
    with pytest.raises(Unset, match="the variable NONE is not set"):
        expanded("${NONE}", environment)


def test_no_secret_is_shown_of_an_entry() -> None:
    """Neither keys nor a password nor a query is shown of an entry."""
    entry = Entry("a", "http", url="https://me:pass@h/x?key=1", headers={"K": "secret"}, env={"K": "secret"})
    assert "https://h/x" == entry.reached
    assert "secret" not in repr(entry)


@pytest.mark.parametrize("url", ["tcp://h", "tcp://h:0", "tcp://h:x", "http://h:1", "tcp://h:70000"])
def test_an_address_needs_host_and_port(url: str) -> None:
    """An address over TCP needs a port."""
    with pytest.raises(ValueError, match="tcp://HOST:PORT"):
        tcp_address(url)


@given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), max_size=6), st.data())
def test_any_cut_of_the_same_bytes_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    """Any cut of the same bytes gives the same lines; what is too long is told with its size."""
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    frames = Frames(longest=20)
    found = [
        line
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)
        for line in frames.feed(whole[start:end])
    ]
    expected = [Overlong(line, len(line)) if len(line) > 20 else line.strip() for line in lines]
    assert [line for line in expected if line] == found


@pytest.mark.parametrize(
    ("head", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"', 7),
        (b'{"id": "a-1", "result', "a-1"),
        (b'{"result": "xxxx', None),
    ],
)
def test_the_call_of_an_answer_that_is_too_long_is_found(head: bytes, id: int | str | None) -> None:
    """Whose answer was too long is told by its beginning."""
    assert id == Overlong(head, 10**9).id


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=30))
def test_waits_grow_and_failures_in_a_row_end_the_tries(story: list[tuple[bool, float]]) -> None:
    """A wait is within its bounds, a steady connection starts the count again, and too many failures end the tries."""
    pace, failures = Pace(), 0
    for up, held in story:
        lasted = held if up else 0.0
        pace = pace.after_failure(lasted)
        failures = 1 if lasted >= STEADY else failures + 1
        assert failures == pace.failures
        assert FIRST / 2 <= pace.wait(0.0) <= pace.wait(1.0) <= LONGEST
        assert (failures >= MOST_FAILURES) == pace.exhausted
    assert 0 == Pace().wait(1.0)


def test_a_result_becomes_an_output() -> None:
    """Text, images, links, resources and structured data of a result become text, images and data, each bounded."""
    output = output_of(
        {
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "image", "mimeType": "image/tiff", "data": "AAAA"},
                {"type": "image", "mimeType": "image/png", "data": "A" * 6_000_000},
                {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
                {"type": "resource_link", "uri": "a://b", "name": "n"},
                {"type": "resource", "resource": {"uri": "a://c", "text": "t"}},
                {"type": "resource", "resource": {"uri": "a://d", "blob": "AAAA", "mimeType": "x/y"}},
                {"type": "new"},
                7,
            ],
            "structuredContent": {"n": 1},
            "isError": True,
        }
    )
    assert (1, True, {"structured": {"n": 1}}) == (len(output.images), output.is_error, output.data)
    assert [
        "one",
        "[an image of type image/tiff, which cannot be shown]",
        "[an image of 4500000 bytes, too large to be shown]",
        "[audio of type audio/wav, 3 bytes, which cannot be shown]",
        "[resource a://b (n)]",
        "[resource a://c]",
        "t",
        "[resource a://d: 3 bytes of type x/y]",
        "[content of the kind new, which cannot be shown]",
    ] == output.text.split("\n")
    assert '{"n": 1}' == output_of({"content": [], "structuredContent": {"n": 1}}).text


def test_hints_make_a_tool_milder_only_where_they_are_believed() -> None:
    """Hints make a tool milder only where the server is trusted."""
    reads, repeats, neither = Offer("a", read_only=True), Offer("b", idempotent=True), Offer("c")
    assert ["none", "idempotent", "once"] == [each.effects(trusted=True) for each in (reads, repeats, neither)]
    assert {"once"} == {each.effects(trusted=False) for each in (reads, repeats, neither)}


def test_what_is_no_tool_is_left_out_of_an_answer() -> None:
    """What is no tool is left out of an answer and named; other answers stay as they are."""
    result = {"tools": [{"name": "a"}, {"name": 7}, "x"]}
    assert ("one without a name", "one without a name") == mend(result, lambda tool: tool == {"name": "a"})
    assert {"tools": [{"name": "a"}], "resultType": "complete"} == result


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "default": 3},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["small", "middle"]},
        "tags": {"type": "array", "items": {"enum": ["x", "y"]}},
        "sure": {"type": "boolean"},
        "rate": {"type": "number"},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("decline", None),
        ("name=Ada", {"name": "Ada", "age": 3}),
        (
            "name=Ada; size=Middle; tags=x, y; sure=yes; rate=1.5; age=4",
            {"name": "Ada", "age": 4, "size": "m", "tags": ["x", "y"], "sure": True, "rate": 1.5},
        ),
        ('{"name": "Ada", "tags": ["y"], "sure": false}', {"name": "Ada", "age": 3, "tags": ["y"], "sure": False}),
    ],
)
def test_a_form_is_filled_in_from_one_answer(answer: str, content: dict[str, object] | None) -> None:
    """A form is filled in from one answer, its defaults where nothing is said."""
    assert content == filled(fields_of(FORM), answer)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("age=3", "name is needed"),
        ("name=A; age=x", "age is a number"),
        ("name=A; age=1.5", "age is a whole number"),
        ("name=A; size=xl", "size is one of s, m"),
        ("name=A; sure=maybe", "sure is yes or no"),
        ("name=A; colour=red", "the form has no colour"),
        ("Ada", "write name=value"),
        ("{", "this is no JSON"),
    ],
)
def test_an_answer_that_does_not_fit_says_why(answer: str, said: str) -> None:
    """An answer that does not fit the form says why."""
    with pytest.raises(Misfit, match=said):
        filled(fields_of(FORM), answer)


@given(st.text(max_size=60))
def test_a_single_field_takes_any_text(answer: str) -> None:
    """A form with one text field takes any answer but a refusal."""
    fields = fields_of({"properties": {"word": {"type": "string"}}})
    try:
        found = filled(fields, answer)
    except Misfit:
        assert answer.strip().startswith("{")
        return
    assert found is None or set(found) <= {"word"}
