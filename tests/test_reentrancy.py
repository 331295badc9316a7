"""Handlers that call back into the agent: allowed where it can work, and an error instead of a hang elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from loop_kit import is_end_of_answer, scripted_agent, text_of, watch
from trio.testing import wait_all_tasks_blocked

from trio_agent import (
    AgentBusyError,
    AgentEnd,
    AgentEvent,
    AgentStart,
    DeadlockError,
    EventStream,
    Hooks,
    MessageStart,
    MessageUpdate,
    ToolExecutionStart,
    TurnStart,
    tool,
)
from trio_agent.testing import Answer, check_events, tool_call


async def test_a_listener_added_during_an_event_gets_the_next_and_one_removed_does_not_get_it() -> None:
    added: list[AgentEvent] = []
    removed: list[AgentEvent] = []
    agent, _ = scripted_agent("Hello")

    def change(event: AgentEvent) -> None:
        if isinstance(event, TurnStart):
            agent.subscribe(added.append)
            later.close()

    agent.subscribe(change)
    later = agent.subscribe(removed.append)
    await agent.prompt("go")

    assert isinstance(added[0], MessageStart)
    assert removed == [AgentStart()]


async def test_a_watcher_opened_by_a_listener_gets_the_next_event() -> None:
    agent, _ = scripted_agent("Hello")
    streams: list[EventStream] = []

    def open_stream(event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            streams.append(agent.events())
            streams[0].open()

    agent.subscribe(open_stream)
    await agent.prompt("go")

    assert agent.statistics().events_waiting == 0
    streams[0].close()


async def test_the_body_of_a_watcher_may_steer_and_queue_follow_ups() -> None:
    agent, scripted = scripted_agent("One.", "Two.", "Three.")
    async with agent.run("go") as run:
        async for event in run:
            if is_end_of_answer(event) and len(scripted.requests) == 1:
                agent.steer("steered")
                agent.follow_up("followed")

    texts = [text_of(message) for message in run.result.messages]
    assert texts == ["go", "One.", "steered", "Two.", "followed", "Three."]


async def test_a_second_run_from_the_body_of_a_watcher_is_refused_at_once() -> None:
    agent, _ = scripted_agent("Hello")
    refused = 0
    async with agent.run("go") as run:
        async for _ in run:
            with pytest.raises(AgentBusyError):
                await agent.prompt("again")
            refused += 1

    assert refused > 5
    assert run.result.text == "Hello"


async def test_waiting_for_the_run_in_the_body_of_a_watcher_is_an_error_that_names_the_task() -> None:
    agent, _ = scripted_agent("Hello")

    async def body(_event: AgentEvent) -> None:
        with pytest.raises(DeadlockError, match="watch"):
            await agent.wait_idle()

    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, body)
        await agent.prompt("go")


async def test_waiting_for_the_run_in_a_nursery_of_the_body_is_an_error_too() -> None:
    agent, _ = scripted_agent("Hello")

    async def wait() -> None:
        with pytest.raises(DeadlockError):
            await agent.wait_idle()

    async with agent.run("go") as run:
        async for _ in run:
            async with trio.open_nursery() as nursery:  # noqa: ASYNC112
                nursery.start_soon(wait)


async def test_waiting_for_the_run_in_a_hook_is_an_error() -> None:
    async def hook(_details: object) -> None:
        await agent.wait_idle()

    agent, _ = scripted_agent("Hello", hooks=Hooks(prepare_request=hook))
    with pytest.raises(DeadlockError):
        await agent.prompt("go")


async def test_waiting_for_the_run_in_a_tool_is_a_result_for_the_model() -> None:
    @tool
    async def wait() -> str:
        """Wait for oneself."""
        await agent.wait_idle()
        raise AssertionError

    agent, _ = scripted_agent(Answer(calls=[tool_call("wait")]), "Done.", tools=[wait])
    result = await agent.prompt("go")

    assert "would wait for ever" in text_of(result.messages[2])


async def test_another_task_may_wait_for_the_run_also_if_a_body_has_started_it() -> None:
    agent, _ = scripted_agent("Hello")
    waited: list[str] = []

    async def wait(name: str) -> None:
        await agent.wait_idle()
        waited.append(name)

    async with trio.open_nursery() as nursery, agent.run("go") as run:
        nursery.start_soon(wait, "before")
        async for event in run:
            if isinstance(event, MessageUpdate):
                nursery.start_soon(wait, "in a body")
                await wait_all_tasks_blocked()

    assert set(waited) == {"before", "in a body"}


async def test_a_task_of_the_body_may_wait_for_the_run_while_no_event_is_handled() -> None:
    gate = trio.Event()

    @tool
    async def wait_for_gate() -> str:
        """Wait for the test."""
        await gate.wait()
        return "open"

    agent, _ = scripted_agent(Answer(calls=[tool_call("wait_for_gate")]), "Done.", tools=[wait_for_gate])
    waited = False

    async def wait_for_the_run() -> None:
        nonlocal waited
        await wait_all_tasks_blocked()
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.wait_idle)
                await wait_all_tasks_blocked()
                gate.set()
        waited = True

    async with agent.run("go") as run:
        events = aiter(run)
        while not isinstance(await anext(events), ToolExecutionStart):
            pass
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_the_run)
            async for _ in events:
                pass

    assert waited


async def test_another_task_may_iterate_the_run_while_its_opener_waits() -> None:
    agent, _ = scripted_agent("Hello")
    log: list[AgentEvent] = []

    async def iterate(run: Any) -> None:
        log.extend([event async for event in run])

    async with trio.open_nursery() as nursery, agent.run("go") as run:
        nursery.start_soon(iterate, run)  # noqa: ASYNC111
        await agent.wait_idle()

    check_events(log)


async def test_after_its_loop_the_body_may_wait_for_the_run() -> None:
    agent, _ = scripted_agent("Hello")
    async with agent.run("go") as run:
        async for _ in run:
            pass
        await agent.wait_idle()

    assert run.result.text == "Hello"
