"""One call is cancelled alone: running, waiting, finished or unknown; its siblings and the run go on."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from loop_kit import never, outline, scripted_agent, spoken, work
from trio.testing import MockClock

from trio_agent import (
    Agent,
    AgentEvent,
    AgentRun,
    Hooks,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    tool,
)
from trio_agent.testing import Answer, check_events, check_transcript, tool_call


def results(agent: Agent) -> list[str]:
    return [line for line in spoken(agent) if line.startswith(("result", "error"))]


async def _watch(agent: Agent, on_event: Any) -> list[str]:
    seen: list[AgentEvent] = []
    async with agent.run("go") as run:
        async for event in run:
            seen.append(event)
            await on_event(run, event)
    check_events(seen)
    check_transcript(agent.messages)
    return outline(seen)


async def test_one_call_can_be_cancelled_alone_and_its_siblings_go_on(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("never", "a"), tool_call("work", "b", seconds=5)]), "Done.", tools=[never, work]
    )

    async with trio.open_nursery() as nursery, agent.run("go") as run:
        nursery.start_soon(_cancel_later, run, "a")  # noqa: ASYNC111
        async for _ in run:
            pass

    assert results(agent) == ['error a: Tool "never" was cancelled', "result b: worked"]
    assert run.result.text == "Done."
    assert trio.current_time() == 5


async def _cancel_later(run: AgentRun, call_id: str) -> None:
    await trio.sleep(2)
    run.cancel_tool(call_id)


@pytest.mark.parametrize("when", [ToolExecutionStart, ToolExecutionUpdate])
async def test_a_call_can_be_cancelled_before_its_body_begins_and_while_it_reports(
    when: type[AgentEvent], autojump_clock: MockClock
) -> None:
    entered: list[str] = []

    @tool
    async def reporting(*, ctx: ToolContext) -> str:
        """Report, then wait."""
        entered.append(ctx.tool_call_id)
        await ctx.update("begun")
        await trio.sleep_forever()
        raise AssertionError

    async def cancel(run: AgentRun, event: AgentEvent) -> None:
        if isinstance(event, when):
            run.cancel_tool("a")

    agent, _ = scripted_agent(Answer(calls=[tool_call("reporting", "a")]), "Done.", tools=[reporting])
    await _watch(agent, cancel)

    assert results(agent) == ['error a: Tool "reporting" was cancelled']
    assert entered == ([] if when is ToolExecutionStart else ["a"])


async def test_a_call_that_waits_for_a_slot_can_be_cancelled_and_takes_none(autojump_clock: MockClock) -> None:
    limiter = trio.CapacityLimiter(1)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", call_id, seconds=4) for call_id in "abc"]),
        "Done.",
        tools=[work],
        limiter=limiter,
    )
    async with trio.open_nursery() as nursery, agent.run("go") as run:
        nursery.start_soon(_cancel_later, run, "b")  # noqa: ASYNC111
        async for event in run:
            if isinstance(event, ToolExecutionEnd) and event.tool_call_id == "b":
                assert trio.current_time() == 2

    assert results(agent) == ["result a: worked", 'error b: Tool "work" was cancelled', "result c: worked"]
    assert trio.current_time() == 8
    assert limiter.borrowed_tokens == 0


async def test_cancelling_a_finished_call_does_nothing_and_an_unknown_one_raises() -> None:
    async def cancel(run: AgentRun, event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            run.cancel_tool("a")
            with pytest.raises(KeyError, match="nobody"):
                run.cancel_tool("nobody")

    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a", seconds=0)]), "Done.", tools=[work])
    run = agent.run("go")
    with pytest.raises(KeyError, match="a"):
        run.cancel_tool("a")
    await _watch(agent, cancel)

    assert results(agent) == ["result a: worked"]


async def test_a_call_of_an_earlier_turn_is_finished_and_not_unknown() -> None:
    async def cancel(run: AgentRun, event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionStart) and event.tool_call_id == "b":
            run.cancel_tool("a")

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "a", seconds=0)]),
        Answer(calls=[tool_call("work", "b", seconds=0)]),
        "Done.",
        tools=[work],
    )
    await _watch(agent, cancel)

    assert results(agent) == ["result a: worked", "result b: worked"]


async def test_a_call_cancelled_in_the_hook_before_it_does_not_run(autojump_clock: MockClock) -> None:
    runs: list[AgentRun] = []

    async def before(_details: object) -> None:
        runs[0].cancel_tool("a")

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "a", seconds=60)]), "Done.", tools=[work], hooks=Hooks(before_tool_call=before)
    )
    async with agent.run("go") as run:
        runs.append(run)
        async for _ in run:
            pass

    assert results(agent) == ['error a: Tool "work" was cancelled']
    assert trio.current_time() == 0
