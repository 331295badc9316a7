"""The body of a response: its chunks as they arrive, and together those that are there already.

A server that writes an event at a time also makes an HTTP chunk of each, and ``httpx`` gives the chunks out one by one.
Turning from its code to ours and back for each costs more than decoding does, so a process that has fallen behind its
servers pays twice. A chunk that came without a read of the network has others behind it, perhaps, and all of them can
be taken at once; but where the next read begins, the client does not tell. ``_NetworkRead`` finds out, and stops there:
nothing is ever read that was not asked for, and no chunk waits for another one that is still on its way.

An iterator over a body is a chain of generators, deep inside the client, and each of them that is left suspended is
collected with a warning and closes its part of the connection at some later time. So a chain is always run to its end;
where that is not wanted, by reading on in a scope that is cancelled already: the cancellation takes the chain apart
from the inside.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final, Protocol, cast

import trio

from trio_agent.providers._connections import AsyncHTTPResponse

__all__ = ["Body"]

_MOST_CHUNKS: Final = 256  # taken without a checkpoint in between; some milliseconds
_STANDS: Final = object()
"""A trap that no event loop sees: the read that yields it does not begin before it is sent on."""

Step = Generator[Any, Any, bytes]
"""What is left to run until the next chunk is there."""


class Body:
    """The body of a response. Read it to its end, or close it.

    Args:
        response: of which nothing has been read.
    """

    def __init__(self, response: AsyncHTTPResponse) -> None:
        self._chunks = response.aiter_bytes()
        self._network = _network_read_of(response)
        self._standing: Step | None = None
        self._failure: Exception | None = None

    async def receive_some(self) -> bytes:
        """Wait for more of the body. Returns a chunk that had to be read, or all that are there; empty after the last.

        Raises:
            Exception: that of the client, after all that had arrived before it was returned.
        """
        network = self._network
        reads = 0 if network is None else network.reads
        try:
            while not (chunk := await self._receive_chunk()):
                pass
        except StopAsyncIteration:
            self._let_go()
            return b""
        if network is None or not reads or reads != network.reads:
            return chunk
        chunks = [chunk]
        await self._take_what_is_there(chunks, network)
        return b"".join(chunks)

    async def _receive_chunk(self) -> bytes:
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # its traceback leads back to here
        step, self._standing = self._standing or self._next(), None
        return await _rest(step)

    def _next(self) -> Step:
        return anext(self._chunks).__await__()

    async def _take_what_is_there(self, chunks: list[bytes], network: _NetworkRead) -> None:
        network.stands = True
        try:
            while len(chunks) < _MOST_CHUNKS:
                step = self._next()
                try:
                    trap = step.send(None)
                    if trap is _STANDS:
                        self._standing = step
                        return
                    # Something else is waited for, such as a lock of the pool at the end of the body.
                    network.stands = False
                    chunks.append(await _rest(step, trap))
                    return
                except StopIteration as stop:
                    chunks.append(stop.value)
        except StopAsyncIteration:
            self._let_go()
        except Exception as exc:  # noqa: BLE001  # raised when it is its turn
            self._failure = exc
        finally:
            network.stands = False

    async def aclose(self, seconds: float, is_expected: Callable[[Exception], object]) -> None:
        """Read no more, except that the end of the body is awaited for so long: only then the connection can be kept.

        Args:
            seconds: to wait.
            is_expected: tells a failure of the connection, which breaks nothing any more, from all others.
        """
        self._let_go()
        with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
            if not seconds:
                scope.cancel()
            try:
                while True:
                    await self._receive_chunk()
            except StopAsyncIteration:
                pass
            except Exception as exc:
                if not is_expected(exc):
                    raise

    def _let_go(self) -> None:
        if self._network is not None:
            self._network.remove()
            self._network = None


@types.coroutine
def _rest(step: Step, trap: object = None) -> Generator[Any, Any, bytes]:
    """Await what is left of a step; of one that has been begun by hand, from the trap that it gave."""
    if trap is None:
        return (yield from step)
    try:
        while True:
            try:
                value = yield trap
            except BaseException as exc:  # noqa: BLE001, ASYNC103  # it goes into the step
                trap = step.throw(exc)
            else:
                trap = step.send(value)
    except StopIteration as stop:
        chunk: bytes = stop.value
        return chunk


class _NetworkStream(Protocol):
    read: Callable[..., Awaitable[bytes]]


class _NetworkRead:
    """Takes the place of the ``read`` of one connection, for as long as one body comes over it.

    Attributes:
        stands: whether a read is to stop before it begins. Only true while a step is run by hand, for whose eyes the
            trap is.
        reads: that have begun. Until there was one, nobody knows whether the body comes through here.
    """

    __slots__ = ("_read", "_stream", "reads", "stands")

    def __init__(self, stream: _NetworkStream) -> None:
        self._stream = stream
        self._read = stream.read
        self.reads = 0
        self.stands = False
        stream.read = self

    async def __call__(self, *args: object, **kwargs: object) -> bytes:
        if self.stands:
            await _stand()
        self.reads += 1
        return await self._read(*args, **kwargs)

    def remove(self) -> None:
        """Put the connection's own back."""
        if vars(self._stream).get("read") is self:
            del self._stream.read


@types.coroutine
def _stand() -> Generator[object, None, None]:
    yield _STANDS


def _network_read_of(response: AsyncHTTPResponse) -> _NetworkRead | None:
    """``None`` where no connection is told, many bodies share it, or somebody else has changed it."""
    extensions: Mapping[str, Any] = getattr(response, "extensions", {})
    if extensions.get("http_version") != b"HTTP/1.1":
        return None
    stream = extensions.get("network_stream")
    is_free = hasattr(stream, "read") and "read" not in getattr(stream, "__dict__", {"read": None})
    return _NetworkRead(cast("_NetworkStream", stream)) if is_free else None
