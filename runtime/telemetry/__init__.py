"""OpenTelemetry: a run's events as GenAI spans and metrics, sent to a collector; used only where it is asked for."""
