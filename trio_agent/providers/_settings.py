"""What the driver keeps to, and what its hooks are shown."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from trio_agent._messages import JsonObject
from trio_agent._models import Model

__all__ = ["HTTPRequest", "HTTPResponse", "RequestHook", "ResponseHook", "Settings"]


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A request that is about to be sent.

    Attributes:
        model: that is asked.
        url: where it goes.
        headers: names in lower case; keys are replaced by ``***``.
        body: that will be sent. Its members are the transcript's and must not be changed in place.
    """

    model: Model
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class HTTPResponse:
    """The head of a response; its body has not been read.

    Attributes:
        model: that was asked.
        status: of the response.
        headers: names in lower case.
    """

    model: Model
    status: int
    headers: Mapping[str, str] = field(repr=False)


RequestHook: TypeAlias = Callable[[HTTPRequest], Awaitable[JsonObject | None]]
"""Sees each request before it is sent; what it returns is sent instead of the body."""

ResponseHook: TypeAlias = Callable[[HTTPResponse], Awaitable[None]]
"""Sees the head of each response, those of failures included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a driver keeps to.

    Attributes:
        api_keys: by provider; the environment gives the others.
        environment: variables by name.
        idle_timeout: seconds that a server may be silent; ``StreamOptions.timeout`` counts instead where it is given.
        connect_timeout: seconds to reach it.
        on_request: sees each request, and may replace its body.
        on_response: sees each response.

    Raises:
        ValueError: a time is not positive.
    """

    api_keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    idle_timeout: float = 600.0
    connect_timeout: float = 10.0
    on_request: RequestHook | None = None
    on_response: ResponseHook | None = None

    def __post_init__(self) -> None:
        for name in ("idle_timeout", "connect_timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {getattr(self, name)!r}")
