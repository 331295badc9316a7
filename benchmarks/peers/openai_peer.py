"""openai: the official SDK, whose stream of chunks is iterated; no agent, no messages, no events."""

from __future__ import annotations

import ssl

import httpx  # noqa: ASYNC127  # what the SDK is built on
from openai import AsyncOpenAI

from benchmarks import sse
from benchmarks._harness import Clock
from benchmarks._sse_server import PIECE
from benchmarks.peers._contest import contend, in_asyncio

__all__: list[str] = []

_TLS = ssl.create_default_context()


async def _ask(clock: Clock, size: int) -> float:
    with sse.server() as url:
        async with (
            httpx.AsyncClient(verify=_TLS) as http_client,
            AsyncOpenAI(base_url=f"{url}/{size}", api_key="key", http_client=http_client) as client,
        ):
            started = clock()
            stream = await client.chat.completions.create(
                model="some-model", messages=[{"role": "user", "content": "say it"}], stream=True
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            seconds = clock() - started
    assert text == PIECE * size
    return seconds


if __name__ == "__main__":
    contend({"sse": in_asyncio(_ask)})
