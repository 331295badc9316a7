"""Does memory stay flat however much is streamed?

Unit: MB by which the peak of a fresh process grows over what it had after a first answer, while S MB of answers come
from a scripted server: read through httpx, decoded as OpenAI's chat completions by the library's own driver, and
watched event by event. The answers have a megabyte each, in chunks of 16 kB: a quarter of it text, the rest what a
server sends and nobody needs, which is comments to keep the connection alive and fields that no format knows. After
each answer the conversation is reset. So what is measured is buffers, not the transcript, which is there to grow.

Not shown: the kernel's buffers of a real socket, and what a process needs before it does anything. Nothing compares.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import AsyncIterator, Iterable
from functools import partial

import httpx  # noqa: ASYNC127  # it is what the library is built on
import trio

from benchmarks import _resident
from benchmarks._harness import Benchmark, Case, Plan, Unit, fresh_process
from trio_agent import Agent
from trio_agent.providers import ModelClient, openai_compatible

__all__ = ["BENCHMARK"]

_CHUNK = 16_000
_CHUNKS = 60


def _event(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


def _delta(text: str, **fields: object) -> bytes:
    return _event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": None}], **fields)


class _Body(httpx.AsyncByteStream):
    _pieces = (
        _delta("word " * (_CHUNK // 5)),
        b": keep-alive\n\n" * (_CHUNK // 14),
        _delta("", ignored="x" * _CHUNK),
        b": " + b"still here " * (_CHUNK // 11) + b"\n\n",
    )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for number in range(_CHUNKS):
            await trio.lowlevel.checkpoint()
            yield self._pieces[number % len(self._pieces)]
        yield _event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]) + b"data: [DONE]\n\n"


async def _stream(megabytes: int) -> float:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, stream=_Body()))
    client = ModelClient(http_client=httpx.AsyncClient(transport=transport))
    agent = Agent(openai_compatible("http://server.invalid/v1").model("some-model"), stream_fn=client)
    await _ask(agent)
    before = _resident.idle()
    for _ in range(megabytes):
        await _ask(agent)
    # What fits into memory that the process has already got cannot be seen; a page is the least that can.
    return max(_resident.peak() - before, resource.getpagesize() // 1024) / 1000


async def _ask(agent: Agent) -> None:
    async with agent.run("Say it all.") as run:
        async for _ in run:
            pass
    assert len(run.result.text) == _CHUNKS // 4 * (_CHUNK // 5) * 5
    agent.reset()


def _measure(size: int, times: int) -> float:
    return sum(float(fresh_process("-m", "benchmarks.memory", str(size))) for _ in range(times))


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(10, 1000):
        yield Case(series="watched", size=size, ours=partial(_measure, size), bare=None, repeatable=False)


BENCHMARK = Benchmark(name="memory", unit=Unit("MB", 1), cases=cases)

if __name__ == "__main__":
    print(trio.run(_stream, int(sys.argv[1])))
