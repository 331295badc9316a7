"""Backpressure: who stops reading events stops the socket, within one chunk of what was delivered (P7).

The answer comes through httpx and the real driver, from a body that counts what is pulled out of it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_agent import (
    Agent,
    AgentEvent,
    Context,
    MessageUpdate,
    TextDelta,
    UserMessage,
)
from trio_agent.lowlevel import LoopConfig, agent_loop
from trio_agent.providers import ModelClient, openai_compatible

_MODEL = openai_compatible("http://nowhere.invalid/v1").model("some-model")
_CHUNKS = 1000


class CountingBody(httpx.AsyncByteStream):
    """The body of an answer: so many chunks with so many deltas each.

    Attributes:
        pulled: chunks that were asked for.
        closed: whether the connection was given back.
    """

    def __init__(self, chunks: int = _CHUNKS, deltas: int = 1) -> None:
        self.pulled = 0
        self.closed = False
        self._chunks = chunks
        piece = {"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
        self._chunk = f"data: {json.dumps(piece)}\n\n".encode() * deltas

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.pulled < self._chunks:
            self.pulled += 1
            await trio.lowlevel.checkpoint()
            yield self._chunk
        yield b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    async def aclose(self) -> None:
        """The client has closed it."""
        self.closed = True


def _client(body: CountingBody) -> ModelClient:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, stream=body))
    return ModelClient(http_client=httpx.AsyncClient(transport=transport), retries=None)


class Reader:
    """Handles events until it has seen so many deltas, and then stops, for ever.

    Attributes:
        deltas: that it has seen.
    """

    def __init__(self, stops_after: int) -> None:
        self.deltas = 0
        self._stops_after = stops_after

    async def __call__(self, event: AgentEvent) -> None:
        if isinstance(event, MessageUpdate) and isinstance(event.assistant_message_event, TextDelta):
            self.deltas += 1
            if self.deltas == self._stops_after:
                await trio.sleep_forever()


Way = Callable[[CountingBody, Reader], Awaitable[None]]


def _agent(body: CountingBody) -> Agent:
    return Agent(_MODEL, stream_fn=_client(body))


async def watch_run(body: CountingBody, reader: Reader) -> None:
    async with _agent(body).run("go") as run:
        async for event in run:
            await reader(event)


async def watch_from_another_task(body: CountingBody, reader: Reader, buffer: int = 0) -> None:
    agent = _agent(body)
    async with trio.open_nursery() as nursery:
        with agent.events(buffer=buffer) as events:
            nursery.start_soon(agent.prompt, "go")
            async for event in events:
                await reader(event)


async def watch_with_buffer(body: CountingBody, reader: Reader) -> None:
    await watch_from_another_task(body, reader, buffer=5)


async def listen(body: CountingBody, reader: Reader) -> None:
    agent = _agent(body)
    agent.subscribe(reader)
    await agent.prompt("go")


async def watch_beside_a_fast_one(body: CountingBody, reader: Reader) -> None:
    agent = _agent(body)
    async with trio.open_nursery() as nursery:
        with agent.events() as slow, agent.events() as fast:
            nursery.start_soon(agent.prompt, "go")
            nursery.start_soon(_drain, fast)  # noqa: ASYNC111
            async for event in slow:
                await reader(event)


async def _drain(events: AsyncIterator[AgentEvent]) -> None:
    async for _ in events:
        pass


async def _loop(body: CountingBody, reader: Reader, buffer: int) -> None:
    prompts = [UserMessage(content="go", timestamp=0)]
    config = LoopConfig(model=_MODEL)
    async with agent_loop(prompts, Context((), ()), config, _client(body), buffer=buffer) as stream:
        async for event in stream:
            await reader(event)


async def observe_loop(body: CountingBody, reader: Reader) -> None:
    await _loop(body, reader, 0)


async def observe_loop_with_buffer(body: CountingBody, reader: Reader) -> None:
    await _loop(body, reader, 3)


@pytest.mark.parametrize(
    ("way", "buffer"),
    [
        (watch_run, 0),
        (watch_from_another_task, 0),
        (watch_with_buffer, 5),
        (watch_beside_a_fast_one, 0),
        (listen, 0),
        (observe_loop, 0),
        (observe_loop_with_buffer, 3),
    ],
)
@pytest.mark.parametrize("stops_after", [1, 20])
async def test_a_reader_that_stops_stops_the_socket_within_a_chunk(way: Way, buffer: int, stops_after: int) -> None:
    body, reader = CountingBody(), Reader(stops_after)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(way, body, reader)
        await wait_all_tasks_blocked()
        pulled, seen = body.pulled, reader.deltas
        nursery.cancel_scope.cancel()

    assert seen == stops_after
    assert seen <= pulled <= seen + buffer + 1
    assert body.closed


async def test_a_chunk_with_many_deltas_is_the_last_one_that_is_pulled() -> None:
    body, reader = CountingBody(deltas=10), Reader(25)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_run, body, reader)
        await wait_all_tasks_blocked()
        pulled = body.pulled
        nursery.cancel_scope.cancel()

    assert pulled == 3


async def test_a_reader_that_does_not_begin_lets_nothing_be_asked() -> None:
    body = CountingBody()

    async with _agent(body).run("go"):
        await wait_all_tasks_blocked()
        pulled = body.pulled

    assert pulled == 0


async def test_a_reader_that_goes_on_gets_everything() -> None:
    body, reader = CountingBody(chunks=50), Reader(stops_after=51)

    await watch_run(body, reader)

    assert reader.deltas == body.pulled == 50
    assert body.closed
