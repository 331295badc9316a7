"""pydantic-ai: ``FunctionModel``, ``Agent.run``, and for deltas ``run_stream`` without debouncing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks._harness import Clock
from benchmarks.peers._contest import at_once, contend, in_asyncio

__all__: list[str] = []

_UNLIMITED = UsageLimits(request_limit=None)


async def check_item(item: int) -> str:
    """Look an item up."""
    await asyncio.sleep(0)
    return str(item)


def _agent(turns: int, calls: int) -> Agent[None, str]:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # A request and a response each turn: an agent has no state, and serves any number of conversations.
        turn = len(messages) // 2
        if turn == turns:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[ToolCallPart("check_item", {"item": item}, f"call_{turn}_{item}") for item in range(calls)]
        )

    return Agent(FunctionModel(model), tools=[check_item])


async def _run(agent: Agent[None, str], results: int) -> None:
    result = await agent.run("check all", usage_limits=_UNLIMITED)
    returned = sum(isinstance(part, ToolReturnPart) for message in result.all_messages() for part in message.parts)
    assert returned == results
    assert result.output == "done"


async def fan_out(clock: Clock, size: int) -> float:
    agent = _agent(1, size)
    started = clock()
    await _run(agent, size)
    return clock() - started


async def turns(clock: Clock, size: int) -> float:
    agent = _agent(size, 1)
    started = clock()
    await _run(agent, size)
    return clock() - started


async def deltas(clock: Clock, size: int) -> float:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:  # noqa: ASYNC124
        for _ in range(size):
            yield "word "

    agent = Agent(FunctionModel(stream_function=stream))
    started = clock()
    async with agent.run_stream("say it") as result:
        parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
    seconds = clock() - started
    assert "".join(parts) == "word " * size
    return seconds


async def agents(clock: Clock, size: int) -> float:
    agent = _agent(3, 2)
    started = clock()
    await at_once(lambda: _run(agent, 6), size)
    return clock() - started


if __name__ == "__main__":
    contend({work.__name__: in_asyncio(work) for work in (fan_out, turns, deltas, agents)})
