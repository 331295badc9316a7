"""Tools that do not stop the way they should, time limits, and threads: each has one defined outcome."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
from loop_kit import never, scripted_agent, spoken, work
from trio.testing import MockClock

from trio_agent import (
    Agent,
    AgentEvent,
    Tool,
    ToolExecutionEnd,
    tool,
)
from trio_agent.testing import Answer, check_events, check_transcript, record, tool_call


@tool
async def swallow() -> str:
    """Return although it was cancelled."""
    try:
        await trio.sleep_forever()
    except trio.Cancelled:  # noqa: ASYNC103
        return "swallowed"  # noqa: ASYNC104


@tool
async def fail_in_cleanup() -> str:
    """Fail when it is stopped."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.sleep_forever()
        finally:
            raise LookupError("clean-up")
    raise AssertionError


@tool
async def failing_child() -> str:
    """Start a task that fails."""

    async def child() -> None:
        raise LookupError("child")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(trio.sleep_forever)
    raise AssertionError


def raising(error: BaseException) -> Tool[..., Any]:
    @tool(name="raising")
    async def raise_it() -> str:
        """Raise."""
        await trio.lowlevel.checkpoint()
        raise error

    return raise_it


async def stopped_at(agent: Agent, seconds: float) -> list[AgentEvent]:
    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await trio.sleep(seconds)
            agent.abort()
    check_transcript(agent.messages)
    check_events(events)
    return events


def results(agent: Agent) -> list[str]:
    return [line for line in spoken(agent) if line.startswith(("result", "error"))]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (never, "error odd: Operation aborted"),
        (swallow, "result odd: swallowed"),
        (fail_in_cleanup, "error odd: LookupError: clean-up"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
async def test_what_becomes_of_an_odd_tool_at_an_abort(
    odd: Tool[..., Any], expected: str, *, alone: bool, autojump_clock: MockClock
) -> None:
    others = [] if alone else [tool_call("work", "other", seconds=0.5)]
    agent, _ = scripted_agent(Answer(calls=[tool_call(odd.name, "odd"), *others]), tools=[odd, work])

    await stopped_at(agent, 3)

    assert trio.current_time() == 3
    assert results(agent) == [expected, *(["result other: worked"] if others else [])]


async def test_an_end_that_follows_a_swallowed_abort_is_delivered_in_full(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def slow(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            await trio.sleep(1)
            seen.append(event.tool_call_id)

    agent, _ = scripted_agent(Answer(calls=[tool_call("swallow", "odd")]), tools=[swallow])
    agent.subscribe(slow)

    await stopped_at(agent, 3)

    assert seen == ["odd"]


async def test_a_tool_whose_child_task_fails_has_a_result_that_names_the_failure() -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("failing_child", "odd")]), "Done.", tools=[failing_child])

    await agent.prompt("go")

    assert results(agent) == ["error odd: LookupError: child"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
@pytest.mark.parametrize("alone", [True, False])
async def test_what_no_tool_may_turn_into_a_result_comes_out_bare_after_the_run_was_closed(
    error: BaseException, *, alone: bool
) -> None:
    others = [] if alone else [tool_call("never", "other")]
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("raising", "odd"), *others]), tools=[raising(error), never], closing_grace=1
    )
    before = trio.lowlevel.current_statistics().tasks_living
    with record(agent) as events, pytest.raises(type(error)) as caught:
        await agent.prompt("go")

    assert caught.value is error
    assert trio.lowlevel.current_statistics().tasks_living == before
    check_transcript(agent.messages)
    check_events(events)


async def test_a_cancelled_that_nothing_has_cancelled_is_the_tools_own_failure() -> None:
    kept: list[BaseException] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as exc:
            kept.append(exc)
            raise

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("raising", "odd"), tool_call("work", "other", seconds=0)]),
        "Done.",
        tools=[raising(kept[0]), work],
    )
    result = await agent.prompt("go")

    assert result.text == "Done."
    assert results(agent)[0].startswith("error odd: ")
    assert results(agent)[1] == "result other: worked"


