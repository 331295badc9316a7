"""Tools that call tools, and run_tool_call: the same steps, hooks and limits, and nothing in the transcript."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from loop_kit import plain_tool, play
from trio.testing import MockClock

from trio_agent import (
    BlockToolCall,
    Context,
    Hooks,
    JsonObject,
    TextContent,
    Tool,
    ToolCallDetails,
    ToolContext,
    ToolError,
    ToolOutcome,
    ToolResult,
    ToolResultDetails,
    ToolResultPatch,
)
from trio_agent.lowlevel import AbortHandle, LoopConfig, run_tool_call
from trio_agent.testing import Answer, Gate, ScriptedModel, tool_call


def caller(*inner: str, name: str = "outer", **options: Any) -> tuple[Tool, list[ToolOutcome]]:
    """A tool that calls others at the same time, and their outcomes in the order of the calls."""
    outcomes: dict[int, ToolOutcome] = {}
    result: list[ToolOutcome] = []

    async def execute(_arguments: JsonObject, ctx: ToolContext) -> str:
        async def call(number: int, inner_name: str) -> None:
            outcomes[number] = await ctx.call_tool(inner_name)

        async with trio.open_nursery() as nursery:
            for number, inner_name in enumerate(inner):
                nursery.start_soon(call, number, inner_name)
        result.extend(outcomes[number] for number in sorted(outcomes))
        return "outer done"

    return Tool(name=name, parameters={"type": "object"}, execute=execute, **options), result


def sleeper(name: str, seconds: float, **options: Any) -> Tool:
    async def execute(_arguments: JsonObject, _ctx: ToolContext) -> str:
        await trio.sleep(seconds)
        return name

    return Tool(name=name, parameters={"type": "object"}, execute=execute, **options)


def text(outcome: ToolOutcome) -> str:
    assert isinstance(outcome.result.content, tuple)
    return "".join(getattr(block, "text", "") for block in outcome.result.content)


def config(**settings: Any) -> LoopConfig:
    return LoopConfig(model=ScriptedModel().model, **settings)


ONE_CALL = Answer(calls=[tool_call("outer", "c1")])


# -- ctx.call_tool -----------------------------------------------------------------------------------------------------


async def test_a_nested_call_sends_no_event_and_adds_no_message() -> None:
    outer, outcomes = caller("inner")

    seen = await play([ONE_CALL, "Done."], tools=[outer, plain_tool("inner", "found")])

    assert [text(outcome) for outcome in outcomes] == ["found"]
    assert [line for line in seen.outline if line.startswith(("start", "end"))] == ["start c1", "end c1"]
    assert seen.transcript[2:] == ["assistant[toolUse]: outer(c1)", "result c1: outer done", "assistant[stop]: Done."]


async def test_a_nested_call_goes_through_the_hooks_of_the_run() -> None:
    outer, outcomes = caller("inner")
    asked: list[str] = []

    async def before_tool_call(details: ToolCallDetails) -> None:
        asked.append(f"before {details.tool_call.name} {details.tool_call.id}")

    async def after_tool_call(details: ToolResultDetails) -> ToolResultPatch | None:
        asked.append(f"after {details.tool_call.name} {details.tool_call.id}")
        return ToolResultPatch(content="checked") if details.tool_call.name == "inner" else None

    await play(
        [ONE_CALL, "Done."],
        tools=[outer, plain_tool("inner")],
        hooks=Hooks(before_tool_call=before_tool_call, after_tool_call=after_tool_call),
    )

    assert asked == ["before outer c1", "before inner c1.1", "after inner c1.1", "after outer c1"]
    assert [text(outcome) for outcome in outcomes] == ["checked"]


async def test_whatever_goes_wrong_in_a_nested_call_is_in_its_outcome(autojump_clock: MockClock) -> None:
    outer, outcomes = caller("nothing", "rude", "polite", "blocked", "slow")

    async def before_tool_call(details: ToolCallDetails) -> BlockToolCall | None:
        return BlockToolCall("no") if details.tool_call.name == "blocked" else None

    await play(
        [ONE_CALL, "Done."],
        tools=[
            outer,
            plain_tool("rude", ZeroDivisionError("by zero")),
            plain_tool("polite", ToolError("try another file")),
            plain_tool("blocked"),
            sleeper("slow", 60, timeout=5),
        ],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    assert [(outcome.is_error, text(outcome)) for outcome in outcomes] == [
        (True, "Tool nothing not found"),
        (True, "by zero"),
        (True, "try another file"),
        (True, "no"),
        (True, 'Tool "slow" timed out after 5 s'),
    ]


@pytest.mark.parametrize(("slots", "seconds"), [(1, 30), (2, 20), (3, 10), (None, 10)])
async def test_nested_calls_share_the_limiter_and_the_parent_lends_its_slot(
    slots: int | None, seconds: int, autojump_clock: MockClock
) -> None:
    outer, outcomes = caller("inner", "inner", "inner")
    limiter = None if slots is None else trio.CapacityLimiter(slots)

    await play([ONE_CALL, "Done."], tools=[outer, sleeper("inner", 10)], limiter=limiter)

    assert trio.current_time() == seconds
    assert len(outcomes) == 3
    assert limiter is None or limiter.borrowed_tokens == 0


async def test_a_nested_call_may_nest_further_under_one_slot(autojump_clock: MockClock) -> None:
    outer, outcomes = caller("middle")
    middle, inner_outcomes = caller("inner", "inner", name="middle")

    await play([ONE_CALL, "Done."], tools=[outer, middle, sleeper("inner", 5)], limiter=trio.CapacityLimiter(1))

    assert [text(outcome) for outcome in outcomes] == ["outer done"]
    assert [text(outcome) for outcome in inner_outcomes] == ["inner", "inner"]
    assert trio.current_time() == 10


async def test_a_nested_call_under_a_limiter_of_its_own_waits_for_that(autojump_clock: MockClock) -> None:
    outer, _ = caller("inner", "inner", "inner")

    await play([ONE_CALL, "Done."], tools=[outer, sleeper("inner", 10, limiter=trio.CapacityLimiter(1))])

    assert trio.current_time() == 30


async def test_updates_of_a_nested_call_go_to_its_caller_only_and_only_if_it_asks() -> None:
    reported: list[ToolResult] = []

    async def execute_inner(_arguments: JsonObject, ctx: ToolContext) -> str:
        await ctx.update("half")
        return "inner"

    async def execute_outer(_arguments: JsonObject, ctx: ToolContext) -> str:
        await ctx.call_tool("inner", on_update=reported.append)
        await ctx.call_tool("inner")
        await ctx.update("mine")
        return "outer"

    seen = await play(
        [ONE_CALL, "Done."],
        tools=[
            Tool(name="outer", parameters={"type": "object"}, execute=execute_outer),
            Tool(name="inner", parameters={"type": "object"}, execute=execute_inner),
        ],
    )

    assert [result.content for result in reported] == [(TextContent(text="half"),)]
    assert [line for line in seen.outline if line.startswith("update")] == ["update c1: mine"]


async def test_terminate_of_a_nested_call_is_the_callers_to_use() -> None:
    outer, outcomes = caller("inner")

    seen = await play([ONE_CALL, "Done."], tools=[outer, plain_tool("inner", ToolResult("x", terminate=True))])

    assert [outcome.result.terminate for outcome in outcomes] == [True]
    assert seen.transcript[-1] == "assistant[stop]: Done."


# -- run_tool_call -----------------------------------------------------------------------------------------------------


async def test_one_call_can_be_run_without_a_loop() -> None:
    outcome = await run_tool_call(tool_call("work", "c1"), Context((), (plain_tool("work"),)), config())

    assert (text(outcome), outcome.is_error) == ("ok", False)


async def test_one_call_goes_through_hooks_and_validation() -> None:
    async def before_tool_call(details: ToolCallDetails) -> None:
        assert details.assistant_message.tool_calls == ()

    async def after_tool_call(details: ToolResultDetails) -> ToolResultPatch:
        return ToolResultPatch(content=f"{details.tool_call.id}, checked")

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def execute(_arguments: JsonObject, _ctx: ToolContext) -> str:
        return "ok"

    context = Context((), (Tool(name="work", parameters=schema, execute=execute),))
    hooked = config(hooks=Hooks(before_tool_call=before_tool_call, after_tool_call=after_tool_call))

    good = await run_tool_call(tool_call("work", "c1", n=1), context, hooked)
    bad = await run_tool_call(tool_call("work", "c2"), context, hooked)

    assert (text(good), good.is_error) == ("c1, checked", False)
    assert bad.is_error
    assert bad.duration_ms is None


async def test_one_call_keeps_to_limits(autojump_clock: MockClock) -> None:
    limited = config(limiter=trio.CapacityLimiter(1), tool_timeout=4)
    context = Context((), (sleeper("slow", 60), sleeper("fast", 3)))
    outcomes: list[str] = []

    async def run(name: str) -> None:
        outcomes.append(text(await run_tool_call(tool_call(name, name), context, limited)))

    async with trio.open_nursery() as nursery:
        for name in ("fast", "fast", "slow"):
            nursery.start_soon(run, name)

    assert sorted(outcomes) == ['Tool "slow" timed out after 4 s', "fast", "fast"]
    assert trio.current_time() == 10


async def test_one_call_is_stopped_by_an_abort_in_order() -> None:
    gate = Gate()
    abort = AbortHandle()
    outcomes: list[ToolOutcome] = []

    async def run() -> None:
        outcomes.append(await run_tool_call(tool_call("gate", "c1"), Context((), (gate.tool,)), config(), abort=abort))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await gate.wait_entered()
        abort.abort()

    assert [(text(outcome), outcome.is_error) for outcome in outcomes] == [("Operation aborted", True)]
    assert gate.cancelled == ["c1"]


async def test_one_call_after_an_abort_asks_nobody() -> None:
    abort = AbortHandle()
    abort.abort()
    asked: list[object] = []

    async def before_tool_call(details: ToolCallDetails) -> None:
        asked.append(details)

    outcome = await run_tool_call(
        tool_call("work", "c1"),
        Context((), (plain_tool("work"),)),
        config(hooks=Hooks(before_tool_call=before_tool_call)),
        abort=abort,
    )

    assert asked == []
    assert (text(outcome), outcome.is_error) == ("Operation aborted", True)
