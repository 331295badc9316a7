"""What does a streamed piece of text cost on its way to whoever shows it?

Unit: microseconds a delta, of one prompt whose answer is D deltas of five characters, all of them there already.
"listener" has one async listener that does nothing; beside it: an ``async for`` over the same events that collects the
texts and awaits the same function for each. "watched" goes through ``async for event in run``, whose body is a barrier;
beside it: a task that sends the events into a memory channel without capacity, and one that takes them, which has a
checkpoint but no barrier.

Not shown: the network, and decoding what comes from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import MODEL, Answer, ReadyStream, Script, ignore, text_answer
from trio_agent import Agent, AssistantMessageEvent, MessageUpdate, TextDelta

__all__ = ["BENCHMARK", "bare_listened", "listened"]


async def listened(clock: Clock, answer: Answer, text: str) -> float:
    agent = Agent(MODEL, stream_fn=Script([answer]))
    agent.subscribe(ignore)
    started = clock()
    result = await agent.prompt("say it")
    seconds = clock() - started
    assert result.text == text
    return seconds


async def bare_listened(clock: Clock, answer: Answer, text: str) -> float:
    async def listener(event: AssistantMessageEvent) -> None:
        pass

    started = clock()
    parts: list[str] = []
    async with ReadyStream(answer) as events:
        async for event in events:
            if type(event) is TextDelta:
                parts.append(event.delta)
            await listener(event)
    seconds = clock() - started
    assert "".join(parts) == text
    return seconds


async def watched(clock: Clock, answer: Answer, text: str) -> float:
    agent = Agent(MODEL, stream_fn=Script([answer]))
    deltas = 0
    started = clock()
    async with agent.run("say it") as run:
        async for event in run:
            if type(event) is MessageUpdate:
                deltas += 1
    seconds = clock() - started
    assert run.result.text == text
    assert deltas == len(answer) - 2
    return seconds


async def bare_channel(clock: Clock, answer: Answer, text: str) -> float:
    async def produce() -> None:
        async with send, ReadyStream(answer) as events:
            async for event in events:
                await send.send(event)

    started = clock()
    parts: list[str] = []
    send, receive = trio.open_memory_channel[AssistantMessageEvent](0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        async for event in receive:
            if type(event) is TextDelta:
                parts.append(event.delta)  # noqa: PERF401  # a handler would do something with it
    seconds = clock() - started
    assert "".join(parts) == text
    return seconds


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(100, 1000, 10_000, 100_000):
        work = (text_answer(["word "] * size), "word " * size)
        for series, ours, bare in (("listener", listened, bare_listened), ("watched", watched, bare_channel)):
            yield Case(
                series=series,
                size=size,
                per=size,
                ours=in_trio(partial(ours, plan.clock, *work)),
                bare=in_trio(partial(bare, plan.clock, *work)),
            )


BENCHMARK = Benchmark(name="deltas", unit=Unit("us a delta"), cases=cases, growth_from=1000)
