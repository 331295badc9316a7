"""strands: ``Agent.invoke_async`` without printing, and for deltas ``stream_async``; no window over the history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model
from strands.types.streaming import StreamEvent

from benchmarks._harness import Clock
from benchmarks.peers._contest import at_once, contend, in_asyncio

__all__: list[str] = []


class _Script(Model):
    """Streams calls for some turns, then text."""

    def __init__(self, turns: int = 0, calls: int = 0, deltas: int = 1) -> None:
        self._turns = turns
        self._calls = calls
        self._deltas = deltas
        self._asked = 0

    def update_config(self, **model_config: Any) -> None:
        raise NotImplementedError("there is nothing to configure")

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "script"}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        raise NotImplementedError("this model streams only")

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[StreamEvent]:
        self._asked += 1
        yield {"messageStart": {"role": "assistant"}}
        if self._asked <= self._turns:
            for item in range(self._calls):
                call_id = f"call_{self._asked}_{item}"
                yield {"contentBlockStart": {"start": {"toolUse": {"name": "check_item", "toolUseId": call_id}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"item": item})}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        yield {"contentBlockStart": {"start": {}}}
        for _ in range(self._deltas):
            yield {"contentBlockDelta": {"delta": {"text": "word "}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@tool
async def check_item(item: int) -> str:
    """Look an item up.

    Args:
        item: which.
    """
    await asyncio.sleep(0)
    return str(item)


def _agent(model: Model) -> Agent:
    manager = NullConversationManager()
    return Agent(model=model, tools=[check_item], callback_handler=None, conversation_manager=manager)


async def _run(agent: Agent, results: int) -> None:
    result = await agent.invoke_async("check all")
    blocks = [block for message in agent.messages for block in message["content"]]
    assert sum("toolResult" in block for block in blocks) == results
    assert result.stop_reason == "end_turn"


async def fan_out(clock: Clock, size: int) -> float:
    agent = _agent(_Script(1, size))
    started = clock()
    await _run(agent, size)
    return clock() - started


async def turns(clock: Clock, size: int) -> float:
    agent = _agent(_Script(size, 1))
    started = clock()
    await _run(agent, size)
    return clock() - started


async def deltas(clock: Clock, size: int) -> float:
    agent = _agent(_Script(deltas=size))
    started = clock()
    parts = [event["data"] async for event in agent.stream_async("say it") if "data" in event]
    seconds = clock() - started
    assert "".join(parts) == "word " * size
    return seconds


async def agents(clock: Clock, size: int) -> float:
    started = clock()
    await at_once(lambda: _run(_agent(_Script(3, 2)), 6), size)
    return clock() - started


if __name__ == "__main__":
    contend({work.__name__: in_asyncio(work) for work in (fan_out, turns, deltas, agents)})
