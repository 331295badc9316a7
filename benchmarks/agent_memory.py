"""What does an agent that does nothing hold in memory?

Unit: kB an agent, as ``tracemalloc`` counts it, of so many agents with a tool, a system prompt and a stream function
that they share. The second series is the same after each had a short conversation: a prompt and an answer.

Not shown: what the allocator keeps beyond that. Nothing compares on bare Trio.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable
from functools import partial
from itertools import repeat

import trio

from benchmarks._harness import Benchmark, Case, Plan, Unit
from benchmarks._work import FINAL, MODEL, Script, check_item
from trio_agent import Agent

__all__ = ["BENCHMARK"]

_SCRIPT = Script(repeat(FINAL))


def _agent() -> Agent:
    return Agent(MODEL, system_prompt="Answer briefly.", tools=[check_item], stream_fn=_SCRIPT)


async def _agents(count: int, *, talk: bool) -> int:
    if talk:
        await _agent().prompt("Hello")  # what is made once is made here
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        agents = [_agent() for _ in range(count)]
        if talk:
            for agent in agents:
                await agent.prompt("Hello")
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def _measure(count: int, talk: bool, times: int) -> float:
    return sum(trio.run(partial(_agents, count, talk=talk)) for _ in range(times))


def cases(plan: Plan) -> Iterable[Case]:
    for count in plan.sizes(1000):
        for series, talk in (("new", False), ("after a prompt", True)):
            measure = partial(_measure, count, talk)
            yield Case(series=series, size=count, per=count, ours=measure, bare=None, repeatable=False)


BENCHMARK = Benchmark(name="agent_memory", unit=Unit("kB an agent", 1 / 1000), cases=cases)
