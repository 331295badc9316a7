"""Faults that somebody else thought of: ``llmock`` plays providers and breaks, and judges how its client took that.

Its server and its opinion are independent of ours. It is no part of the development extra: it brings a web framework.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio

from trio_agent import (
    Agent,
    AssistantMessage,
    Model,
    RetryPolicy,
    RunResult,
    StreamOptions,
    ToolResultMessage,
)
from trio_agent.providers import ModelClient, find_model
from trio_agent.testing import check_transcript

pytest.importorskip("llmock")

PATIENT = RetryPolicy(base_delay=0.02, max_delay=0.1)


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    """The provider that is played."""
    name: str = request.param
    return name


@pytest.fixture
async def client() -> AsyncGenerator[ModelClient]:
    """An open client that tries again soon."""
    async with ModelClient(retries=PATIENT) as opened:
        yield opened


def model_of(llmock: Any, provider: str) -> Model:
    return find_model(f"{provider}/mock-model", base_url=llmock.base_url(provider))


async def ask(llmock: Any, provider: str, client: ModelClient, prompt: str = "hi", **settings: Any) -> RunResult:
    agent = Agent(model_of(llmock, provider), stream_fn=client, **settings)
    result = await agent.prompt(prompt)
    check_transcript(agent.messages)
    return result


def error_of(result: RunResult) -> str:
    assert isinstance(result.message, AssistantMessage)
    assert result.stop_reason == "error"
    return result.message.error_message or ""


async def test_an_answer_arrives(llmock: Any, provider: str, client: ModelClient) -> None:
    llmock.reply("Hello from elsewhere.")

    result = await ask(llmock, provider, client)

    assert result.text == "Hello from elsewhere."
    llmock.assert_resilient(strict=True)


async def test_rate_limits_and_server_errors_are_outlasted(llmock: Any, provider: str, client: ModelClient) -> None:
    llmock.rate_limit(times=1, retry_after=0.1).fail(503, times=1)

    assert (await ask(llmock, provider, client)).stop_reason == "stop"
    llmock.assert_resilient(strict=True)


async def test_an_outage_ends_after_as_many_attempts_as_the_policy_has(
    llmock: Any, provider: str, client: ModelClient
) -> None:
    llmock.outage()

    assert error_of(await ask(llmock, provider, client)).startswith("503")
    assert len(llmock.requests) == PATIENT.attempts


async def test_an_overflow_is_not_tried_again(llmock: Any, provider: str, client: ModelClient) -> None:
    llmock.context_overflow(times=None)

    assert "context" in error_of(await ask(llmock, provider, client))
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt"])
async def test_a_broken_stream_is_a_failed_answer_that_keeps_what_had_arrived(
    llmock: Any, provider: str, client: ModelClient, fault: str
) -> None:
    llmock.reply("one two three four five six seven eight")
    getattr(llmock, fault)(after_chunks=5)

    result = await ask(llmock, provider, client)

    assert error_of(result)
    assert len(llmock.requests) == 1


async def test_a_stall_is_noticed(llmock: Any, provider: str, client: ModelClient) -> None:
    llmock.reply("one two three four five six seven eight").stall(after_chunks=5, seconds=1.5)

    result = await ask(llmock, provider, client, options=StreamOptions(timeout=0.2))

    assert "silent for 0.2 s" in error_of(result)


async def test_a_tool_is_called_and_a_broken_call_is_answered_and_not_run(
    llmock: Any, provider: str, client: ModelClient
) -> None:
    ran: list[str] = []

    async def look_up(city: str) -> str:
        """Look up a city."""
        ran.append(city)
        return "sunny"

    llmock.call_tool("look_up", {"city": "Paris"}).reply("It is sunny.")
    assert (await ask(llmock, provider, client, tools=[look_up])).text == "It is sunny."
    assert ran == ["Paris"]

    llmock.call_tool("look_up", {"city": "Rome"}).break_tool_call("malformed_arguments").reply("Sorry.")
    result = await ask(llmock, provider, client, tools=[look_up])

    assert ran == ["Paris"]
    assert [m.is_error for m in result.messages if isinstance(m, ToolResultMessage)] == [True]


async def test_a_truncated_stream_is_what_its_verdict_cannot_see_us_refuse(
    llmock: Any, provider: str, client: ModelClient
) -> None:
    # It takes a client that does not ask again for one that has noticed nothing. We ask again only where nothing had
    # arrived, and otherwise say that the answer has failed.
    llmock.truncate(after_chunks=5)

    assert error_of(await ask(llmock, provider, client))
    assert [finding.code for finding in llmock.verdict().findings] == ["truncated_stream_accepted"]


async def test_many_agents_share_a_quota(llmock: Any, provider: str) -> None:
    llmock.limits(rpm=1200)
    texts: list[str] = []
    async with ModelClient(retries=RetryPolicy(attempts=8, base_delay=0.05), limiter=trio.CapacityLimiter(5)) as client:

        async def work() -> None:
            texts.append((await ask(llmock, provider, client)).text)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(work)

    assert len(texts) == 20
    assert all(texts)