# -- a tool's own time limit -----------------------------------------------------------------------------------------


async def test_a_tool_that_takes_too_long_fails_alone(autojump_clock: MockClock) -> None:
    short = Tool(name="short", parameters={"type": "object"}, execute=_forever, timeout=2)
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("short", "a"), tool_call("work", "b", seconds=5)]), "Done.", tools=[short, work]
    )
    result = await agent.prompt("go")

    assert result.text == "Done."
    assert results(agent) == ['error a: Tool "short" timed out after 2 s', "result b: worked"]
    assert trio.current_time() == 5


async def _forever(_arguments: object, _ctx: object) -> str:
    await trio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize(("own", "seconds"), [(None, 3), (7, 7)])
async def test_the_tools_own_time_limit_wins_over_the_agents(
    own: float | None, seconds: float, autojump_clock: MockClock
) -> None:
    slow = Tool(name="slow", parameters={"type": "object"}, execute=_forever, timeout=own)
    agent, _ = scripted_agent(Answer(calls=[tool_call("slow", "a")]), "Done.", tools=[slow], tool_timeout=3)

    await agent.prompt("go")

    assert results(agent) == [f'error a: Tool "slow" timed out after {seconds} s']
    assert trio.current_time() == seconds


async def test_a_tool_that_finishes_at_its_time_limit_by_swallowing_it_keeps_its_result(
    autojump_clock: MockClock,
) -> None:
    limited = swallow.renamed("limited")
    agent, _ = scripted_agent(Answer(calls=[tool_call("limited", "a")]), "Done.", tools=[limited], tool_timeout=3)

    await agent.prompt("go")

    assert results(agent) == ["result a: swallowed"]


async def test_a_time_limit_starts_when_the_call_gets_its_slot(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", str(number), seconds=4) for number in range(3)]),
        "Done.",
        tools=[work],
        tool_timeout=5,
        limiter=trio.CapacityLimiter(1),
    )
    await agent.prompt("go")

    assert results(agent) == ["result 0: worked", "result 1: worked", "result 2: worked"]
    assert trio.current_time() == 12


# -- blocking tools, on the real clock -------------------------------------------------------------------------------


async def test_an_abandoned_thread_does_not_hold_an_abort_and_its_result_is_discarded() -> None:
    entered, release, finished = threading.Event(), threading.Event(), threading.Event()

    @tool
    def block() -> str:
        """Block."""
        entered.set()
        release.wait(10)
        finished.set()
        return "late"

    agent, _ = scripted_agent(Answer(calls=[tool_call("block", "a")]), "Done.", tools=[block])
    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await trio.to_thread.run_sync(entered.wait)
            agent.abort()
        assert not finished.is_set()
        release.set()
        await trio.to_thread.run_sync(finished.wait)

    assert results(agent) == ["error a: Operation aborted; the work may still be going on in its thread"]
    check_events(events)


async def test_a_thread_that_may_not_be_cancelled_is_waited_for_and_keeps_its_result() -> None:
    entered, release = threading.Event(), threading.Event()

    @tool(cancellable=False)
    def block() -> str:
        """Block."""
        entered.set()
        release.wait(10)
        return "in time"

    agent, _ = scripted_agent(Answer(calls=[tool_call("block", "a")]), "Done.", tools=[block])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.to_thread.run_sync(entered.wait)
        agent.abort()
        release.set()

    assert results(agent) == ["result a: in time"]


async def test_a_cooperative_thread_ends_when_it_looks() -> None:
    entered = threading.Event()

    @tool(cancellable="cooperative")
    def block() -> str:
        """Block, and look now and then."""
        entered.set()
        while True:
            trio.from_thread.check_cancelled()

    agent, _ = scripted_agent(Answer(calls=[tool_call("block", "a")]), "Done.", tools=[block])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.to_thread.run_sync(entered.wait)
        agent.abort()

    assert results(agent) == ["error a: Operation aborted"]
