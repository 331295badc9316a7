"""Aborts, at every kind of moment of a run: what is cut, what is kept, and who is still asked."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from loop_kit import outline, scripted_agent, spoken, work
from trio.testing import MockClock, assert_no_checkpoints

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    AgentStart,
    Hooks,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnDetails,
    TurnEnd,
    TurnStart,
)
from trio_agent.testing import Answer, Gate, check_events, check_transcript, record, tool_call

ABORTED = "assistant[aborted]: "


def living() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_abort_of_an_idle_agent_does_nothing_and_never_blocks() -> None:
    agent, _ = scripted_agent("Hello")

    with assert_no_checkpoints():
        agent.abort()
        agent.abort()
    await agent.prompt("go")

    assert spoken(agent) == ["user: go", "assistant[stop]: Hello"]


async def test_abort_before_the_first_request_asks_nobody() -> None:
    asked: list[str] = []

    async def prepare_request(_details: object) -> None:
        asked.append("prepare_request")

    agent, scripted = scripted_agent("Hello", hooks=Hooks(prepare_request=prepare_request))
    agent.subscribe(lambda event: agent.abort() if isinstance(event, TurnStart) else None)

    result = await agent.prompt("go")

    assert (asked, scripted.requests) == ([], [])
    assert result.stop_reason == "aborted"
    assert spoken(agent) == ["user: go", ABORTED]


async def test_abort_while_connecting_ends_at_once(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(Answer(text="Hello", connect_delay=60))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(1)
        agent.abort()

    assert trio.current_time() == 1
    assert spoken(agent) == ["user: go", ABORTED]


async def test_abort_while_streaming_keeps_what_had_arrived_and_takes_nothing_more(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(Answer(text="Hello there", chunk_size=6, delay=1))
    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await trio.sleep(3.5)  # the start, the block's start and its first delta
            agent.abort()

    assert trio.current_time() == 3.5
    assert spoken(agent) == ["user: go", "assistant[aborted]: Hello "]
    check_events(events)


async def test_abort_by_a_listener_of_a_delta_is_the_last_that_is_seen_of_the_answer() -> None:
    agent, _ = scripted_agent(Answer(text="abcdef", chunk_size=1))
    agent.subscribe(lambda event: agent.abort() if isinstance(event, MessageUpdate) else None)
    with record(agent) as events:
        await agent.prompt("go")

    assert sum(isinstance(event, MessageUpdate) for event in events) == 1
    assert spoken(agent) == ["user: go", ABORTED]


async def test_abort_in_a_retry_sleep_of_the_stream_function_ends_it(autojump_clock: MockClock) -> None:
    class Sleeping:
        def __call__(self, *_request: Any) -> Sleeping:
            return self

        async def __aenter__(self) -> Any:
            await trio.sleep(30)  # what a retry does between two attempts

        async def __aexit__(self, *_exc: object) -> None:
            raise AssertionError("never entered")

    agent, _ = scripted_agent()
    agent = Agent(agent.model, stream_fn=Sleeping())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(2)
        agent.abort()

    assert trio.current_time() == 2
    assert spoken(agent) == ["user: go", ABORTED]


async def _sleep_in_hook(*_args: object) -> Any:
    await trio.sleep(60)


@pytest.mark.parametrize(
    "name",
    [
        "prepare_request",
        "transform_context",
        "get_api_key",
        "before_tool_call",
        "after_tool_call",
        "should_stop_after_turn",
        "prepare_next_turn",
    ],
)
async def test_abort_cuts_a_hook(name: str, autojump_clock: MockClock) -> None:
    hooks = Hooks(**{name: _sleep_in_hook})  # type: ignore[arg-type]
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", seconds=0.5)]), "Done.", tools=[work], hooks=hooks)
    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await trio.sleep(1)
            agent.abort()

    assert trio.current_time() == 1
    check_transcript(agent.messages)
    check_events(events)
    assert agent.messages[-1].stop_reason == "aborted"  # type: ignore[union-attr]


async def test_abort_does_not_cut_finish_turn_but_gives_it_the_grace_only(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def finish_turn(_details: TurnDetails) -> None:
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            seen.append("cut")
            raise

    agent, _ = scripted_agent("Hello", hooks=Hooks(finish_turn=finish_turn), closing_grace=2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(10)
        agent.abort()

    assert trio.current_time() == 12
    assert seen == ["cut"]
    assert spoken(agent) == ["user: go", "assistant[stop]: Hello"]


async def test_a_result_that_a_cut_hook_has_not_seen_does_not_leak(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "a", seconds=0.5)]), tools=[work], hooks=Hooks(after_tool_call=_sleep_in_hook)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(1)
        agent.abort()

    assert "error a: Operation aborted" in spoken(agent)


async def test_abort_during_tools_gives_each_call_its_end_and_result_and_keeps_real_ones(
    autojump_clock: MockClock,
) -> None:
    calls = [tool_call("work", "slow", seconds=9), tool_call("work", "fast", seconds=1)]
    agent, scripted = scripted_agent(Answer(calls=calls), tools=[work])
    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await trio.sleep(5)
            agent.abort()

    assert trio.current_time() == 5
    assert len(scripted.requests) == 1
    lines = outline(events)
    assert lines[lines.index("start slow") :] == [
        "start slow",
        "start fast",
        "end fast",
        "end slow",
        "> error slow: Operation aborted",
        "< error slow: Operation aborted",
        "> result fast: worked",
        "< result fast: worked",
        "turn_end toolUse 2",
        "turn_start",
        "> assistant",
        f"< {ABORTED}",
        "turn_end aborted 0",
        "agent_end 5",
    ]


async def test_abort_at_a_start_runs_no_tool_and_answers_all_calls() -> None:
    gate = Gate()
    agent, _ = scripted_agent(Answer(calls=[tool_call("gate", "a"), tool_call("gate", "b")]), tools=[gate.tool])
    agent.subscribe(lambda event: agent.abort() if isinstance(event, ToolExecutionStart) else None)
    with record(agent) as events:
        await agent.prompt("go")

    assert gate.entered == []
    assert spoken(agent)[2:4] == ["error a: Operation aborted", "error b: Operation aborted"]
    assert [line for line in outline(events) if line.startswith(("start", "end"))] == [
        "start a",
        "end a",
        "start b",
        "end b",
    ]


async def test_abort_between_turns_asks_nobody_and_leaves_the_queues_alone() -> None:
    asked: list[str] = []

    async def ask(*_args: object) -> Any:
        asked.append("asked")

    agent, scripted = scripted_agent(
        Answer(calls=[tool_call("work", seconds=0)]),
        tools=[work],
        hooks=Hooks(should_stop_after_turn=ask, prepare_next_turn=ask),
    )
    agent.follow_up("later")

    def abort_at_end(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd):
            agent.steer("now")
            agent.abort()

    agent.subscribe(abort_at_end)
    await agent.prompt("go")

    assert (asked, len(scripted.requests)) == ([], 1)
    assert [len(agent.queued_steering), len(agent.queued_follow_ups)] == [2, 1]


@pytest.mark.parametrize(
    "kind", [AgentStart, TurnStart, MessageStart, MessageUpdate, MessageEnd, ToolExecutionStart, ToolExecutionEnd]
)
async def test_abort_in_the_body_of_a_watcher_never_cuts_the_body(
    kind: type[AgentEvent], autojump_clock: MockClock
) -> None:
    agent, _ = scripted_agent(Answer(text="ok", calls=[tool_call("work")]), "Done.", tools=[work])
    before = living()
    seen: list[AgentEvent] = []
    async with agent.run("go") as run:
        async for event in run:
            if isinstance(event, kind):
                run.abort()
                await trio.sleep(1)
            seen.append(event)

    check_events(seen)
    check_transcript(agent.messages)
    assert run.result.stop_reason == "aborted"
    assert living() == before


async def test_abort_at_the_last_event_changes_nothing() -> None:
    agent, _ = scripted_agent("Hello")
    agent.subscribe(lambda event: agent.abort() if isinstance(event, AgentEnd) else None)

    result = await agent.prompt("go")

    assert result.stop_reason == "stop"


async def test_after_an_abort_messages_that_were_taken_are_back_at_the_front(autojump_clock: MockClock) -> None:
    agent, _ = scripted_agent("One.", "Two.")
    agent.steering_mode = "all"
    for text in ("a", "b", "c"):
        agent.steer(text)

    def abort_at_a(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd) and event.message is first:
            agent.abort()

    first = agent.queued_steering[0]
    agent.subscribe(abort_at_a)
    await agent.prompt("go")

    assert spoken(agent) == ["user: go", "user: a", ABORTED]
    assert [message.content for message in agent.queued_steering] == ["b", "c"]  # type: ignore[union-attr]


async def test_continuing_puts_back_what_it_took_from_a_queue_when_it_is_stopped() -> None:
    agent, _ = scripted_agent("One.", "Two.")
    await agent.prompt("go")
    agent.steering_mode = "all"
    agent.steer("a")
    agent.steer("b")

    async def cancel_at_end(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            scope.cancel()
            await trio.lowlevel.checkpoint()

    agent.subscribe(cancel_at_end)
    with trio.CancelScope() as scope:
        await agent.continue_()

    assert spoken(agent) == ["user: go", "assistant[stop]: One.", "user: a"]
    assert [message.content for message in agent.queued_steering] == ["b"]  # type: ignore[union-attr]
