"""What does a chunk from a server cost on its way to an agent event?

Unit: microseconds a chunk, of an answer of D text deltas from a server on the loopback, in another process, each in an
HTTP chunk and a server-sent event of its own of some 160 bytes: read with httpx, decoded as OpenAI's chat completions,
and handed to one async listener that does nothing. Beside it: ``httpx`` alone, which reads the same chunks and counts
their bytes.

Not shown: TLS, and a network that is slower than the loopback, as all are.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import httpx  # noqa: ASYNC127  # it is what the library is built on

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._sse_server import PIECE
from benchmarks._work import ignore
from trio_agent import Agent, AssistantMessageEvent, Context, Model, StreamOptions
from trio_agent.wire import WIRE_FORMATS, Decoder

__all__ = ["BENCHMARK"]

_TLS = ssl.create_default_context()  # not used on the loopback, but each client would make one
_MODEL = Model(id="some-model", api="openai-completions", provider="loopback")


class _Loopback:
    """A stream function for the server: no request to encode, no retries, only the answer."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    @asynccontextmanager
    async def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AsyncGenerator[AsyncGenerator[AssistantMessageEvent]]:
        decoder = WIRE_FORMATS[model.api].decoder(model, timestamp=0)
        async with self._client.stream("GET", self._url) as response, aclosing(_decoded(response, decoder)) as events:
            yield events
            async for _ in events:  # to the very end, which is what lets a connection be used again
                pass


async def _decoded(response: httpx.Response, decoder: Decoder) -> AsyncGenerator[AssistantMessageEvent]:
    async for data in response.aiter_bytes():
        for event in decoder.feed(data):
            yield event
    for event in decoder.finish():
        yield event


async def ours(clock: Clock, url: str, deltas: int) -> float:
    async with httpx.AsyncClient(verify=_TLS) as client:
        agent = Agent(_MODEL, stream_fn=_Loopback(client, url))
        agent.subscribe(ignore)
        started = clock()
        result = await agent.prompt("say it")
        seconds = clock() - started
    assert result.text == PIECE * deltas
    return seconds


async def bare(clock: Clock, url: str, deltas: int) -> float:
    async with httpx.AsyncClient(verify=_TLS) as client:
        started = clock()
        received = 0
        async with client.stream("GET", url) as response:
            async for data in response.aiter_raw():
                received += len(data)
        seconds = clock() - started
    assert received > deltas * len(PIECE)
    return seconds


@contextmanager
def _server() -> Generator[str]:
    module = Path(__file__).with_name("_sse_server.py")
    with subprocess.Popen([sys.executable, str(module)], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def cases(plan: Plan) -> Iterable[Case]:
    with _server() as server:
        for size in plan.sizes(1000, 10_000):
            arguments = (plan.clock, f"{server}/{size}", size)
            by_hand = in_trio(partial(bare, *arguments))
            yield Case(series="listener", size=size, per=size, ours=in_trio(partial(ours, *arguments)), bare=by_hand)


BENCHMARK = Benchmark(name="sse", unit=Unit("us a chunk"), cases=cases, growth_from=1000)
