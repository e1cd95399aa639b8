"""Where a request goes and with which headers."""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

from .dialects import Dialect

_PATHS = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "anthropic-messages": "/messages",
}
_AZURE_VERSION = "2024-10-21"
_ANTHROPIC_VERSION = "2023-06-01"
_HOLDS_PASSWORD = (
    "the base URL holds a user name or password before its @, and would be shown and kept on record: "
    "write it without, and put the key in the environment"
)


def endpoint(
    wire: str, dialect: Dialect, base_url: str | None, model: str, key: str | None
) -> tuple[str, dict[str, str]]:
    """The URL to post to and the headers to send.

    `base_url` is what users copy from a server's documentation: with or without `/v1`, a trailing slash, the full
    path, or a query. None means the dialect's own. Without a key there is no header for one.

    Raises ValueError if there is no URL, or it is none of http or https, or holds a password, which is not shown.
    """
    base = base_url or dialect.base_url
    try:
        parts = urlsplit(base)
    except ValueError as error:
        raise ValueError(_HOLDS_PASSWORD if "@" in base else f"no usable base URL: {base!r}: {error}") from None
    usable = parts.scheme in ("http", "https") and parts.netloc
    if "@" in (parts.netloc if usable else base):
        raise ValueError(_HOLDS_PASSWORD)
    if not usable:
        raise ValueError(f"no usable base URL for {dialect.name}: {base!r}; it must begin with http:// or https://")
    path, query = parts.path.rstrip("/"), parts.query
    tail = _PATHS[wire]
    if path.endswith(tail):
        pass
    elif dialect.name == "azure" and wire == "openai-chat" and "/openai/v1" not in path and "/v1" not in path:
        if "/deployments/" not in path:
            path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"
        path += tail
        query = query or f"api-version={_AZURE_VERSION}"
    elif dialect.name == "azure" and not path:
        path = f"/openai/v1{tail}"
    else:
        # Anthropic's documentation leaves the version out of the base, the others put it in.
        versioned = path.rpartition("/")[2] in ("v1", "v1beta", "v2", "v3", "v4", "openai") or (
            bool(path) and wire != "anthropic-messages"
        )
        path += tail if versioned or (dialect.name == "deepseek" and wire == "openai-chat") else f"/v1{tail}"
    url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if wire == "anthropic-messages":
        headers["anthropic-version"] = _ANTHROPIC_VERSION
    headers.update(_authorisation(wire, dialect, key))
    return url, headers


def _authorisation(wire: str, dialect: Dialect, key: str | None) -> dict[str, str]:
    if not key:
        return {}
    bearer = {"authorization": f"Bearer {key}"}
    if dialect.auth == "api-key":
        return {"api-key": key}
    if wire != "anthropic-messages" or key.startswith("sk-ant-oat"):
        return bearer
    if dialect.name == "anthropic":
        return {"x-api-key": key}
    return {"x-api-key": key, **bearer}  # compatible servers look in either place
