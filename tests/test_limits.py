"""Limits compose, and nested calls cannot deadlock on them; context variables flow into tools."""

from __future__ import annotations

import contextvars
import functools
from typing import Any

import pytest
import trio
from loop_kit import scripted_agent, spoken
from trio.testing import MockClock

from trio_agent import Tool, ToolContext, tool
from trio_agent.testing import Answer, tool_call


class Meter:
    """Tools that count how many of them are at work at once."""

    def __init__(self) -> None:
        self.now = self.peak = self.done = 0

    def tool(self, name: str = "work", *, limiter: trio.CapacityLimiter | None = None) -> Tool[Any, Any]:
        async def execute(_arguments: object, _ctx: object) -> str:
            self.now += 1
            self.peak = max(self.peak, self.now)
            try:
                await trio.sleep(10)
            finally:
                self.now -= 1
            self.done += 1
            return "worked"

        return Tool(name=name, parameters={"type": "object"}, execute=execute, limiter=limiter)


def calls(count: int, name: str = "work") -> list[Any]:
    return [tool_call(name, f"{name}-{number}") for number in range(count)]


async def test_a_thousand_calls_of_ten_seconds_under_a_limit_of_32_take_exactly_320_seconds(
    autojump_clock: MockClock,
) -> None:
    meter = Meter()
    agent, _ = scripted_agent(
        Answer(calls=calls(1000)), "Done.", tools=[meter.tool()], limiter=trio.CapacityLimiter(32)
    )
    await agent.prompt("go")

    assert (meter.done, meter.peak, trio.current_time()) == (1000, 32, 320)


async def test_without_a_limit_all_calls_run_at_once(autojump_clock: MockClock) -> None:
    meter = Meter()
    agent, _ = scripted_agent(Answer(calls=calls(200)), "Done.", tools=[meter.tool()])

    await agent.prompt("go")

    assert (meter.peak, trio.current_time()) == (200, 10)


async def test_tasks_are_started_as_slots_become_free(autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    most = 0

    @tool
    async def look() -> str:
        """Look how many tasks there are."""
        nonlocal most
        most = max(most, trio.lowlevel.current_statistics().tasks_living - before)
        await trio.sleep(1)
        return "seen"

    agent, _ = scripted_agent(Answer(calls=calls(1000, "look")), "Done.", tools=[look], limiter=trio.CapacityLimiter(8))
    await agent.prompt("go")

    assert 8 <= most <= 8 + 4


async def test_a_limiter_shared_between_agents_bounds_all_of_them(autojump_clock: MockClock) -> None:
    meter, limiter = Meter(), trio.CapacityLimiter(3)
    agents = [scripted_agent(Answer(calls=calls(6)), "Done.", tools=[meter.tool()], limiter=limiter)[0] for _ in "ab"]

    async with trio.open_nursery() as nursery:
        for agent in agents:
            nursery.start_soon(agent.prompt, "go")

    assert (meter.done, meter.peak, trio.current_time()) == (12, 3, 40)
    assert limiter.borrowed_tokens == 0


async def test_the_limits_of_a_run_and_of_a_tool_compose(autojump_clock: MockClock) -> None:
    few, both = Meter(), Meter()
    few_tool, many_tool = few.tool("few", limiter=trio.CapacityLimiter(1)), both.tool("many")

    async def both_count(function: Any, *args: Any) -> Any:
        both.now += 1
        both.peak = max(both.peak, both.now)
        try:
            return await function(*args)
        finally:
            both.now -= 1

    agent, _ = scripted_agent(
        Answer(calls=[*calls(4, "few"), *calls(8, "many")]),
        "Done.",
        tools=[few_tool.wrapped(lambda function: functools.partial(both_count, function)), many_tool],
        limiter=trio.CapacityLimiter(3),
    )
    await agent.prompt("go")

    assert (few.peak, both.peak, few.done + both.done) == (1, 3, 12)


async def test_a_call_that_waits_for_its_own_limit_holds_no_slot_of_the_run(autojump_clock: MockClock) -> None:
    few, many = Meter(), Meter()
    agent, _ = scripted_agent(
        Answer(calls=[*calls(2, "few"), *calls(1, "many")]),
        "Done.",
        tools=[few.tool("few", limiter=trio.CapacityLimiter(1)), many.tool("many")],
        limiter=trio.CapacityLimiter(2),
    )
    await agent.prompt("go")

    assert trio.current_time() == 20


# -- nested calls ----------------------------------------------------------------------------------------------------


@tool
async def nest(levels: int, width: int = 1, *, ctx: ToolContext) -> str:
    """Call so many levels of itself, so many at once."""
    await trio.sleep(1)
    if not levels:
        return "leaf"
    async with trio.open_nursery() as nursery:
        for _ in range(width):
            nursery.start_soon(ctx.call_tool, "nest", {"levels": levels - 1, "width": width})
    return f"level {levels}"


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize(("levels", "width", "seconds"), [(3, 1, 4), (1, 3, 4), (2, 2, 7)])
async def test_nested_calls_do_not_deadlock_on_the_slot_of_their_parent(
    limit: int, levels: int, width: int, seconds: int, autojump_clock: MockClock
) -> None:
    limiter = trio.CapacityLimiter(limit)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("nest", "a", levels=levels, width=width)]), "Done.", tools=[nest], limiter=limiter
    )
    with trio.fail_after(1000):
        await agent.prompt("go")

    assert f"result a: level {levels}" in spoken(agent)
    if limit == 1:
        assert trio.current_time() == seconds  # one at a time
    assert limiter.borrowed_tokens == 0


