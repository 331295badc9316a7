"""ModelClient: the stream function for real models, and the owner of its connections."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Final, Self

import trio

from trio_agent._middleware import with_limiter, with_retries
from trio_agent._models import Model, StreamOptions
from trio_agent._retry import RetryPolicy
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._stream_fn import ConnectingStreamFn, StreamFn
from trio_agent._transcript import Context
from trio_agent.providers._connections import AsyncHTTPClient, Connections
from trio_agent.providers._http import Driver
from trio_agent.providers._settings import RequestHook, ResponseHook, Settings

__all__ = ["ModelClient", "stream"]

_MAX_CONNECTIONS: Final = 500
"""Half of the files that a process may have open on most systems."""


class ModelClient(ConnectingStreamFn):
    """A stream function that asks models over HTTP, in the wire format that each of them names in ``api``.

    Connections are kept as long as their owner lives. Used as ``async with ModelClient() as client`` that is the
    client, and all agents that have it as ``stream_fn`` share its connections. Otherwise it is the agent (used as
    ``async with Agent(...)``), or else the run, or else the single answer.

    Args:
        http_client: to send with, an ``httpx.AsyncClient`` or one like it; whoever made it closes it. ``None`` makes
            one for each owner, with an unbounded pool. Where its responses tell their ``network_stream`` over HTTP/1.1,
            as those of ``httpx`` do, chunks that are in memory already are decoded together.
        api_keys: by provider; the environment gives the others.
        retries: of requests that fail before anything was answered; ``None`` for none.
        limiter: of answers that are open at once, wherever their connections are; may be shared. ``None`` gives each
            owner one of 500.
        idle_timeout: seconds that a server may be silent; ``StreamOptions.timeout`` counts instead where it is given.
            There is no limit on a whole answer: write ``trio.move_on_after``.
        connect_timeout: seconds to reach a server.
        on_request: awaited with each request before it is sent; may return another body for it.
        on_response: awaited with the head of each response.

    Raises:
        ValueError: a time is not positive.
    """

    def __init__(
        self,
        *,
        http_client: AsyncHTTPClient | None = None,
        api_keys: Mapping[str, str] | None = None,
        retries: RetryPolicy | None = RetryPolicy(),  # noqa: B008
        limiter: trio.CapacityLimiter | None = None,
        idle_timeout: float = 600.0,
        connect_timeout: float = 10.0,
        on_request: RequestHook | None = None,
        on_response: ResponseHook | None = None,
    ) -> None:
        self._settings = Settings(
            api_keys=dict(api_keys or {}),
            environment=os.environ,
            idle_timeout=idle_timeout,
            connect_timeout=connect_timeout,
            on_request=on_request,
            on_response=on_response,
        )
        self._http_client = http_client
        self._retries = retries
        self._limiter = limiter
        self._opened: Connections | None = None
        self._asks: StreamFn | None = None

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        """Prepare a request; see ``StreamFn``."""
        return (self._asks or self._ask_alone)(model, context, options)

    @asynccontextmanager
    async def _ask_alone(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
        async with self._connect() as connections, self._over(connections)(model, context, options) as events:
            yield events

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[StreamFn]:
        """The same with connections that are kept until the block is left, unless the client is open itself."""
        if self._asks is not None:
            yield self
            return
        async with self._connect() as connections:
            yield self._over(connections)

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise RuntimeError("the client is open already; open it once, around all agents that use it")
        self._opened = self._connect()
        self._asks = self._over(self._opened)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opened, self._opened, self._asks = self._opened, None, None
        if opened is not None:
            await opened.aclose()  # noqa: ASYNC102  # see Connections

    def _connect(self) -> Connections:
        return Connections(self._http_client)

    def _over(self, connections: Connections) -> StreamFn:
        limiter = self._limiter or trio.CapacityLimiter(_MAX_CONNECTIONS)
        ask = with_limiter(Driver(connections, self._settings), limiter)
        return ask if self._retries is None else with_retries(ask, self._retries)

    def __repr__(self) -> str:
        return f"<ModelClient {'open' if self._opened is not None else 'closed'}>"


stream: Final = ModelClient()
"""The default stream function: asks any model, with keys from the environment."""
