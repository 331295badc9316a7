"""Chunks that are there already are decoded together, and nothing is read that was not asked for.

The bytes come from a network of ``httpcore`` that gives one piece a read, through its real connections.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import httpcore
import httpx
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_agent import AssistantMessageEvent, StreamDone, StreamError, TextDelta
from trio_agent.providers import ModelClient
from trio_agent.providers._body import _MOST_CHUNKS

from .raw_server import CHUNKED, CONTEXT, END, FINISH, OPTIONS, ask, chunk, delta, head, model_at

Wait = Callable[[], Awaitable[object]]

_HEAD = head("200 OK", CHUNKED)
_REST = chunk(FINISH) + END
_STOP = FINISH.replace(b"data: [DONE]\n\n", b"")  # after which the body has to end


class Stream(httpcore.AsyncNetworkStream):
    """A connection that brings one piece a read; after the last, reads wait for ever.

    Attributes:
        reads: that have begun.
        is_closed: whether it was closed.
    """

    def __init__(self, pieces: Iterable[bytes | Exception]) -> None:
        self.reads = 0
        self.is_closed = False
        self._pieces = list(pieces)

    async def read(self, max_bytes: int, *args: object, **options: object) -> bytes:
        self.reads += 1
        await trio.lowlevel.checkpoint()
        if not self._pieces:
            await trio.sleep_forever()
        piece = self._pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        assert len(piece) <= max_bytes
        return piece

    async def write(self, buffer: bytes, *args: object, **options: object) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self.is_closed = True

    def get_extra_info(self, info: str) -> Any:
        return None


class Network(httpcore.AsyncNetworkBackend):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return self._stream


class Transport(httpx.AsyncBaseTransport):
    """Sends over connections of ``httpcore``, as the transport of ``httpx`` does.

    Args:
        stream: the connection.
        changes: of the extensions of each response.
        end: awaited at the end of each body.
        between: awaited before each chunk.
    """

    def __init__(
        self, stream: Stream, changes: Mapping[str, Any], *, end: Wait | None = None, between: Wait | None = None
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(network_backend=Network(stream))
        self._changes = changes
        self._end = end
        self._between = between

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._pool.handle_async_request(
            httpcore.Request(request.method, str(request.url), headers=request.headers.raw, content=request.content)
        )
        body = Chunks(response, self._end, self._between)
        extensions = {**response.extensions, **self._changes}
        return httpx.Response(response.status, headers=response.headers, stream=body, extensions=extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class Chunks(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, end: Wait | None, between: Wait | None) -> None:
        self._stream = response.stream
        self._response = response
        self._end = end
        self._between = between

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            assert not isinstance(self._stream, Iterable)
            async for part in self._stream:
                if self._between is not None:
                    await self._between()
                yield part
            if self._end is not None:
                await self._end()
        except httpcore.NetworkError as exc:
            raise httpx.ReadError(str(exc)) from exc
        except httpcore.ProtocolError as exc:
            raise httpx.RemoteProtocolError(str(exc)) from exc

    async def aclose(self) -> None:
        await self._response.aclose()


class Answer:
    """An answer, and the connection that it comes over."""

    def __init__(self, events: Any, stream: Stream) -> None:
        self._events = events
        self.stream = stream

    async def receive(self) -> list[AssistantMessageEvent]:
        return list(await self._events.receive_some())

    async def texts(self) -> list[str]:
        """The texts that come together."""
        return [event.delta for event in await self.receive() if isinstance(event, TextDelta)]


@asynccontextmanager
async def answer(
    *pieces: bytes | Exception,
    stream: Stream | None = None,
    end: Wait | None = None,
    between: Wait | None = None,
    **changes: Any,
) -> AsyncGenerator[Answer]:
    """Ask, take what is there with the head, and be ready for the first read of the body."""
    stream = stream or Stream([_HEAD, *pieces])
    async with (
        httpx.AsyncClient(transport=Transport(stream, changes, end=end, between=between)) as http_client,
        ModelClient(http_client=http_client, retries=None) as client,
        client(model_at("http://nowhere.invalid"), CONTEXT, OPTIONS) as events,
    ):
        opened = Answer(events, stream)
        assert await opened.texts() == []
        yield opened


def chunks(texts: str) -> bytes:
    return b"".join(chunk(delta(text)) for text in texts)


async def test_a_chunk_that_is_read_comes_at_once_and_those_that_are_there_come_together() -> None:
    async with answer(chunks("abc"), chunks("d"), chunks("efgh"), _REST) as opened:
        assert [await opened.texts() for _ in range(5)] == [["a"], ["b", "c"], ["d"], ["e"], ["f", "g", "h"]]
        assert isinstance((await opened.receive())[-1], StreamDone)
        assert await opened.receive() == []


async def test_nothing_is_read_that_was_not_asked_for() -> None:
    async with answer(*[chunks("abc")] * 3) as opened:
        for reads in (2, 3, 4):
            for texts in (["a"], ["b", "c"]):
                assert await opened.texts() == texts
                assert opened.stream.reads == reads


async def test_no_chunk_waits_for_one_that_is_on_its_way() -> None:
    second = chunk(delta("c"))
    async with answer(chunks("ab") + second[:9], second[9:]) as opened:
        assert [await opened.texts() for _ in range(3)] == [["a"], ["b"], ["c"]]


async def test_no_chunk_waits_for_the_network_where_the_client_waits_for_something_else_too() -> None:
    async with answer(*[chunks("abc")] * 3, between=trio.lowlevel.checkpoint) as opened:
        for reads in (2, 3, 4):
            for texts in (["a"], ["b", "c"]):
                assert await opened.texts() == texts
                assert opened.stream.reads == reads


async def test_chunks_that_are_there_in_great_number_are_taken_in_portions() -> None:
    async with answer(chunks("x" * (3 * _MOST_CHUNKS + 1)), _REST) as opened:
        portions = []
        while received := await opened.texts():
            portions.append(len(received))

    assert portions == [1] + [_MOST_CHUNKS] * 3


@settings(deadline=None)
@given(
    texts=st.lists(st.text("abc", min_size=1, max_size=20), max_size=50),
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=10),
)
def test_however_the_network_cuts_it_an_answer_is_the_same(texts: list[str], sizes: list[int]) -> None:
    data = b"".join(chunk(delta(text)) for text in texts) + _REST
    pieces: list[bytes] = []
    for size in itertools.cycle(sizes):
        if not data:
            break
        pieces.append(data[:size])
        data = data[size:]

    async def receive() -> list[AssistantMessageEvent]:
        events: list[AssistantMessageEvent] = []
        async with answer(*pieces) as opened:
            while received := await opened.receive():
                events += received
        return events

    events = trio.run(receive)
    assert [event.delta for event in events if isinstance(event, TextDelta)] == texts
    assert isinstance(events[-1], StreamDone)


async def test_what_arrived_before_a_failure_comes_before_it() -> None:
    async with answer(chunks("abc") + b"this is no chunk\r\n") as opened:
        assert [await opened.texts() for _ in range(2)] == [["a"], ["b", "c"]]
        [*_, last] = await opened.receive()

    assert isinstance(last, StreamError)
    assert last.message is not None
    assert last.message.text == "abc"
    assert (last.message.error_message or "").startswith("Connection error: ")


async def test_a_connection_that_breaks_while_it_is_read_ends_the_answer() -> None:
    async with answer(chunks("a"), httpcore.ReadError("reset")) as opened:
        assert await opened.texts() == ["a"]
        [*_, last] = await opened.receive()

    assert isinstance(last, StreamError)


@pytest.mark.parametrize("taken", range(4))
async def test_an_answer_that_is_closed_early_leaves_nothing_behind(taken: int) -> None:
    pieces = [chunks("abc")] * 5
    async with answer(*pieces) as opened:
        for _ in range(taken):
            await opened.receive()

    assert opened.stream.is_closed
    assert "read" not in vars(opened.stream)


async def test_cancellation_takes_a_read_apart_that_has_begun(autojump_clock: trio.testing.MockClock) -> None:
    stream = Stream([_HEAD, chunks("a")])
    with trio.move_on_after(1) as scope:
        async with answer(stream=stream) as opened:
            assert await opened.texts() == ["a"]
            await opened.texts()

    assert scope.cancelled_caught
    assert stream.is_closed
    assert "read" not in vars(stream)


async def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    response = [_HEAD, chunks("abc"), _REST]
    stream = Stream(response * 3)
    async with (
        httpx.AsyncClient(transport=Transport(stream, {})) as http_client,
        ModelClient(http_client=http_client, retries=None) as client,
    ):
        for _ in range(3):
            async with client(model_at("http://nowhere.invalid"), CONTEXT, OPTIONS) as events:
                opened = Answer(events, stream)
                texts = [await opened.texts() for _ in range(3)]
                assert texts == [[], ["a"], ["b", "c"]]
                while await opened.receive():
                    pass
            assert "read" not in vars(stream)

    assert stream.reads == 9


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"network_stream": None}, id="no connection"),
        pytest.param({"network_stream": Stream([])}, id="another connection"),
        pytest.param({"network_stream": object()}, id="without attributes"),
        pytest.param({"network_stream": SimpleNamespace()}, id="without a read"),
        pytest.param({"http_version": b"HTTP/2"}, id="HTTP/2"),
    ],
)
async def test_a_client_that_does_not_tell_its_connection_is_read_chunk_by_chunk(changes: dict[str, Any]) -> None:
    async with answer(chunks("abc"), _REST, **changes) as opened:
        assert [await opened.texts() for _ in range(4)] == [["a"], ["b"], ["c"], []]
        assert vars(opened.stream).keys() == vars(Stream([])).keys()


@pytest.mark.parametrize(
    ("pieces", "receives"),
    [((chunks("a") + chunk(_STOP), END), 2), ((chunks("ab") + chunk(_STOP) + END,), 2)],
    ids=["read for itself", "there already"],
)
async def test_a_connection_is_as_it_was_when_its_body_is_over(pieces: tuple[bytes, ...], receives: int) -> None:
    async with answer(*pieces) as opened:
        for _ in range(receives):
            assert "read" in vars(opened.stream)
            assert await opened.receive()
        assert "read" not in vars(opened.stream), "the next answer may come over it already"


async def test_the_end_of_a_body_may_wait_for_something_else_and_read_more() -> None:
    stream = Stream([_HEAD, chunks("a") + _REST, b"after it"])

    async def end() -> None:
        await trio.lowlevel.checkpoint()
        assert await stream.read(100) == b"after it"

    async with answer(stream=stream, end=end) as opened:
        assert await opened.texts() == ["a"]
        assert isinstance((await opened.receive())[-1], StreamDone)

    assert stream.reads == 3


async def test_cancellation_reaches_what_the_end_of_a_body_waits_for(autojump_clock: trio.testing.MockClock) -> None:
    reached = trio.Event()

    async def end() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            reached.set()
            raise

    with trio.move_on_after(1) as scope:
        async with answer(chunks("a") + _REST, end=end) as opened:
            assert await opened.texts() == ["a"]
            await opened.receive()

    assert scope.cancelled_caught
    assert reached.is_set()


async def test_what_breaks_after_a_whole_answer_breaks_nothing() -> None:
    async with answer(chunk(FINISH), httpcore.ReadError("reset")) as opened:
        assert isinstance((await opened.receive())[-1], StreamDone)

    assert opened.stream.is_closed


async def test_a_bug_of_the_client_is_raised_also_after_a_whole_answer() -> None:
    with pytest.raises(KeyError, match="a bug"):
        async with answer(chunk(FINISH), KeyError("a bug")) as opened:
            assert isinstance((await opened.receive())[-1], StreamDone)


@pytest.mark.parametrize("failure", [KeyError("a bug"), httpcore.ReadError("reset")], ids=repr)
async def test_a_failure_that_came_with_the_last_chunk_is_not_lost(failure: Exception) -> None:
    async def end() -> None:
        raise failure

    with pytest.raises(KeyError, match="a bug") if isinstance(failure, KeyError) else nullcontext():
        async with answer(chunks("a") + _REST, end=end) as opened:
            assert await opened.texts() == ["a"]
            assert isinstance((await opened.receive())[-1], StreamDone)


async def test_an_empty_chunk_of_another_client_is_not_the_end() -> None:
    class Response:
        status_code = 200
        headers: Mapping[str, str] = {}

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            for data in (b"", delta("a"), b"", FINISH):
                yield data

    class Client:
        @asynccontextmanager
        async def stream(self, *args: object, **kwargs: object) -> AsyncGenerator[Response]:
            yield Response()

    async with ModelClient(http_client=Client(), retries=None) as client:
        events = await ask(client, model_at("http://nowhere.invalid"))

    assert isinstance(events[-1], StreamDone)
    assert events[-1].message is not None
    assert events[-1].message.text == "a"


def listen_to(stream: Stream) -> list[int]:
    """Keep the sizes of all that is read, in the way that a tool for debugging might."""
    read, sizes = stream.read, []

    async def listen(max_bytes: int, *args: object, **options: object) -> bytes:
        data = await read(max_bytes, *args, **options)
        sizes.append(len(data))
        return data

    stream.read = listen  # type: ignore[method-assign]
    return sizes


async def test_a_connection_that_somebody_else_listens_to_is_left_alone() -> None:
    pieces = [_HEAD, chunks("abc"), _REST]
    stream = Stream(pieces)
    sizes = listen_to(stream)
    listener = stream.read
    async with answer(stream=stream) as opened:
        assert [await opened.texts() for _ in range(4)] == [["a"], ["b"], ["c"], []]

    assert stream.read is listener
    assert sizes == [len(piece) for piece in pieces]


async def test_who_begins_to_listen_to_a_connection_meanwhile_goes_on() -> None:
    async with answer(chunks("abc"), _REST) as opened:
        sizes = listen_to(opened.stream)
        listener = opened.stream.read
        assert [await opened.texts() for _ in range(3)] == [["a"], ["b", "c"], []]

    assert opened.stream.read is listener
    assert len(sizes) == 2
