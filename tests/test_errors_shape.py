"""Errors keep their shape: one failure comes out as that one bare exception, with its traceback, from every door."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from loop_kit import scripted_agent, spoken
from trio.testing import MockClock

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    Hooks,
    MessageEnd,
    ToolContext,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    tool,
)
from trio_agent.testing import Answer, check_events, check_transcript, record, tool_call


class BugError(Exception):
    """What a user's code raises."""


def the_users_line() -> None:
    raise BugError("user code")


@tool
async def work(*, ctx: ToolContext) -> str:
    """Report, and take time."""
    await ctx.update("begun")
    await trio.sleep(5)
    return "worked"


def agent_with(kind: type[AgentEvent]) -> Agent:
    """An agent with a listener that fails at an event."""
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a"), tool_call("work", "b")]), "Done.", tools=[work])

    def fail(event: AgentEvent) -> None:
        if isinstance(event, kind):
            the_users_line()

    agent.subscribe(fail)
    return agent


async def _prompt(agent: Agent) -> None:
    await agent.prompt("go")


async def _watch(agent: Agent) -> None:
    async with agent.run("go") as run:
        async for _ in run:
            pass


async def _enter_only(agent: Agent) -> None:
    async with agent.run("go"):
        await trio.sleep(20)


async def _watch_in_nursery(agent: Agent) -> None:
    async with trio.open_nursery() as nursery, agent.run("go") as run:
        nursery.start_soon(trio.sleep, 1)
        async for _ in run:
            await trio.sleep(0.1)


KINDS: list[Any] = [MessageEnd, ToolExecutionStart, ToolExecutionUpdate, TurnEnd, AgentEnd]


@pytest.mark.parametrize("door", [_prompt, _watch])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_failing_listener_comes_out_of_every_door_bare_and_shows_the_users_line(
    kind: type[AgentEvent], door: Callable[[Agent], Awaitable[None]], autojump_clock: MockClock
) -> None:
    agent = agent_with(kind)
    with record(agent) as events, pytest.raises(BugError) as caught:
        await door(agent)

    assert "the_users_line" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    check_transcript(agent.messages)
    check_events(events)
    assert not agent.is_running


async def test_a_failure_comes_out_of_a_block_that_was_not_iterated(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent("Hello")

    def fail(_event: AgentEvent) -> None:
        the_users_line()

    agent.subscribe(fail)
    with pytest.raises(BugError):
        await _enter_only(agent)


async def test_a_failure_in_a_users_nursery_is_one_leaf_of_the_users_group(autojump_clock: MockClock) -> None:
    with pytest.RaisesGroup(BugError):
        await _watch_in_nursery(agent_with(ToolExecutionStart))


async def test_several_failing_listeners_are_a_group_of_their_errors() -> None:
    agent, _ = scripted_agent("Hello")
    for _ in range(2):
        agent.subscribe(lambda event: the_users_line() if isinstance(event, MessageEnd) else None)

    with pytest.RaisesGroup(BugError, BugError):
        await agent.prompt("go")


async def test_a_failing_hook_comes_out_bare() -> None:
    async def fail(_details: object) -> None:
        the_users_line()

    agent, _ = scripted_agent("Hello", hooks=Hooks(finish_turn=fail))
    with pytest.raises(BugError):
        await agent.prompt("go")


@pytest.mark.parametrize("error", [BugError("body"), KeyboardInterrupt(), SystemExit(1)])
async def test_what_the_body_of_a_run_raises_comes_out_bare_and_the_run_has_settled(
    error: BaseException, autojump_clock: MockClock
) -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a")]), "Done.", tools=[work])

    async def body() -> None:
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, ToolExecutionStart):
                    raise error

    with pytest.raises(type(error)) as caught:
        await body()

    assert caught.value is error
    assert spoken(agent)[2:3] == ["error a: Operation aborted"]
    assert not agent.is_running


async def test_what_the_body_raises_weighs_more_than_what_the_run_raised_which_is_noted() -> None:
    agent, _ = scripted_agent("Hello")
    agent.subscribe(lambda event: the_users_line() if isinstance(event, AgentEnd) else None)

    async def body() -> None:
        async with agent.run("go") as run:
            async for _ in run:
                raise LookupError("body")

    with pytest.raises(LookupError) as caught:
        await body()

    assert caught.value.__notes__ == ["the run failed, too: BugError: user code"]


async def test_what_the_body_of_a_further_watcher_raises_stays_its_own_and_the_run_goes_on() -> None:
    agent, _ = scripted_agent("Hello")

    async def watch(opened: trio.Event) -> None:
        async with agent.events() as events:
            opened.set()
            async for _ in events:
                the_users_line()

    async def keep_error(opened: trio.Event) -> None:
        with pytest.raises(BugError):
            await watch(opened)

    async with trio.open_nursery() as nursery:
        opened = trio.Event()
        nursery.start_soon(keep_error, opened)
        await opened.wait()
        result = await agent.prompt("go")

    assert result.text == "Hello"


@pytest.mark.parametrize("door", [_prompt, _watch])
async def test_a_deadline_of_the_caller_comes_out_as_too_slow(
    door: Callable[[Agent], Awaitable[None]], autojump_clock: MockClock
) -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a")]), "Done.", tools=[work])

    with pytest.raises(trio.TooSlowError), trio.fail_after(2):
        await door(agent)

    check_transcript(agent.messages)


async def test_a_real_failure_weighs_more_than_a_cancellation(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(Answer(connect_delay=60))
    agent.subscribe(lambda event: the_users_line() if isinstance(event, TurnEnd) else None)

    with pytest.raises(BugError), trio.move_on_after(5):
        await agent.prompt("go")


async def test_a_tool_never_sees_the_failure_of_a_listener_that_its_update_caused(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    @tool
    async def catching(*, ctx: ToolContext) -> str:
        """Report, and catch what comes of it."""
        try:
            await ctx.update("begun")
        except Exception as exc:  # noqa: BLE001
            seen.append(repr(exc))
        return "done"

    agent, _ = scripted_agent(Answer(calls=[tool_call("catching", "a")]), "Done.", tools=[catching])
    agent.subscribe(lambda event: the_users_line() if isinstance(event, ToolExecutionUpdate) else None)

    with pytest.raises(BugError):
        await agent.prompt("go")

    assert seen == []


async def test_the_text_of_a_group_names_its_leaves_and_an_unprintable_error_its_type() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @tool
    async def group() -> str:
        """Fail in several ways."""
        raise ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [UnprintableError()])])

    agent, _ = scripted_agent(Answer(calls=[tool_call("group", "a")]), "Done.", tools=[group])
    await agent.prompt("go")

    assert "error a: ValueError: one; UnprintableError: UnprintableError" in spoken(agent)
