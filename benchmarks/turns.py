"""What does a turn cost, and does it cost more in a long conversation?

Unit: microseconds a turn, of one prompt that goes on for T turns, each with one call of a tool that makes one
checkpoint, and one listener that does nothing. Beside it: a loop that opens a nursery each turn, runs the same function
in it as a task, and appends the answer and the result to a list. The growth exponent is 1 when a turn costs the same at
the end of a long conversation as at its beginning.

Not shown: the request that a provider would encode each turn, which grows with the conversation whoever sends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain, repeat

import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import FINAL, MODEL, Script, calls_answer, check_item, ignore, tool_call, work
from trio_agent import Agent

__all__ = ["BENCHMARK", "bare", "ours"]

_CALL = tool_call("check_item", 1, {"item": 1})
_ANSWER = calls_answer([_CALL])


async def ours(clock: Clock, turns: int) -> float:
    agent = Agent(MODEL, tools=[check_item], stream_fn=Script(chain(repeat(_ANSWER, turns), [FINAL])))
    agent.subscribe(ignore)
    started = clock()
    result = await agent.prompt("go on")
    seconds = clock() - started
    assert result.turns == turns + 1
    assert result.stop_reason == "stop"
    return seconds


async def bare(clock: Clock, turns: int) -> float:
    async def call(item: int) -> None:
        messages.append(await work(item))

    started = clock()
    messages: list[object] = []
    for _ in range(turns):
        messages.append(_CALL)
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112  # what a loop for any number of calls does
            nursery.start_soon(call, 1)
    seconds = clock() - started
    assert len(messages) == 2 * turns
    return seconds


def cases(plan: Plan) -> Iterable[Case]:
    for turns in plan.sizes(100, 1000, 5000):
        by_hand = in_trio(partial(bare, plan.clock, turns))
        yield Case(
            series="listener", size=turns, per=turns, ours=in_trio(partial(ours, plan.clock, turns)), bare=by_hand
        )


BENCHMARK = Benchmark(name="turns", unit=Unit("us a turn"), cases=cases, growth_from=100)
