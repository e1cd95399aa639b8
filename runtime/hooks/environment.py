"""The environment of a hook's command: built anew from the harmless part of ours, so that no key is in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "VIRTUAL_ENV"),
        *("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "NO_COLOR"),
    }
)


def hook_environment(ours: Mapping[str, str], *, run: str, event: str, workspace: str) -> dict[str, str]:
    """What is kept of our environment, and where the hook is: run, event and workspace."""
    kept = {name: value for name, value in ours.items() if name in KEPT or name.startswith("LC_")}
    return {
        **kept,
        "ELENCO_RUN": run,
        "ELENCO_EVENT": event,
        "ELENCO_WORKSPACE": workspace,
        "CLAUDE_PROJECT_DIR": workspace,
    }
