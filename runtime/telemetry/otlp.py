"""Spans and metrics as OTLP messages in protobuf; the one module that needs the extra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from .metrics import Metrics
from .spans import Attributes, Span, Value


def traces(spans: Iterable[Span], resource: Mapping[str, str]) -> bytes:
    """A request of the trace service."""
    scoped = trace_pb2.ScopeSpans(scope=_scope(resource), spans=[_span(span) for span in spans])
    found = trace_pb2.ResourceSpans(resource=_resource(resource), scope_spans=[scoped])
    return ExportTraceServiceRequest(resource_spans=[found]).SerializeToString()


def metrics(counted: Metrics, resource: Mapping[str, str], since: float, now: float) -> bytes:
    """A request of the metrics service: all histograms, cumulative from `since` to `now`."""
    found = [
        metrics_pb2.Metric(
            name=instrument.name,
            unit=instrument.unit,
            description=instrument.words,
            histogram=metrics_pb2.Histogram(
                aggregation_temporality=metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE,
                data_points=[
                    metrics_pb2.HistogramDataPoint(
                        attributes=_attributes(attributes),
                        start_time_unix_nano=_nanoseconds(since),
                        time_unix_nano=_nanoseconds(now),
                        count=point.count,
                        sum=point.total,
                        min=point.least,
                        max=point.most,
                        bucket_counts=point.counts,
                        explicit_bounds=instrument.bounds,
                    )
                    for attributes, point in points
                ],
            ),
        )
        for instrument, points in counted.points()
    ]
    scoped = metrics_pb2.ScopeMetrics(scope=_scope(resource), metrics=found)
    whole = metrics_pb2.ResourceMetrics(resource=_resource(resource), scope_metrics=[scoped])
    return ExportMetricsServiceRequest(resource_metrics=[whole]).SerializeToString()


def _span(span: Span) -> trace_pb2.Span:
    status = trace_pb2.Status()
    if span.error:
        status = trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR, message=span.message)
    return trace_pb2.Span(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent,
        name=span.name,
        kind=trace_pb2.Span.SPAN_KIND_CLIENT if span.client else trace_pb2.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=_nanoseconds(span.start),
        end_time_unix_nano=_nanoseconds(max(span.start, span.end)),
        attributes=_attributes(span.attributes),
        status=status,
    )


def _scope(resource: Mapping[str, str]) -> InstrumentationScope:
    return InstrumentationScope(name="elenco", version=resource.get("service.version", ""))


def _resource(resource: Mapping[str, str]) -> Resource:
    return Resource(attributes=_attributes(resource))


def _attributes(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case _:
            return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
