"""The one driver of all wire formats: sends what a format encodes, and feeds its decoder with what comes back.

Until the head of a good response is there, failures are exceptions, typed, for whoever may want to try again. From then
on they are the closing event of the answer, which keeps what had arrived and what it cost. What is logged, at debug
level, are sizes, times and names; never headers and never content.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Final, cast
from urllib.parse import urlsplit

import trio

from trio_agent._clock import timestamp_ms
from trio_agent._errors import ModelError
from trio_agent._messages import Message
from trio_agent._models import Model, StreamOptions
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._transcript import Context
from trio_agent.providers._auth import SECRET_HEADERS, authorize
from trio_agent.providers._connections import AsyncHTTPResponse, Connections
from trio_agent.providers._http_errors import connection_error, request_id_of, response_error
from trio_agent.providers._reading import AnswerStream, read_error_body
from trio_agent.providers._settings import HTTPRequest, HTTPResponse, Settings
from trio_agent.wire import WIRE_FORMATS

__all__ = ["Driver"]

logger = logging.getLogger("trio_agent.providers")

_WRITE_SECONDS: Final = 30.0


class Driver:
    """A stream function over HTTP.

    Args:
        connections: that it sends over.
        settings: that it keeps to.
    """

    def __init__(self, connections: Connections, settings: Settings) -> None:
        self._connections = connections
        self._settings = settings

    @asynccontextmanager
    async def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
        """Ask the model."""
        exchange = _Exchange(model, context, options, self._settings)
        await exchange.show_request()
        client = self._connections.client
        for is_last in (False, True):
            trace = _Trace()
            has_head = False
            exchange.log("request: %d bytes to %s", len(exchange.content), exchange.host)
            try:
                async with client.stream(
                    "POST",
                    exchange.url,
                    content=exchange.content,
                    headers=exchange.headers,
                    timeout=exchange.timeout,
                    extensions={"trace": trace},
                ) as response:
                    has_head = True
                    answer = await exchange.open(response)
                    try:
                        yield answer
                    finally:
                        await answer.aclose()
                        exchange.log("answer closed: %d bytes", answer.size)
                    return
            except Exception as exc:
                error = None if has_head else exchange.explain(exc)
                if error is None:
                    raise
                exchange.log("no response: %s", error)
                if is_last or not trace.died_unanswered:
                    # What is no failure of the connection quotes what was sent.
                    raise error from exc if error.retryable else None


class _Exchange:
    """One request, and how its response is to be read."""

    def __init__(self, model: Model, context: Context, options: StreamOptions, settings: Settings) -> None:
        wire = WIRE_FORMATS.get(model.api)
        if wire is None:
            raise ModelError(f"model {model.id!r} speaks {model.api!r}, and not one of: {', '.join(WIRE_FORMATS)}")
        authorized = authorize(model, options, settings.api_keys, settings.environment)
        # Who calls has converted messages of its own types.
        messages = cast("Sequence[Message]", context.messages)
        self._started = trio.current_time()
        self._model = model
        self._settings = settings
        self._secrets = authorized.secrets
        self._request = request = wire.encode(model, messages, authorized.options)
        self._decoder = wire.decoder(model, timestamp=timestamp_ms(), aliases=request.aliases)
        self._idle = options.timeout or settings.idle_timeout
        self.url = request.url
        self.host = urlsplit(request.url).hostname
        self.headers = {"user-agent": _user_agent(), "accept-encoding": "identity", **request.headers}
        self.content = request.content()
        self.timeout = (settings.connect_timeout, self._idle, _WRITE_SECONDS, None)

    async def show_request(self) -> None:
        """Let the hook see the request, and replace its body."""
        hook = self._settings.on_request
        if hook is None:
            return
        headers = {name: "***" if self._is_secret(name, value) else value for name, value in self.headers.items()}
        body = await hook(HTTPRequest(self._model, self.url, headers, self._request.body))
        if body is not None:
            self.content = dataclasses.replace(self._request, body=body).content()

    def _is_secret(self, name: str, value: str) -> bool:
        return name in SECRET_HEADERS or any(secret in value for secret in self._secrets)

    async def open(self, response: AsyncHTTPResponse) -> AnswerStream:
        """The answer that a response begins.

        Raises:
            ModelHTTPError: it is none.
        """
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        self.log("response: status %d", status, status=status, request_id=request_id_of(headers))
        if self._settings.on_response is not None:
            await self._settings.on_response(HTTPResponse(self._model, status, headers))
        if 200 <= status < 300:
            return AnswerStream(self._decoder, response, self.explain, self._secrets)
        body = await read_error_body(response, self.explain)
        raise response_error(self._model, status, headers, body, secrets=self._secrets, now=time.time())

    def explain(self, exc: Exception) -> ModelError | None:
        """The library's own error for what the client raised; ``None`` for what is no failure of HTTP."""
        return connection_error(exc, connect=self._settings.connect_timeout, idle=self._idle)

    def log(self, text: str, *arguments: object, **fields: object) -> None:
        """Log a step of the exchange."""
        if logger.isEnabledFor(logging.DEBUG):
            model, seconds = self._model, trio.current_time() - self._started
            known = {"provider": model.provider, "model": model.id, "seconds": seconds}
            logger.debug(f"%s/%s, %.3f s: {text}", model.provider, model.id, seconds, *arguments, extra=known | fields)


class _Trace:
    """Follows a request through the pool of an ``httpcore``: was its connection a kept one, did it answer.

    With a transport that tells nothing, a connection is taken for a new one.
    """

    def __init__(self) -> None:
        self._was_sent = False
        self._is_new = False
        self._has_answered = False

    async def __call__(self, name: str, info: Mapping[str, object]) -> None:
        """Take a step of the transport, such as ``connection.connect_tcp.started``."""
        del info
        self._is_new |= name.startswith("connection.connect_")
        self._was_sent |= name.endswith(".send_request_headers.started")
        self._has_answered |= name.endswith(".receive_response_headers.complete")

    @property
    def died_unanswered(self) -> bool:
        """Whether the request went over a kept connection that turned out to be gone.

        Servers close idle connections when they like, and may do so while a request is under way. It was not looked
        at then, and can be sent again at once.
        """
        return self._was_sent and not self._is_new and not self._has_answered


@cache
def _user_agent() -> str:
    try:
        return f"trio-agent/{importlib.metadata.version('trio-agent')}"
    except importlib.metadata.PackageNotFoundError:
        return "trio-agent"  # a copy of the package that nobody installed
