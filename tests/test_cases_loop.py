"""Field reports about loops and agents (cases of kind b), each as a test that bears its id.

Not here, because they are about requests to a provider: B46 (ids), B49 (thinking of another model), B61 (Retry-After),
and the halves of B44, B47, B50 and B62 that look at what is sent.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Awaitable, Callable

import msgspec
import pytest
import trio
from loop_kit import assistant, outline, plain_tool, scripted_agent, short, shorts, spoken, user
from trio.testing import wait_all_tasks_blocked

from trio_agent import (
    AgentBusyError,
    AgentEnd,
    AgentEvent,
    AgentMessage,
    JsonObject,
    MessageCodec,
    MessageEnd,
    Tool,
    ToolContext,
    ToolDefinitionError,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    ToolResult,
    ToolResultMessage,
    TranscriptError,
    TurnEnd,
    tool,
)
from trio_agent.testing import Answer, Gate, check_transcript, record, tool_call


def one_call(name: str, call_id: str = "c1") -> Answer:
    return Answer(calls=[tool_call(name, call_id)])


def custom(name: str, execute: Callable[[JsonObject, ToolContext], Awaitable[object]]) -> Tool:
    return Tool(name=name, parameters={"type": "object"}, execute=execute)


async def test_b44_an_abort_during_the_second_call_leaves_a_result_for_each() -> None:
    gate = Gate("second")
    agent, _ = scripted_agent(
        Answer(text="Reading", calls=[tool_call("first", "call_a"), tool_call("second", "call_b")]),
        "Continued.",
        tools=[plain_tool("first"), gate.tool],
    )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await gate.wait_entered()
        await wait_all_tasks_blocked()
        agent.abort()

    assert spoken(agent)[1:4] == [
        "assistant[toolUse]: Reading first(call_a) second(call_b)",
        "result call_a: ok",
        "error call_b: Operation aborted",
    ]
    check_transcript(agent.messages)

    await agent.prompt("continue please")
    assert spoken(agent)[-2:] == ["user: continue please", "assistant[stop]: Continued."]
    check_transcript(agent.messages)


async def test_b44_a_crash_during_a_call_leaves_a_result_for_each() -> None:
    gate = Gate("second")
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("first", "call_a"), tool_call("second", "call_b")]),
        tools=[plain_tool("first"), gate.tool],
    )

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "go")
            await gate.wait_entered()
            await wait_all_tasks_blocked()
            scope.cancel()

    assert spoken(agent)[2:] == ["result call_a: ok", "error call_b: Operation aborted"]
    check_transcript(agent.messages)


async def test_b47_an_id_used_again_in_a_later_turn_gets_its_own_result() -> None:
    results = iter(["one", "two"])

    async def read(_arguments: JsonObject, _ctx: ToolContext) -> str:
        return next(results)

    agent, _ = scripted_agent(one_call("read", "f:0"), one_call("read", "f:0"), "done", tools=[custom("read", read)])
    with record(agent) as events:
        await agent.prompt("1")

    assert spoken(agent)[1:] == [
        "assistant[toolUse]: read(f:0)",
        "result f:0: one",
        "assistant[toolUse]: read(f:0)",
        "result f:0: two",
        "assistant[stop]: done",
    ]
    assert [line for line in outline(events) if line in {"start f:0", "end f:0"}] == ["start f:0", "end f:0"] * 2
    check_transcript(agent.messages)


async def test_b50_output_and_text_that_are_no_unicode_do_not_stop_a_run() -> None:
    output = base64.b64decode("SGVsbG8g7aCAIP8gV29ybGQg8J+mgA==")
    text = json.loads('"emoji \\ud83e\\udd80 bad \\ud83e end"')

    @tool
    async def as_bytes() -> bytes:
        return output

    @tool
    async def as_text() -> str:
        return output.decode(errors="surrogateescape")

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("as_bytes", "c1"), tool_call("as_text", "c2")]),
        "One.",
        "Two.",
        "Three.",
        tools=[as_bytes, as_text],
    )
    agent.steer(text)
    agent.follow_up(text)
    await agent.prompt(text)

    seen = MessageCodec().encode_list(list(agent.messages)).decode()
    assert seen.count("emoji 🦀 bad \N{REPLACEMENT CHARACTER} end") == 3
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [(r.is_error, r.text.startswith("Hello "), r.text.endswith(" World 🦀")) for r in results] == [
        (False, True, True)
    ] * 2
    assert short(agent.messages[-1]) == "assistant[stop]: Two."


async def test_b52_continue_delivers_what_is_queued_one_message_a_turn() -> None:
    agent, scripted = scripted_agent("1", "2", "3", messages=[user("a"), assistant("x")])
    agent.follow_up("F1")
    agent.steer("S1")
    agent.steer("S2")

    result = await agent.continue_()

    assert shorts(result.messages) == [
        "user: S1",
        "assistant[stop]: 1",
        "user: S2",
        "assistant[stop]: 2",
        "user: F1",
        "assistant[stop]: 3",
    ]
    assert agent.queued() == ()
    scripted.assert_exhausted()
    with pytest.raises(TranscriptError, match="nothing to answer"):
        await agent.continue_()


async def test_b53_a_listener_that_raises_loses_no_result_and_no_event_of_the_others() -> None:
    # The error ends the run and reaches the caller, on purpose; the conversation can go on from there.
    agent, _ = scripted_agent(one_call("count"), "done", tools=[plain_tool("count", "n=1")])
    failures = 0

    def first(event: AgentEvent) -> None:
        nonlocal failures
        if isinstance(event, ToolExecutionEnd) or (
            isinstance(event, MessageEnd) and isinstance(event.message, ToolResultMessage)
        ):
            failures += 1
            raise OSError(f"the log is full ({failures})")

    subscription = agent.subscribe(first)
    with record(agent) as events, pytest.raises(OSError, match=r"the log is full \(1\)"):
        await agent.prompt("go")

    assert outline(events)[-7:] == [
        "< assistant[toolUse]: count(c1)",
        "start c1",
        "end c1",
        "> result c1: n=1",
        "< result c1: n=1",
        "turn_end toolUse 1",
        "agent_end 3",
    ]
    assert sum(isinstance(event, AgentEnd) for event in events) == 1
    assert spoken(agent)[-1] == "result c1: n=1"

    subscription.close()
    assert (await agent.continue_()).text == "done"


async def test_b55_updates_after_the_tool_has_returned_are_ignored_and_do_not_raise() -> None:
    kept: list[ToolContext] = []

    async def leaky(_arguments: JsonObject, ctx: ToolContext) -> str:
        kept.append(ctx)
        return "ok"

    agent, _ = scripted_agent(one_call("leaky"), "done", tools=[custom("leaky", leaky)])

    async def late(event: AgentEvent) -> None:
        if kept and not isinstance(event, ToolExecutionUpdate):
            await kept[0].update("late")

    agent.subscribe(late)
    with record(agent) as events:
        result = await agent.prompt("go")
        await kept[0].update("after the end")

    assert result.text == "done"
    assert not any(isinstance(event, ToolExecutionUpdate) for event in events)
    assert isinstance(events[-1], AgentEnd)


async def test_b56_a_handler_that_calls_back_gets_an_error_and_no_deadlock_and_its_follow_up_is_delivered() -> None:
    agent, scripted = scripted_agent("one", "two")
    refused: list[str] = []

    async def handler(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd) and len(scripted.requests) == 1:
            agent.follow_up("F")
        if isinstance(event, AgentEnd):
            for call in (lambda: agent.prompt("x"), agent.wait_idle):
                try:
                    await call()
                except AgentBusyError:
                    refused.append("refused")

    agent.subscribe(handler)
    await agent.prompt("go")

    assert refused == ["refused", "refused"]
    assert spoken(agent) == ["user: go", "assistant[stop]: one", "user: F", "assistant[stop]: two"]


async def test_b58_tools_that_never_return_or_swallow_the_cancellation_do_not_hold_up_an_abort() -> None:
    released = threading.Event()
    entered: list[str] = []
    all_entered = trio.Event()

    def enter(name: str) -> None:
        entered.append(name)
        if len(entered) == 3:
            all_entered.set()

    async def sleeps(_arguments: JsonObject, _ctx: ToolContext) -> None:
        enter("sleeps")
        await trio.sleep_forever()

    @tool
    def blocks() -> None:
        """Blocks its thread until the test is over."""
        trio.from_thread.run_sync(enter, "blocks")
        released.wait()

    async def swallows(_arguments: JsonObject, _ctx: ToolContext) -> str:
        enter("swallows")
        for _ in range(10):
            try:
                await trio.sleep_forever()
            except BaseException:  # noqa: BLE001, S112, ASYNC103  # what the tool does wrong is the case
                continue  # noqa: ASYNC104
        return "finished all the same"

    agent, _ = scripted_agent(
        Answer(calls=[tool_call("sleeps", "c1"), tool_call("blocks", "c2"), tool_call("swallows", "c3")]),
        "Next.",
        tools=[custom("sleeps", sleeps), blocks, custom("swallows", swallows)],
    )
    ended = trio.Event()

    async def run() -> None:
        result = await agent.prompt("go")
        assert result.stop_reason == "aborted"
        ended.set()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await all_entered.wait()
            agent.abort()
            await ended.wait()
    finally:
        released.set()

    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [message.tool_call_id for message in results] == ["c1", "c2", "c3"]
    assert results[0].text == "Operation aborted"
    assert results[2].text == "finished all the same"
    check_transcript(agent.messages)
    assert (await agent.prompt("next")).text == "Next."


async def test_b59_odd_results_and_unknown_tools_do_not_end_a_run() -> None:
    agent, _ = scripted_agent(
        Answer(
            calls=[
                tool_call("none", "c1"),
                tool_call("text", "c2"),
                tool_call("no_such_tool", "c3"),
                tool_call("odd_details", "c4"),
                tool_call("huge", "c5"),
            ]
        ),
        "done",
        tools=[
            plain_tool("none", None),
            plain_tool("text", "x"),
            plain_tool("odd_details", ToolResult("ok", details=object())),
            plain_tool("huge", "line\n" * 1_000_000),
        ],
    )

    result = await agent.prompt("go")

    *short_results, huge = [message for message in result.messages if isinstance(message, ToolResultMessage)]
    assert shorts(short_results) == [
        "result c1: (no output)",
        "result c2: x",
        "error c3: Tool no_such_tool not found",
        "result c4: ok",
    ]
    assert len(huge.text) < 100_000
    assert "truncated" in huge.text
    assert result.text == "done"
    msgspec.json.encode(list[AgentMessage](result.messages))


@pytest.mark.parametrize("name", ["files.read", "files/read", "Docker file scanner", "x" * 70, "lesen_ä", ""])
def test_b62_a_name_that_providers_refuse_is_refused_where_the_tool_is_made(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="is no name for a tool"):
        plain_tool(name)