async def test_several_parents_under_a_limit_of_one_take_turns(autojump_clock: MockClock) -> None:
    limiter = trio.CapacityLimiter(1)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("nest", name, levels=2) for name in "abc"]), "Done.", tools=[nest], limiter=limiter
    )
    with trio.fail_after(1000):
        await agent.prompt("go")

    assert trio.current_time() == 9
    assert limiter.borrowed_tokens == 0


async def test_a_parent_that_gives_up_on_a_nested_call_gets_its_slot_back(autojump_clock: MockClock) -> None:
    @tool
    async def impatient(*, ctx: ToolContext) -> str:
        """Try twice."""
        with trio.move_on_after(2):
            await ctx.call_tool("nest", {"levels": 9})
        outcome = await ctx.call_tool("nest", {"levels": 0})
        return str(outcome.is_error)

    limiter = trio.CapacityLimiter(1)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("impatient", "a")]), "Done.", tools=[impatient, nest], limiter=limiter
    )
    with trio.fail_after(1000):
        await agent.prompt("go")

    assert "result a: False" in spoken(agent)
    assert trio.current_time() == 3
    assert limiter.borrowed_tokens == 0


async def test_a_stopped_run_gives_all_slots_back(autojump_clock: MockClock) -> None:
    limiter = trio.CapacityLimiter(2)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("nest", name, levels=3, width=2) for name in "abcd"]), tools=[nest], limiter=limiter
    )
    with trio.move_on_after(5.5):
        await agent.prompt("go")

    assert limiter.borrowed_tokens == 0


# -- context variables -----------------------------------------------------------------------------------------------

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@tool
async def rename(name: str, *, ctx: ToolContext) -> str:
    """Say who the user is, become another one, and ask a nested call."""
    before = user.get()
    user.set(name)
    outcome = await ctx.call_tool("who")
    return f"{before}, {outcome.result.content[0].text}"  # type: ignore[union-attr]


@tool
async def who() -> str:
    """Say who the user is, and become another one."""
    await trio.lowlevel.checkpoint()
    found = user.get()
    user.set("who")
    return found


@tool
def who_in_thread() -> str:
    """Say who the user is."""
    return user.get()


async def test_context_variables_flow_into_tools_and_nested_tools_and_not_to_siblings() -> None:
    batch = [tool_call("rename", "a", name="A"), tool_call("rename", "b", name="B"), tool_call("who", "c")]
    agent, _ = scripted_agent(
        Answer(calls=batch),
        Answer(calls=[tool_call("who", "alone")]),
        Answer(calls=[tool_call("who_in_thread", "thread")]),
        "Done.",
        tools=[rename, who, who_in_thread],
    )
    user.set("caller")
    await agent.prompt("go")

    assert [line for line in spoken(agent) if line.startswith("result")] == [
        "result a: caller, A",
        "result b: caller, B",
        "result c: caller",
        "result alone: caller",
        "result thread: caller",
    ]
    assert user.get() == "caller"
