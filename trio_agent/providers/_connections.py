"""The connections of one owner: an HTTP client that is made when it is first needed, and closed with its owner.

The only place that knows how to make a client. Two things are not as a client would do by itself. Its pool is not
bounded: that of ``httpx`` 0.28 loses places for good when requests are cancelled while they wait for one (httpcore
issue 1093), so a limiter outside of it bounds the answers that are open at once. And the TLS context, which costs more
than all the rest of a client, is made once.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol, Self

__all__ = ["AsyncHTTPClient", "AsyncHTTPResponse", "Connections"]

_MAX_IDLE = 20
_IDLE_SECONDS = 30.0


class AsyncHTTPResponse(Protocol):
    """What is needed of a response; that of ``httpx`` has it."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, whose names are looked up in any case."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The decompressed body, as it arrives."""
        ...


class AsyncHTTPClient(Protocol):
    """What is needed of an HTTP client: ``httpx.AsyncClient`` and ``httpx2.AsyncClient`` have it.

    A client for other purposes may bound its pool; one for many agents at once should not (``httpx`` 0.28 loses places
    when requests are cancelled), and be given a ``limiter`` beside it.
    """

    def stream(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: dict[str, str],
        timeout: tuple[float | None, float | None, float | None, float | None],
        extensions: dict[str, Any],
    ) -> AbstractAsyncContextManager[AsyncHTTPResponse]:
        """Send a request and receive the head of its response.

        Args:
            method: of HTTP.
            url: where to.
            content: the body.
            headers: by name.
            timeout: seconds to connect, between two reads, for each write, and for a place in the pool.
            extensions: for the transport.
        """
        ...


class _OwnClient(AsyncHTTPClient, Protocol):
    async def aclose(self) -> None: ...


class Connections:
    """The connections of one owner, open while its block runs.

    Args:
        client: of the user, who closes it; ``None`` makes one.
    """

    def __init__(self, client: AsyncHTTPClient | None = None) -> None:
        self._client = client
        self._own: _OwnClient | None = None

    @property
    def client(self) -> AsyncHTTPClient:
        """The client, made now if there is none yet."""
        if self._client is None:
            self._own = _make_client()
            self._client = self._own
        return self._client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()  # noqa: ASYNC102  # closing its sockets is all that it waits for, and is shielded inside

    async def aclose(self) -> None:
        """Close the client, if it was made here."""
        own, self._own = self._own, None
        if own is not None:
            self._client = None
            await own.aclose()


def _make_client() -> _OwnClient:
    import httpx  # noqa: ASYNC127  # users may bring its successor

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_MAX_IDLE, keepalive_expiry=_IDLE_SECONDS)
    # HTTP/1.1 only: closing the connection is what makes a provider stop, and with HTTP/2 a cancelled answer is never
    # reset by httpcore (issue 943).
    return httpx.AsyncClient(verify=_tls_context(), limits=limits, http1=True, http2=False)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    import httpx  # noqa: ASYNC127  # users may bring its successor

    return httpx.create_ssl_context()
