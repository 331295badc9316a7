"""Stopping a run from outside: cancellation, its grace, Ctrl-C, and that nothing is left."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import pytest
import trio
from loop_kit import outline, scripted_agent, spoken, work
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    MessageEnd,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
    tool,
)
from trio_agent.testing import Answer, check_events, check_transcript, record, tool_call

ABORTED = "assistant[aborted]: "


def living() -> int:
    return trio.lowlevel.current_statistics().tasks_living


# -- cancellation from outside ---------------------------------------------------------------------------------------


async def test_an_outer_cancellation_closes_the_transcript_and_goes_on(autojump_clock: MockClock) -> None:
    calls = [tool_call("work", "a", seconds=1), tool_call("work", "b", seconds=60)]
    agent, _ = scripted_agent(Answer(calls=calls), tools=[work])
    with record(agent) as events, trio.move_on_after(5) as scope:
        await agent.prompt("go")

    assert scope.cancelled_caught
    assert spoken(agent)[2:] == ["result a: worked", "error b: Operation aborted"]
    assert outline(events)[-1] == "agent_end 4"
    check_events(events)


async def test_a_deadline_of_the_caller_is_that_of_the_tools(autojump_clock: MockClock) -> None:
    deadlines: list[float] = []

    @tool(timeout=60)
    async def look(*, ctx: ToolContext) -> str:
        """Look at the deadline."""
        deadlines.append(ctx.deadline)
        with trio.move_on_after(3):
            deadlines.append(ctx.deadline)
            await trio.lowlevel.checkpoint()
        return "seen"

    agent, _ = scripted_agent(Answer(calls=[tool_call("look")]), "Done.", tools=[look])
    with trio.move_on_after(10):
        await agent.prompt("go")

    assert deadlines == [10, 3]


@pytest.mark.parametrize(("grace", "seconds", "delivered"), [(1.0, 1.0, False), (0, 0.0, False), (5.0, 2.0, True)])
async def test_the_grace_bounds_closing_events_that_a_stuck_listener_holds_up(
    grace: float, seconds: float, *, delivered: bool, autojump_clock: MockClock
) -> None:
    async def stuck(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd):
            await trio.sleep(2)

    agent, _ = scripted_agent(Answer(connect_delay=60), closing_grace=grace)
    agent.subscribe(stuck)
    with record(agent) as events, trio.move_on_after(10):
        await agent.prompt("go")

    assert trio.current_time() == 10 + seconds
    assert isinstance(events[-1], AgentEnd) is delivered
    assert not agent.is_running


async def test_an_event_that_a_cancellation_cuts_reaches_every_listener_exactly_once(autojump_clock: MockClock) -> None:
    first: list[AgentEvent] = []
    second: list[AgentEvent] = []

    async def slow(event: AgentEvent) -> None:
        first.append(event)
        if isinstance(event, MessageEnd):
            await trio.sleep(10)

    agent, _ = scripted_agent("Hello")
    agent.subscribe(slow)
    agent.subscribe(second.append)
    with trio.move_on_after(5):
        await agent.prompt("go")

    assert first == second
    check_events(second)


async def test_a_cancellation_during_the_last_event_still_gives_it_to_all(autojump_clock: MockClock) -> None:
    seen: list[AgentEvent] = []

    async def slow(event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            await trio.sleep(10)

    agent, _ = scripted_agent("Hello")
    agent.subscribe(slow)
    agent.subscribe(seen.append)
    with trio.move_on_after(5) as scope:
        await agent.prompt("go")

    assert scope.cancelled_caught
    check_events(seen)


async def test_a_failing_listener_does_not_take_the_next_closing_event_from_the_others(
    autojump_clock: MockClock,
) -> None:
    seen: list[AgentEvent] = []

    async def slow(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            await trio.sleep(10)

    def failing(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            raise LookupError("second")

    agent, _ = scripted_agent("Hello")
    agent.subscribe(slow)
    agent.subscribe(failing)
    agent.subscribe(seen.append)
    with pytest.raises(LookupError, match="second"), trio.move_on_after(5):
        await agent.prompt("go")

    check_events(seen)


async def test_a_crash_in_a_task_beside_the_run_stops_it_in_order(autojump_clock: MockClock) -> None:
    async def crash() -> None:
        await trio.sleep(2)
        raise LookupError("beside")

    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a", seconds=60)]), tools=[work])
    with record(agent) as events, pytest.RaisesGroup(LookupError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            await agent.prompt("go")

    assert trio.current_time() == 2
    check_transcript(agent.messages)
    check_events(events)


async def test_a_cancellation_after_an_abort_cuts_the_delivery_that_the_abort_waits_for(
    autojump_clock: MockClock,
) -> None:
    async def slow(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            await trio.sleep(60)

    agent, _ = scripted_agent(Answer(connect_delay=60))
    agent.subscribe(slow)
    with record(agent) as events, trio.move_on_after(20) as scope:
        agent.subscribe(lambda event: agent.abort() if isinstance(event, TurnStart) else None)
        await agent.prompt("go")

    assert scope.cancelled_caught
    assert trio.current_time() == 20
    check_transcript(agent.messages)
    check_events(events)


async def test_abort_cuts_a_shielded_tool_and_a_slow_listener_only_where_each_lets_it(
    autojump_clock: MockClock,
) -> None:
    times: dict[str, float] = {}

    @tool
    async def careful(*, ctx: ToolContext) -> str:
        """Finish a step whatever happens."""
        with trio.CancelScope(shield=True):
            await trio.sleep(4)
        times["tool"] = trio.current_time()
        await trio.sleep(60)
        return "never"

    async def slow(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd) and event.tool_call_id == "quick":
            await trio.sleep(10)
            times["listener"] = trio.current_time()

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "quick", seconds=1), tool_call("careful", "careful")]), tools=[work, careful]
    )
    agent.subscribe(slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(2)
        agent.abort()

    assert times == {"tool": 4, "listener": 11}
    assert trio.current_time() == 11
    assert spoken(agent)[2:4] == ["result quick: worked", "error careful: Operation aborted"]


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


def _interrupted(run: Callable[[Agent], Awaitable[object]]) -> tuple[Agent, list[AgentEvent]]:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a", seconds=60)]), tools=[work])
    events: list[AgentEvent] = []
    agent.subscribe(events.append)

    async def press(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionStart):
            signal.raise_signal(signal.SIGINT)

    agent.subscribe(press)
    trio.run(run, agent, clock=MockClock(autojump_threshold=0))
    return agent, events


def test_ctrl_c_in_the_main_task_comes_out_bare_after_the_run_was_closed() -> None:
    left: list[int] = []

    async def main(agent: Agent) -> None:
        before = living()
        with pytest.raises(KeyboardInterrupt):
            await agent.prompt("go")
        left.append(living() - before)

    agent, events = _interrupted(main)

    assert left == [0]
    assert spoken(agent)[2:] == ["error a: Operation aborted"]
    check_events(events)


def test_ctrl_c_reaches_a_run_in_a_child_task_as_a_cancellation() -> None:
    async def main(agent: Agent) -> None:
        with pytest.RaisesGroup(KeyboardInterrupt):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.prompt, "go")
                await trio.sleep_forever()

    agent, events = _interrupted(main)

    assert spoken(agent)[2:] == ["error a: Operation aborted"]
    check_events(events)


def test_ctrl_c_in_the_block_of_a_run_comes_out_bare() -> None:
    async def main(agent: Agent) -> None:
        async def watch() -> None:
            async with agent.run("go") as run:
                async for _ in run:
                    await trio.lowlevel.checkpoint()

        with pytest.raises(KeyboardInterrupt):
            await watch()

    agent, events = _interrupted(main)

    check_transcript(agent.messages)
    check_events(events)


# -- no orphans ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["done", "abort", "cancel", "break", "raise"])
async def test_whatever_ends_a_run_no_task_of_it_is_left(end: str, autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work"), tool_call("work")]), "Done.", tools=[work])
    before = living()
    try:
        with trio.CancelScope() as scope:
            async with agent.run("go") as run:
                async for event in run:
                    if isinstance(event, ToolExecutionStart):
                        await wait_all_tasks_blocked()
                        if end == "abort":
                            run.abort()
                        elif end == "cancel":
                            scope.cancel()
                        elif end == "break":
                            break
                        elif end == "raise":
                            raise LookupError("body")
    except LookupError:
        assert end == "raise"

    assert living() == before
    assert not agent.is_running
    check_transcript(agent.messages)


async def test_a_run_can_be_entered_only_once_and_the_agent_stays_usable() -> None:
    agent, _ = scripted_agent("One.", "Two.")
    async with agent.run("go") as run:
        async for _ in run:
            pass

    with pytest.raises(RuntimeError, match="only once"):
        await run.__aenter__()
    await agent.prompt("again")

    assert not agent.is_running
