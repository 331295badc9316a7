"""Handlers are barriers, watchers own their streams: what the loop waits for, and what it does not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
import trio
from loop_kit import Body, is_end_of_answer, outline, scripted_agent, watch, work
from trio.testing import MockClock, assert_no_checkpoints, wait_all_tasks_blocked

import trio_agent
from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    AgentStart,
    EventStream,
    Hooks,
    MessageUpdate,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    tool,
)
from trio_agent.testing import Answer, check_events, record, tool_call


def sleeper(seconds: float, log: list[AgentEvent]) -> Body:
    """A body that sleeps at the end of the first answer."""

    async def body(event: AgentEvent) -> None:
        log.append(event)
        if is_end_of_answer(event) and sum(map(is_end_of_answer, log)) == 1:
            await trio.sleep(seconds)

    return body


# -- barriers --------------------------------------------------------------------------------------------------------


async def test_no_tool_is_prepared_before_a_watcher_has_handled_the_end_of_the_answer(
    autojump_clock: MockClock,
) -> None:
    prepared: list[float] = []

    async def before(_details: object) -> None:
        prepared.append(trio.current_time())

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work")]), "Done.", tools=[work], hooks=Hooks(before_tool_call=before)
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, sleeper(10, []))
        await agent.prompt("go")

    assert prepared == [10]


async def test_of_two_watchers_the_slower_decides_and_both_see_the_same(autojump_clock: MockClock) -> None:
    logs: tuple[list[AgentEvent], list[AgentEvent]] = ([], [])
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", seconds=1)]), "Done.", tools=[work])

    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, sleeper(3, logs[0]))
        await nursery.start(watch, agent, sleeper(7, logs[1]))
        await agent.prompt("go")

    assert logs[0] == logs[1]
    check_events(logs[0])
    assert trio.current_time() == 8


async def test_one_handler_at_a_time_sees_one_event_at_a_time_with_many_tools_running(
    autojump_clock: MockClock,
) -> None:
    inside = 0

    async def handle(event: AgentEvent) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        if isinstance(event, ToolExecutionEnd | ToolExecutionUpdate):
            await trio.sleep(0.01)
        inside -= 1

    @tool
    async def busy(*, ctx: ToolContext) -> str:
        """Report and work."""
        await ctx.update("begun")
        await trio.sleep(0.1)
        return "done"

    agent, _ = scripted_agent(Answer(calls=[tool_call("busy") for _ in range(300)]), "Done.", tools=[busy])
    agent.subscribe(handle)
    with record(agent) as events:
        await agent.prompt("go")

    check_events(events)
    assert sum(isinstance(event, ToolExecutionEnd) for event in events) == 300


async def test_tools_go_on_while_a_handler_handles_and_the_state_stands_still(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "a", seconds=1), tool_call("work", "b", seconds=2)]), "Done.", tools=[work]
    )
    states: list[tuple[int, tuple[str, ...]]] = []

    async def handle(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd) and event.tool_call_id == "a":
            states.append((len(agent.messages), agent.state.pending_tool_calls))
            await trio.sleep(10)
            states.append((len(agent.messages), agent.state.pending_tool_calls))

    agent.subscribe(handle)
    await agent.prompt("go")

    assert states[0] == states[1] == (3, ("b",))
    assert trio.current_time() == 11


async def test_listeners_come_in_order_of_registration_and_before_watchers() -> None:
    order: list[str] = []

    def listener(name: str) -> Callable[[AgentEvent], None]:
        return lambda event: order.append(name) if isinstance(event, AgentStart) else None

    async def body(event: AgentEvent) -> None:
        if isinstance(event, AgentStart):
            order.append("watcher")

    agent, _ = scripted_agent("Hello")
    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, body)
        agent.subscribe(listener("first"))
        agent.subscribe(listener("second"))
        await agent.prompt("go")

    assert order == ["first", "second", "watcher"]


async def test_delivery_without_watchers_is_no_checkpoint() -> None:
    agent, _ = scripted_agent()
    agent.subscribe(lambda _event: None)

    async def deliver() -> None:
        await agent._delivery.emit(AgentStart())

    with assert_no_checkpoints():
        await deliver()


# -- watchers that leave ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["break", "raise", "cancel"])
async def test_a_watcher_that_leaves_early_holds_nobody_and_leaves_no_task(how: str, autojump_clock: MockClock) -> None:
    class LeftError(Exception):
        pass

    async def leave(task_status: trio.TaskStatus[None]) -> None:
        with trio.CancelScope() as scope:
            async with agent.events() as events:
                task_status.started()
                async for event in events:
                    if is_end_of_answer(event):
                        if how == "break":
                            break
                        if how == "raise":
                            raise LeftError
                        scope.cancel()
                        await trio.sleep_forever()

    async def keep_error(task_status: trio.TaskStatus[None]) -> None:  # noqa: ASYNC128
        try:
            await leave(task_status)
        except LeftError:
            assert how == "raise"

    agent, _ = scripted_agent(Answer(calls=[tool_call("work", seconds=5)]), "Done.", tools=[work])
    before = trio.lowlevel.current_statistics().tasks_living
    async with trio.open_nursery() as nursery:
        await nursery.start(keep_error)
        result = await agent.prompt("go")

    assert result.text == "Done."
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert agent._delivery._watchers == ()


async def test_leaving_the_block_of_a_run_early_aborts_it_and_further_watchers_see_it_settle(
    autojump_clock: MockClock,
) -> None:
    log: list[AgentEvent] = []

    async def body(event: AgentEvent) -> None:
        log.append(event)

    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "a", seconds=50)]), tools=[work])
    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, body)
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, ToolExecutionStart):
                    break
        assert not agent.is_running

    check_events(log)
    assert outline(log)[-2:] == ["turn_end aborted 0", "agent_end 4"]


async def test_a_run_that_is_not_iterated_stands_at_its_first_event() -> None:
    agent, scripted = scripted_agent("Hello")

    async with agent.run("go"):
        await wait_all_tasks_blocked()
        assert agent.statistics().delivering == AgentStart()
        assert scripted.requests == []

    assert not agent.is_running


async def test_a_stream_spans_runs_until_it_is_closed() -> None:
    agent, _ = scripted_agent("One.", "Two.")
    log: list[AgentEvent] = []

    async def follow(events: EventStream) -> None:
        log.extend([event async for event in events])

    async with trio.open_nursery() as nursery, agent.events() as events:
        nursery.start_soon(follow, events)  # noqa: ASYNC111
        await agent.prompt("go")
        await agent.prompt("go on")
        events.close()

    check_events(log)
    assert sum(isinstance(event, AgentEnd) for event in log) == 2


async def test_two_tasks_cannot_iterate_one_stream_at_once() -> None:
    agent, _ = scripted_agent()
    async with agent.events() as events, trio.open_nursery() as nursery:
        nursery.start_soon(events.__anext__)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await events.__anext__()
        nursery.cancel_scope.cancel()


def test_a_stream_that_was_not_entered_cannot_be_iterated() -> None:
    agent, _ = scripted_agent()

    with pytest.raises(RuntimeError, match="enter the event stream first"):
        agent.events().__aiter__()


# -- observing -------------------------------------------------------------------------------------------------------


async def test_a_buffered_watcher_holds_the_run_only_when_its_buffer_is_full(autojump_clock: MockClock) -> None:
    log: list[AgentEvent] = []

    async def slow(event: AgentEvent) -> None:
        log.append(event)
        await trio.sleep(1)

    agent, _ = scripted_agent("Hello")
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: watch(agent, slow, buffer=4, task_status=task_status))
        await agent.prompt("go")
        ended = trio.current_time()

    check_events(log)
    assert ended == len(log) - 4


async def test_a_watcher_that_stops_reading_stops_the_provider_within_one_chunk() -> None:
    pulled = 0

    class Endless:
        def __call__(self, *_request: Any) -> Endless:
            return self

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_exc: object) -> None:
            return

        def __aiter__(self) -> Endless:
            return self

        async def __anext__(self) -> Any:
            nonlocal pulled
            pulled += 1
            if pulled == 1:
                return trio_agent.StreamStart()
            if pulled == 2:
                return trio_agent.TextStart(content_index=0)
            return trio_agent.TextDelta(content_index=0, delta="x")

    scripted, _ = scripted_agent()
    agent = Agent(scripted.model, stream_fn=Endless())
    seen = 0
    async with agent.run("go") as run:
        async for event in run:
            seen += isinstance(event, MessageUpdate)
            if seen == 5:
                await wait_all_tasks_blocked()
                assert pulled == 2 + 5 - 1  # the start, the start of the block, which is an update, and four deltas
                break


# -- what cannot be seen from outside --------------------------------------------------------------------------------


async def test_statistics_say_who_is_waited_for(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent("Hello")
    async with trio.open_nursery() as nursery:
        await nursery.start(watch, agent, sleeper(10, []))
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(4)
        statistics = agent.statistics()

    assert (statistics.events_waiting, statistics.oldest_wait) == (1, 4)
    assert statistics.delivering is not None
    assert is_end_of_answer(statistics.delivering)


def _owned(node: ast.With | ast.AsyncWith) -> bool:
    text = " ".join(ast.unparse(item.context_expr) for item in node.items)
    return any(name in text for name in ("open_nursery", "CancelScope", "move_on", "fail_a", "scope"))


def test_no_generator_of_the_library_yields_inside_a_nursery_or_a_cancel_scope() -> None:
    found = []
    for path in Path(trio_agent.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.AsyncFunctionDef):
                blocks = [node for node in ast.walk(function) if isinstance(node, ast.With | ast.AsyncWith)]
                found += [
                    f"{path.name}:{node.lineno}"
                    for block in blocks
                    if _owned(block)
                    for node in ast.walk(block)
                    if isinstance(node, ast.Yield)
                ]

    assert found == []
