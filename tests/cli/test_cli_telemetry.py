"""`--otel`: spans and metrics of the GenAI conventions at a collector, checked as it would read them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import attrs
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Run: TypeAlias = Callable[..., Any]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]

TEAM = """
coordinator:
  - {fail: {kind: rate_limit, retry_after: 0.01}}
  - calls:
      - {name: delegate_to_researcher, arguments: {task: "find the SECRET word"}}
    usage: {input: 100, output: 20, cached_input: 30}
  - {text: "it is SECRET", usage: {input: 200, output: 10}}
researcher:
  - {calls: [{name: read_file, arguments: {path: missing-SECRET.md}}], usage: {input: 50, output: 5}}
  - {text: "found SECRET", usage: {input: 60, output: 5}}
"""


@attrs.define
class Collector:
    """What came in, by path, and with which headers."""

    url: str = ""
    bodies: dict[str, list[bytes]] = attrs.Factory(dict[str, "list[bytes]"])
    headers: list[dict[str, str]] = attrs.Factory(list["dict[str, str]"])
    status: int = 200

    @property
    def spans(self) -> list[Span]:
        found: list[Span] = []
        for body in self.bodies.get("/v1/traces", []):
            for whole in ExportTraceServiceRequest.FromString(body).resource_spans:
                found += [span for scoped in whole.scope_spans for span in scoped.spans]
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector on this machine that keeps what it is sent."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept.bodies.setdefault(self.path, []).append(body)
            kept.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(kept.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        kept.url = f"http://127.0.0.1:{server.server_port}"
        yield kept
        server.shutdown()
        thread.join()


def values(attributes: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    found: dict[str, Any] = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found


def environment(collector: Collector) -> Mapping[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }


def test_a_run_is_told_to_a_collector(elenco: Run, script: Script, collector: Collector, record: Record) -> None:
    """Every actor, model call and tool call is a span in its place; counts agree with the journal; no text is sent."""
    done = elenco("run", "Find the SECRET", "--model", script(TEAM), "--otel", env=environment(collector))
    assert (0, "it is SECRET\n") == (done.returncode, done.stdout)
    assert "telemetry" not in done.stderr
    spans = {span.span_id: span for span in collector.spans}
    assert len(spans) == len(collector.spans)
    names = Counter(span.name for span in spans.values())
    assert {
        "invoke_agent coordinator": 1,
        "invoke_agent researcher": 1,
        "execute_tool delegate_to_researcher": 1,
        "execute_tool read_file": 1,
    } == {name: count for name, count in names.items() if not name.startswith("chat ")}
    events = record(done.stderr.split("run ")[1].split()[0])
    assert sum(event["type"] == "model.requested" for event in events) == 5
    assert 5 == sum(count for name, count in names.items() if name.startswith("chat "))

    def above(span: Span) -> list[str]:
        parent = spans.get(span.parent_span_id)
        return [span.name, *(above(parent) if parent is not None else [])]

    [read] = [span for span in spans.values() if span.name == "execute_tool read_file"]
    team = ["invoke_agent researcher", "execute_tool delegate_to_researcher", "invoke_agent coordinator"]
    assert [read.name, *team] == above(read)
    assert (Span.SPAN_KIND_INTERNAL, 2, "error") == (read.kind, read.status.code, values(read.attributes)["error.type"])
    assert 1 == len({span.trace_id for span in spans.values()})
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans.values())

    chats = [(span, values(span.attributes)) for span in spans.values() if span.name.startswith("chat ")]
    assert {Span.SPAN_KIND_CLIENT} == {span.kind for span, _ in chats}
    assert ["rate_limit"] == [each["error.type"] for _, each in chats if "error.type" in each]
    [first] = [each for _, each in chats if each.get("gen_ai.usage.input_tokens") == 100]
    assert (20, 30) == (first["gen_ai.usage.output_tokens"], first["gen_ai.usage.cache_read.input_tokens"])
    assert ("chat", "scripted", ["tool_calls"]) == (
        first["gen_ai.operation.name"],
        first["gen_ai.provider.name"],
        first["gen_ai.response.finish_reasons"],
    )
    assert first["gen_ai.response.time_to_first_chunk"] >= 0

    everything = b"".join(body for bodies in collector.bodies.values() for body in bodies)
    assert b"SECRET" not in everything
    assert {"a b"} == {each["x-tenant"] for each in collector.headers}
    assert {"application/x-protobuf"} == {each["content-type"] for each in collector.headers}

    [whole] = ExportMetricsServiceRequest.FromString(collector.bodies["/v1/metrics"][-1]).resource_metrics
    resource = values(whole.resource.attributes)
    assert ("elenco", "test") == (resource["service.name"], resource["deployment.environment.name"])
    points = {
        metric.name: list(metric.histogram.data_points) for scoped in whole.scope_metrics for metric in scoped.metrics
    }
    assert 5 == sum(point.count for point in points["gen_ai.client.operation.duration"])
    assert 2 == sum(point.count for point in points["gen_ai.invoke_agent.duration"])
    assert 2 == sum(point.count for point in points["gen_ai.execute_tool.duration"])
    tokens = {values(point.attributes)["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]}
    assert {"input": 410.0, "output": 40.0} == tokens
    for point in (point for found in points.values() for point in found):
        assert point.count == sum(point.bucket_counts)
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
        assert point.min <= point.max

    collector.bodies.clear()
    run = events[0]["run"]
    sent = elenco("tail", run, "--otel", env=environment(collector))
    assert (0, f"sent the spans and metrics of run {run}\n") == (sent.returncode, sent.stderr)
    assert set(spans) == {span.span_id for span in collector.spans}


def test_a_collector_that_takes_nothing_stops_nothing(elenco: Run, script: Script, collector: Collector) -> None:
    """A collector that refuses, or is not there, costs one line on stderr; answer and exit code are the run's own."""
    collector.status = 503
    model = script("coordinator: [ok]")
    done = elenco("run", "Look", "--model", model, "--otel", env=environment(collector))
    assert (0, "ok\n") == (done.returncode, done.stdout)
    assert f"! telemetry: 2 spans of this run did not reach the collector: {collector.url}/v1/traces answered 503" in (
        done.stderr
    )
    done = elenco("run", "Look", "--model", model, "--otel", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert (0, "ok\n") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count("telemetry:")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317", "must be an http or https address"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "here it can only be http/protobuf"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer-s3cret", "must be KEY=VALUE pairs"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "must be a number of milliseconds, not 'soon'"),
    ],
)
def test_a_wrong_variable_is_told_before_anything_runs(
    elenco: Run, script: Script, variable: str, value: str, said: str
) -> None:
    """A variable that makes no sense is named in one line, without a part of a key, and no run is made."""
    done = elenco("run", "Look", "--model", script("coordinator: [ok]"), "--otel", env={variable: value})
    assert (2, "") == (done.returncode, done.stdout)
    assert f"error: {variable}" in done.stderr
    assert said in done.stderr
    assert "s3cret" not in done.stderr


def test_nobody_is_told_who_was_not_asked(elenco: Run, script: Script, collector: Collector) -> None:
    """Without --otel nothing is sent, whatever the environment says."""
    assert 0 == elenco("run", "Look", "--model", script("coordinator: [ok]"), env=environment(collector)).returncode
    assert {} == collector.bodies
