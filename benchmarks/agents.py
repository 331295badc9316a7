"""What does an agent cost when a thousand of them work at once?

Unit: microseconds an agent, of A agents in one nursery, each made, prompted, and gone through three turns of two calls
of a tool that makes one checkpoint, and a final answer. Nobody listens. Beside it: A tasks in a nursery, each of which
opens three nurseries one after the other, runs the same function in two tasks of each, and keeps the results in a list.

Not shown: connections to a model. What an agent at rest holds is a question of its own, ``agent_memory``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import FINAL, MODEL, Script, calls_answer, check_item, tool_call, work
from trio_agent import Agent

__all__ = ["BENCHMARK", "bare", "ours"]

_TURNS = 3
_CALLS = [tool_call("check_item", number, {"item": number}) for number in range(2)]
_ANSWERS = (*[calls_answer(_CALLS)] * _TURNS, FINAL)
_MESSAGES = 1 + _TURNS * 3 + 1


async def ours(clock: Clock, agents: int) -> float:
    async def one() -> None:
        result = await Agent(MODEL, tools=[check_item], stream_fn=Script(_ANSWERS)).prompt("check both, three times")
        added.append(len(result.messages))

    started = clock()
    added: list[int] = []
    async with trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(one)
    seconds = clock() - started
    assert len(added) == agents
    assert len(set(added)) == 1
    assert added[0] >= _MESSAGES
    return seconds


async def bare(clock: Clock, agents: int) -> float:
    async def call(item: int, results: dict[int, str]) -> None:
        results[item] = await work(item)

    async def one() -> None:
        messages: list[object] = []
        for _ in range(_TURNS):
            messages.append(_CALLS)
            results: dict[int, str] = {}
            async with trio.open_nursery() as nursery:
                for item in range(2):
                    nursery.start_soon(call, item, results)
            messages += [results[item] for item in range(2)]
        added.append(len(messages))

    started = clock()
    added: list[int] = []
    async with trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(one)
    seconds = clock() - started
    assert added == [_TURNS * 3] * agents
    return seconds


def cases(plan: Plan) -> Iterable[Case]:
    for agents in plan.sizes(10, 100, 1000):
        by_hand = in_trio(partial(bare, plan.clock, agents))
        yield Case(
            series="at once", size=agents, per=agents, ours=in_trio(partial(ours, plan.clock, agents)), bare=by_hand
        )


BENCHMARK = Benchmark(name="agents", unit=Unit("us an agent"), cases=cases, growth_from=10)
