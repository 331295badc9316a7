"""A model over HTTP, which is busy at first. Its server is a function here, so this file needs no network and no key.

Prints::

    sent: qwen3-8b, 100 tokens at most
    again in 2 s: 429: One moment, please (rate_limit_exceeded)
    sent: qwen3-8b, 100 tokens at most
    The sky is up. (1 turn, $0.000120)
"""

import json

import httpx  # noqa: ASYNC127
import trio
from trio.testing import MockClock

from trio_agent import Agent, Model, ModelCost, RetryDetails, StreamOptions, with_retries
from trio_agent.providers import HTTPRequest, ModelClient, openai_compatible

CHUNKS: list[dict[str, object]] = [
    {"choices": [{"index": 0, "delta": {"content": "The sky "}}]},
    {"choices": [{"index": 0, "delta": {"content": "is up."}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}},
]
STREAM = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
BUSY = {"error": {"message": "One moment, please", "code": "rate_limit_exceeded"}}
responses = [httpx.Response(429, json=BUSY, headers={"retry-after": "2"}), httpx.Response(200, text=STREAM)]


async def server(_request: httpx.Request) -> httpx.Response:
    return responses.pop(0)


async def show_request(request: HTTPRequest) -> None:
    print(f"sent: {request.body['model']}, {request.body['max_tokens']} tokens at most")


def show_retry(details: RetryDetails) -> None:
    print(f"again in {details.delay:g} s: {details.error}")


def describe(model: Model) -> Model:
    """A model of which no package knows the price."""
    return Model(
        id=model.id,
        api=model.api,
        provider=model.provider,
        base_url=model.base_url,
        compat=model.compat,
        cost=ModelCost(input=2, output=8, cache_read=0.2, cache_write=2),
    )


async def main() -> None:
    provider = openai_compatible("http://gpu-box:8000/v1", compat={"maxTokensField": "max_tokens"})
    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(server)) as http_client,
        ModelClient(http_client=http_client, retries=None, on_request=show_request) as client,
    ):
        agent = Agent(
            describe(provider.model("qwen3-8b")),
            stream_fn=with_retries(client, on_retry=show_retry),
            options=StreamOptions(max_tokens=100),
        )
        result = await agent.prompt("Which way is up?")
    print(result.text, f"({result.turns} turn, ${result.usage.cost.total:.6f})")


trio.run(main, clock=MockClock(autojump_threshold=0))
