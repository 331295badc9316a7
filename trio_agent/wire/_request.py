"""WireRequest: what goes over the wire for one answer, as a value, and how its headers come together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from trio_agent._messages import JsonObject
from trio_agent._models import Model, StreamOptions
from trio_agent.wire._json import encode

__all__ = ["WireRequest", "affinity_headers", "endpoint", "merge_headers"]


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A POST request. Its repr shows neither headers, which hold the key, nor the body.

    Attributes:
        url: where it goes.
        headers: names in lower case.
        body: JSON; its members may be replaced before it is sent, but not changed in depth: they are the transcript's.
        aliases: tool names on the wire that stand for others; the decoder needs them.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: JsonObject = field(repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])

    def content(self) -> bytes:
        """The body as bytes: valid UTF-8 JSON, whatever the transcript holds."""
        return encode(self.body)


def endpoint(base_url: str, path: str) -> str:
    """The URL of a path below a base URL, whose query (Azure's ``api-version``) stays."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def merge_headers(*layers: Mapping[str, str | None] | Mapping[str, str] | None) -> dict[str, str]:
    """Headers of several layers: the later wins whatever its case, ``None`` takes a header away."""
    merged: dict[str, str] = {}
    for layer in layers:
        for name, value in (layer or {}).items():
            if value is None:
                merged.pop(name.lower(), None)
            else:
                merged[name.lower()] = value
    return merged


def request_headers(
    model: Model, options: StreamOptions, key_header: str, defaults: Mapping[str, str], affinity: Mapping[str, str]
) -> dict[str, str]:
    """All headers of a request. Without a key there is no header for it: local servers want none."""
    key = options.api_key
    bearer = key_header.lower() == "authorization"
    auth = {key_header: f"Bearer {key}" if bearer else key} if key else {}
    base = {"accept": "text/event-stream, application/json", "content-type": "application/json"}
    return merge_headers({**base, **defaults, **auth}, model.headers, affinity, options.headers)


def affinity_headers(options: StreamOptions, *, send: bool, style: str) -> dict[str, str]:
    """Headers by which a router finds the server that has the session's prompt in its cache."""
    session = options.session_id
    if not send or not session or options.cache_retention == "none":
        return {}
    if style == "openrouter":
        return {"x-session-id": session}
    headers = {"x-client-request-id": session, "x-session-affinity": session}
    return headers if style == "openai-nosession" else {"session_id": session, **headers}
