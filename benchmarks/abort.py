"""How long does it take to stop a run with many tools at work, until it has given every call its result?

Unit: microseconds a tool, from ``abort()``, with N tools waiting for ever, until ``prompt()`` has returned: each tool
is cancelled, and each call has its end event and its result in the transcript. One async listener does nothing.
"watched" is the same until the block around ``async for event in run`` has been left. Beside it: N such tasks in a
nursery that is cancelled, until the block has been left, with a list of what each has come to.

Not shown: clean-up of the tools themselves, and a listener that takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import MODEL, Answer, Script, calls_answer, ignore, tool_call
from trio_agent import Agent, RunResult, Tool, ToolResultMessage, tool

__all__ = ["BENCHMARK"]


class _Waiting:
    """Tools that wait for ever, and an event for when all of them do."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.all = trio.Event()

    async def wait(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.all.set()
        await trio.sleep_forever()


def _tool(waiting: _Waiting) -> Tool[[int], object]:
    @tool
    async def wait_for_item(item: int) -> str:
        """Wait until an item is there."""
        await waiting.wait()
        return str(item)

    return wait_for_item


class _Abort:
    """Aborts an agent when all tools wait, and knows when that was."""

    def __init__(self, clock: Clock, agent: Agent, waiting: _Waiting) -> None:
        self._clock = clock
        self._agent = agent
        self._waiting = waiting
        self.at = 0.0

    async def __call__(self) -> None:
        await self._waiting.all.wait()
        self.at = self._clock()
        self._agent.abort()


def _check(result: RunResult, size: int) -> None:
    results = [message for message in result.messages if isinstance(message, ToolResultMessage)]
    assert len(results) == size
    assert all(message.is_error for message in results)
    assert result.stop_reason == "aborted"


async def prompted(clock: Clock, size: int, answer: Answer) -> float:
    waiting = _Waiting(size)
    agent = Agent(MODEL, tools=[_tool(waiting)], stream_fn=Script([answer]))
    agent.subscribe(ignore)
    abort = _Abort(clock, agent, waiting)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(abort)
        result = await agent.prompt("wait for all")
        seconds = clock() - abort.at
    _check(result, size)
    return seconds


async def watched(clock: Clock, size: int, answer: Answer) -> float:
    waiting = _Waiting(size)
    agent = Agent(MODEL, tools=[_tool(waiting)], stream_fn=Script([answer]))
    abort = _Abort(clock, agent, waiting)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(abort)
        async with agent.run("wait for all") as run:
            async for _ in run:
                pass
        seconds = clock() - abort.at
    _check(run.result, size)
    return seconds


async def bare(clock: Clock, size: int) -> float:
    async def call(number: int) -> None:
        try:
            await waiting.wait()
        finally:
            ends[number] = "aborted"

    waiting = _Waiting(size)
    ends = [""] * size
    started = 0.0
    async with trio.open_nursery() as nursery:
        for number in range(size):
            nursery.start_soon(call, number)
        await waiting.all.wait()
        started = clock()
        nursery.cancel_scope.cancel()
    seconds = clock() - started
    assert ends == ["aborted"] * size
    return seconds


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(1000, 10_000):
        answer = calls_answer([tool_call("wait_for_item", number, {"item": number}) for number in range(size)])
        for series, ours in (("prompt", prompted), ("watched", watched)):
            by_hand = in_trio(partial(bare, plan.clock, size))
            yield Case(
                series=series, size=size, per=size, ours=in_trio(partial(ours, plan.clock, size, answer)), bare=by_hand
            )


BENCHMARK = Benchmark(name="abort", unit=Unit("us a tool"), cases=cases, growth_from=1000)
