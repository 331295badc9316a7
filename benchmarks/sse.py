"""What does a chunk from a server cost on its way to an agent event?

Unit: microseconds a chunk, of an answer of D text deltas from a server on the loopback, in another process, each in an
HTTP chunk and a server-sent event of its own of some 160 bytes: asked for by a ``ModelClient``, decoded as chat
completions of OpenAI, and handed to one async listener that does nothing. Beside it: ``httpx`` alone, which reads the
same chunks and counts their bytes.

Not shown: TLS, and a network that is slower than the loopback, as all are.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx  # noqa: ASYNC127  # it is what the library is built on
import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._sse_server import PIECE
from benchmarks._work import ignore
from trio_agent import Agent, Model
from trio_agent.providers import ModelClient

__all__ = ["BENCHMARK", "bare", "ours", "server", "with_server"]

_TLS = ssl.create_default_context()  # not used on the loopback, but each client would make one


async def ours(clock: Clock, url: str, deltas: int) -> float:
    model = Model(id="some-model", api="openai-completions", provider="loopback", base_url=url)
    async with (
        httpx.AsyncClient(verify=_TLS) as http_client,
        ModelClient(http_client=http_client, api_keys={"loopback": "key"}) as client,
    ):
        agent = Agent(model, stream_fn=client)
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
        async with client.stream("POST", f"{url}/chat/completions", content=b"{}") as response:
            async for data in response.aiter_raw():
                received += len(data)
        seconds = clock() - started
    assert received > deltas * len(PIECE)
    return seconds


def with_server(side: Callable[[Clock, str, int], Awaitable[float]], clock: Clock, deltas: int) -> float:
    with server() as url:
        return trio.run(side, clock, f"{url}/{deltas}", deltas)


@contextmanager
def server() -> Generator[str]:
    module = Path(__file__).with_name("_sse_server.py")
    with subprocess.Popen([sys.executable, str(module)], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def cases(plan: Plan) -> Iterable[Case]:
    with server() as url:
        for size in plan.sizes(1000, 10_000):
            arguments = (plan.clock, f"{url}/{size}", size)
            by_hand = in_trio(partial(bare, *arguments))
            yield Case(series="listener", size=size, per=size, ours=in_trio(partial(ours, *arguments)), bare=by_hand)


BENCHMARK = Benchmark(name="sse", unit=Unit("us a chunk"), cases=cases, growth_from=1000)
