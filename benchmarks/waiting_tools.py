"""How much longer than the wait itself do tools take that wait together?

Unit: milliseconds of wall time for N calls of a tool that sleeps 50 ms, as for a server, with one listener that does
nothing. Beside it: N tasks in a nursery that sleep 50 ms and give their results. The floor is the 50 ms.

Not shown: the sockets that real waiting needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from time import perf_counter

import trio

from benchmarks._harness import Benchmark, Case, Plan, Unit, in_trio
from benchmarks._work import FINAL, MODEL, Answer, Script, calls_answer, ignore, tool_call
from trio_agent import Agent, ToolResultMessage, tool

__all__ = ["BENCHMARK"]


async def _wait(item: int) -> str:
    await trio.sleep(0.05)
    return str(item)


@tool
async def ask_server(item: int) -> str:
    """Ask a slow server about an item."""
    return await _wait(item)


async def ours(size: int, answer: Answer) -> float:
    agent = Agent(MODEL, tools=[ask_server], stream_fn=Script([answer, FINAL]))
    agent.subscribe(ignore)
    started = perf_counter()
    result = await agent.prompt("ask all")
    seconds = perf_counter() - started
    assert sum(isinstance(message, ToolResultMessage) for message in result.messages) == size
    return seconds


async def bare(size: int) -> float:
    async def call(number: int) -> None:
        results[number] = await _wait(number)

    started = perf_counter()
    results = [""] * size
    async with trio.open_nursery() as nursery:
        for number in range(size):
            nursery.start_soon(call, number)
    return perf_counter() - started


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(1000):
        answer = calls_answer([tool_call("ask_server", number, {"item": number}) for number in range(size)])
        yield Case(
            series="waiting", size=size, ours=in_trio(partial(ours, size, answer)), bare=in_trio(partial(bare, size))
        )


BENCHMARK = Benchmark(name="waiting_tools", unit=Unit("ms", 1e3), cases=cases)
