"""The same script gives the same events every time; what no library can order, a seed can."""

from __future__ import annotations

import importlib
from typing import Any

import trio
from loop_kit import outline, scripted_agent
from trio.testing import MockClock

from trio_agent import AgentEvent, Tool, tool
from trio_agent.testing import Answer, deterministic_scheduling, record, tool_call


@tool
async def work(seconds: float, checkpoints: int = 0) -> str:
    """Take time, and then some scheduler passes."""
    await trio.sleep(seconds)
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()
    return "worked"


def run(calls: list[Any]) -> list[AgentEvent]:
    async def main() -> list[AgentEvent]:
        agent, _ = scripted_agent(Answer(text="ok", calls=calls), "Done.", tools=[work])
        with record(agent) as events:
            await agent.prompt("go")
        return events

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def test_the_same_script_gives_the_same_events_every_time() -> None:
    calls = [tool_call("work", seconds=second % 3) for second in range(9)]

    first = run(calls)

    assert all(run(calls) == first for _ in range(20))


def test_calls_that_end_at_the_same_instant_are_reported_in_source_order() -> None:
    lines = outline(run([tool_call("work", name, seconds=1) for name in "dcba"]))

    assert [line for line in lines if line.startswith("end")] == ["end d", "end c", "end b", "end a"]


def test_limits_that_compose_let_calls_through_in_the_same_order_every_time() -> None:
    def limited() -> list[AgentEvent]:
        async def main() -> list[AgentEvent]:
            one, two = trio.CapacityLimiter(1), trio.CapacityLimiter(2)
            tools = [limited_tool("one", one), limited_tool("two", two), limited_tool("free", None)]
            calls = [tool_call(name, f"{name}-{i}") for i in range(3) for name in ("free", "two", "one")]
            limiter = trio.CapacityLimiter(3)
            agent, _ = scripted_agent(Answer(calls=calls), "Done.", tools=tools, limiter=limiter)
            with record(agent) as events:
                await agent.prompt("go")
            return events

        return trio.run(main, clock=MockClock(autojump_threshold=0))

    def limited_tool(name: str, limiter: trio.CapacityLimiter | None) -> Tool:
        @tool(name=name, limiter=limiter)
        async def waits() -> str:
            """Take time."""
            await trio.sleep(1)
            return "worked"

        return waits

    first = limited()

    assert all(limited() == first for _ in range(40))


def test_a_seed_decides_the_order_of_tasks_that_are_ready_together() -> None:
    def order(seed: int) -> list[int]:
        async def note(number: int) -> None:
            noted.append(number)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in range(6):
                    nursery.start_soon(note, number)

        noted: list[int] = []
        with deterministic_scheduling(seed):
            trio.run(main)
        return noted

    orders = [order(seed) for seed in range(8)]

    assert orders == [order(seed) for seed in range(8)]
    assert len({tuple(numbers) for numbers in orders}) > 1


def test_with_a_seed_calls_that_need_more_or_less_passes_give_the_same_events() -> None:
    calls = [tool_call("work", seconds=1, checkpoints=number % 3) for number in range(6)]

    def seeded() -> list[AgentEvent]:
        with deterministic_scheduling(3):
            return run(calls)

    assert seeded() == seeded()


def test_deterministic_scheduling_leaves_trio_as_it_was() -> None:
    scheduler: Any = importlib.import_module("trio._core._run")

    def switches() -> tuple[object, ...]:
        return scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()

    before = switches()
    with deterministic_scheduling(7):
        assert switches() != before

    assert switches() == before
