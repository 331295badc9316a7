"""openai-agents: ``Runner.run`` with tracing off, and for deltas ``Runner.run_streamed``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelProvider, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from benchmarks._harness import Clock
from benchmarks.peers._contest import at_once, contend, in_asyncio

__all__: list[str] = []


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[content])


class _Script(Model):
    """Answers with calls for some turns, then with text; or streams text."""

    def __init__(self, turns: int = 0, calls: int = 0, deltas: int = 0) -> None:
        self._turns = turns
        self._calls = calls
        self._deltas = deltas

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        # The prompt, and a call and its output for each call: agents have no state, and serve any number of runs.
        turn = 0 if isinstance(input, str) else (len(input) - 1) // (2 * self._calls)
        if turn == self._turns:
            return ModelResponse(output=[_message("done")], usage=Usage(), response_id=None)
        calls = [
            ResponseFunctionToolCall(
                type="function_call",
                name="check_item",
                call_id=f"call_{turn}_{item}",
                arguments=json.dumps({"item": item}),
            )
            for item in range(self._calls)
        ]
        return ModelResponse(output=[*calls], usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        for number in range(self._deltas):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                item_id="msg_1",
                output_index=0,
                content_index=0,
                delta="word ",
                logprobs=[],
                sequence_number=number,
            )
        response = Response(
            id="resp_1",
            object="response",
            created_at=0,
            model="script",
            output=[_message("word " * self._deltas)],
            tools=[],
            tool_choice="auto",
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=self._deltas)


class _Provider(ModelProvider):
    def get_model(self, model_name: str | None) -> Model:
        raise AssertionError("agents bring their models")


_CONFIG = RunConfig(model_provider=_Provider(), tracing_disabled=True)


@function_tool
async def check_item(item: int) -> str:
    """Look an item up."""
    await asyncio.sleep(0)
    return str(item)


def _agent(turns: int, calls: int) -> Agent[None]:
    return Agent(name="script", model=_Script(turns, calls), tools=[check_item])


async def _run(agent: Agent[None], turns: int, results: int) -> None:
    result = await Runner.run(agent, "check all", max_turns=turns + 1, run_config=_CONFIG)
    assert sum(item.type == "tool_call_output_item" for item in result.new_items) == results
    assert result.final_output == "done"


async def fan_out(clock: Clock, size: int) -> float:
    agent = _agent(1, size)
    started = clock()
    await _run(agent, 1, size)
    return clock() - started


async def turns(clock: Clock, size: int) -> float:
    agent = _agent(size, 1)
    started = clock()
    await _run(agent, size, size)
    return clock() - started


async def deltas(clock: Clock, size: int) -> float:
    agent: Agent[None] = Agent(name="script", model=_Script(deltas=size))
    started = clock()
    result = Runner.run_streamed(agent, "say it", run_config=_CONFIG)
    parts = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
    ]
    seconds = clock() - started
    assert "".join(parts) == result.final_output == "word " * size
    return seconds


async def agents(clock: Clock, size: int) -> float:
    agent = _agent(3, 2)
    started = clock()
    await at_once(lambda: _run(agent, 3, 6), size)
    return clock() - started


if __name__ == "__main__":
    contend({work.__name__: in_asyncio(work) for work in (fan_out, turns, deltas, agents)})
