"""Where telemetry goes, by the environment variables that OpenTelemetry's own exporters read."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import attrs

from runtime.errors import UsageError

DEFAULT = "http://localhost:4318"


@attrs.frozen
class Target:
    """Two addresses, the headers to send, seconds a request may take, and what the resource is said to be."""

    traces: str
    metrics: str
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    timeout: float = 10.0
    resource: Mapping[str, str] = attrs.field(factory=dict[str, str])


def asked_for(wanted: bool, version: str) -> Target | None:
    """Where telemetry goes by this process's environment, None where nobody asked for it. Raises UsageError."""
    return target_from(os.environ, version) if wanted else None


def target_from(env: Mapping[str, str], version: str) -> Target:
    """Raises UsageError for what is no address, header or number, for another protocol, and without the extra."""
    if not _installed():
        raise UsageError("--otel needs a package that is not installed: pip install 'elenco[otel]'")
    protocol = env.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol != "http/protobuf":
        raise UsageError(f"OTEL_EXPORTER_OTLP_PROTOCOL is '{protocol}'; here it can only be http/protobuf")
    base = (env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT).rstrip("/")
    name = env.get("OTEL_SERVICE_NAME") or "elenco"
    return Target(
        _address(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{base}/v1/traces"),
        _address(env, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", f"{base}/v1/metrics"),
        _pairs(env, "OTEL_EXPORTER_OTLP_HEADERS"),
        _milliseconds(env, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000) / 1000,
        {**_pairs(env, "OTEL_RESOURCE_ATTRIBUTES"), "service.name": name, "service.version": version},
    )


def _installed() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.proto.trace.v1") is not None
    except ModuleNotFoundError:
        return False


def _address(env: Mapping[str, str], variable: str, usual: str) -> str:
    address = env.get(variable) or usual
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        named = variable if env.get(variable) else "OTEL_EXPORTER_OTLP_ENDPOINT"
        raise UsageError(f"{named} must be an http or https address, such as {DEFAULT}")
    return address


def _pairs(env: Mapping[str, str], variable: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in env.get(variable, "").split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{variable} must be KEY=VALUE pairs with commas between")  # no part of a key is shown
        found[key.strip()] = unquote(value.strip())
    return found


def _milliseconds(env: Mapping[str, str], variable: str, usual: float) -> float:
    text = env.get(variable) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise UsageError(f"{variable} must be a number of milliseconds, not '{text}'")
    return value
