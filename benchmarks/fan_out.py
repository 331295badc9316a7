"""What does a tool call cost when one answer asks for many at once?

Unit: microseconds a call, of a whole run: a prompt, the streamed answer with N calls of a tool that makes one
checkpoint, their validation, events and results, and the final answer. Beside it: N tasks in a nursery, each with the
same checkpoint, and a list of their results. "listener" has one async listener that does nothing; "watched" goes
through ``async for event in run``; "whole answer" has the model give its answer in one piece, as those do that do not
stream, so that what is left is the fan-out itself.

Not shown: what a real tool does, the network, and encoding the results for the next request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial

import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import FINAL, MODEL, Answer, Script, calls_answer, check_item, ignore, tool_call, work
from trio_agent import (
    Agent,
    AssistantMessage,
    AssistantMessageEvent,
    RunResult,
    StreamDone,
    StreamStart,
    ToolCall,
    ToolResultMessage,
    Usage,
)

__all__ = ["BENCHMARK", "bare", "calls", "listened"]


def calls(size: int) -> Iterator[ToolCall]:
    return (tool_call("check_item", number, {"item": number}) for number in range(size))


def whole_answer(size: int) -> Answer:
    message = AssistantMessage(
        content=tuple(calls(size)),
        api=MODEL.api,
        provider=MODEL.provider,
        model=MODEL.id,
        usage=Usage.zero(),
        stop_reason="toolUse",
        timestamp=0,
    )
    return (StreamStart(), StreamDone(reason="toolUse", message=message))


def _check(result: RunResult, size: int) -> None:
    texts = [message.text for message in result.messages if isinstance(message, ToolResultMessage)]
    assert texts == [str(number) for number in range(size)]


async def listened(clock: Clock, size: int, answer: Iterable[AssistantMessageEvent]) -> float:
    agent = Agent(MODEL, tools=[check_item], stream_fn=Script([answer, FINAL]))
    agent.subscribe(ignore)
    started = clock()
    result = await agent.prompt("check all")
    seconds = clock() - started
    _check(result, size)
    return seconds


async def watched(clock: Clock, size: int, answer: Answer) -> float:
    agent = Agent(MODEL, tools=[check_item], stream_fn=Script([answer, FINAL]))
    started = clock()
    async with agent.run("check all") as run:
        async for _ in run:
            pass
    seconds = clock() - started
    _check(run.result, size)
    return seconds


async def bare(clock: Clock, size: int) -> float:
    async def call(number: int) -> None:
        results[number] = await work(number)

    started = clock()
    results = [""] * size
    async with trio.open_nursery() as nursery:
        for number in range(size):
            nursery.start_soon(call, number)
    seconds = clock() - started
    assert results == [str(number) for number in range(size)]
    return seconds


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(1, 10, 100, 1000, 10_000, 100_000):
        yield _case(plan, "listener", size, listened, calls_answer(calls(size)))
    for size in plan.sizes(1000):
        yield _case(plan, "watched", size, watched, calls_answer(calls(size)))
        yield _case(plan, "whole answer", size, listened, whole_answer(size))


def _case(
    plan: Plan, series: str, size: int, ours: Callable[[Clock, int, Answer], Awaitable[float]], answer: Answer
) -> Case:
    by_hand = in_trio(partial(bare, plan.clock, size))
    return Case(series=series, size=size, per=size, ours=in_trio(partial(ours, plan.clock, size, answer)), bare=by_hand)


BENCHMARK = Benchmark(name="fan_out", unit=Unit("us a call"), cases=cases, growth_from=100)
