"""Batches of tool calls: which calls run together, in which order they are reported, and what a hook may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from loop_kit import plain_tool, play, shorts, user
from trio.testing import MockClock

from trio_agent import (
    UNSET,
    AgentEvent,
    BlockToolCall,
    Context,
    Hooks,
    JsonObject,
    ReplaceArguments,
    Tool,
    ToolCallDetails,
    ToolContext,
    ToolExecutionEnd,
    ToolResult,
    ToolResultDetails,
    ToolResultPatch,
)
from trio_agent.lowlevel import LoopConfig, run_agent_loop
from trio_agent.testing import Answer, ScriptedModel, tool_call

Log = list[str]
ToolMaker = Callable[..., Tool]


@pytest.fixture
def log() -> Log:
    return []


@pytest.fixture
def timed(log: Log) -> ToolMaker:
    """Makes tools that take a number of seconds and note, with the time, when their body begins and ends."""

    def make(name: str, seconds: float, **options: Any) -> Tool:
        async def execute(_arguments: JsonObject, ctx: ToolContext) -> str:
            log.append(f"{trio.current_time():g} {ctx.tool_call_id} begins")
            await trio.sleep(seconds)
            log.append(f"{trio.current_time():g} {ctx.tool_call_id} ends")
            return name

        return Tool(name=name, parameters={"type": "object"}, execute=execute, **options)

    return make


def calls(*names: str) -> Answer:
    """An answer that calls these tools, with the ids c1, c2, ..."""
    return Answer(calls=[tool_call(name, f"c{number}") for number, name in enumerate(names, 1)])


def ends(events: list[Any]) -> list[str]:
    return [event.tool_call_id for event in events if isinstance(event, ToolExecutionEnd)]


# -- what runs together ------------------------------------------------------------------------------------------------


async def test_calls_run_together_and_end_as_they_end_and_are_recorded_in_source_order(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    seen = await play([calls("slow", "fast"), "Done."], tools=[timed("slow", 2), timed("fast", 1)])

    assert [sorted(log[:2]), log[2:]] == [["0 c1 begins", "0 c2 begins"], ["1 c2 ends", "2 c1 ends"]]
    assert ends(seen.events) == ["c2", "c1"]
    assert seen.transcript[3:5] == ["result c1: slow", "result c2: fast"]


async def test_calls_that_end_at_the_same_moment_end_in_source_order(
    timed: ToolMaker, autojump_clock: MockClock
) -> None:
    names = [f"t{number}" for number in range(20)]

    seen = await play([calls(*names), "Done."], tools=[timed(name, 1) for name in names])

    assert ends(seen.events) == [f"c{number}" for number in range(1, 21)]


async def test_calls_that_end_while_a_handler_is_busy_are_reported_as_they_ended(
    timed: ToolMaker, autojump_clock: MockClock
) -> None:
    tools = [timed("slow", 3), timed("medium", 2), timed("fast", 1)]
    scripted = ScriptedModel([calls("slow", "medium", "fast"), "Done."])
    ended: list[str] = []

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            ended.append(event.tool_call_id)
            await trio.sleep(10)

    await run_agent_loop([user("go")], Context((), tools), LoopConfig(model=scripted.model), emit, scripted)

    assert ended == ["c3", "c2", "c1"]


async def test_an_exclusive_call_runs_alone_while_the_others_stay_parallel(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    tools = [timed("read", 2), timed("look", 1), timed("write", 1, execution_mode="exclusive")]

    seen = await play([calls("read", "look", "write", "read", "look"), "Done."], tools=tools)

    # What happens at one instant in parallel calls has no order.
    assert [sorted(log[0:2]), log[2:4], log[4:6], sorted(log[6:8]), log[8:]] == [
        ["0 c1 begins", "0 c2 begins"],
        ["1 c2 ends", "2 c1 ends"],
        ["2 c3 begins", "3 c3 ends"],
        ["3 c4 begins", "3 c5 begins"],
        ["4 c5 ends", "5 c4 ends"],
    ]
    assert ends(seen.events) == ["c2", "c1", "c3", "c5", "c4"]


async def test_exclusive_calls_run_one_after_the_other(log: Log, timed: ToolMaker, autojump_clock: MockClock) -> None:
    await play([calls("write", "write"), "Done."], tools=[timed("write", 1, execution_mode="exclusive")])

    assert log == ["0 c1 begins", "1 c1 ends", "1 c2 begins", "2 c2 ends"]


async def test_an_exclusive_call_is_prepared_with_its_batch(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    async def before_tool_call(details: ToolCallDetails) -> None:
        log.append(f"{trio.current_time():g} {details.tool_call.id} prepared")

    await play(
        [calls("read", "write"), "Done."],
        tools=[timed("read", 1), timed("write", 1, execution_mode="exclusive")],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    assert log == [
        "0 c1 prepared",
        "0 c2 prepared",
        "0 c1 begins",
        "1 c1 ends",
        "1 c2 begins",
        "2 c2 ends",
    ]


async def test_a_call_that_was_not_run_does_not_separate_the_others(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    async def before_tool_call(details: ToolCallDetails) -> BlockToolCall | None:
        return BlockToolCall("not now") if details.tool_call.name == "write" else None

    await play(
        [calls("read", "write", "read"), "Done."],
        tools=[timed("read", 1), timed("write", 1, execution_mode="exclusive")],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    assert sorted(log) == ["0 c1 begins", "0 c3 begins", "1 c1 ends", "1 c3 ends"]


async def test_one_sequential_tool_makes_its_batch_sequential(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    await play(
        [calls("read", "ask", "read"), "Done."],
        tools=[timed("read", 1), timed("ask", 1, execution_mode="sequential")],
    )

    assert log == [
        "0 c1 begins",
        "1 c1 ends",
        "1 c2 begins",
        "2 c2 ends",
        "2 c3 begins",
        "3 c3 ends",
    ]


async def test_a_sequential_batch_records_each_result_before_the_next_call_starts(
    timed: ToolMaker, autojump_clock: MockClock
) -> None:
    seen = await play([calls("read", "read"), "Done."], tools=[timed("read", 1)], tool_execution="sequential")

    assert seen.outline[8:16] == [
        "start c1",
        "end c1",
        "> result c1: read",
        "< result c1: read",
        "start c2",
        "end c2",
        "> result c2: read",
        "< result c2: read",
    ]


async def test_hooks_of_a_sequential_batch_see_the_earlier_results() -> None:
    contexts: list[list[str]] = []

    async def before_tool_call(details: ToolCallDetails) -> None:
        contexts.append(shorts(details.context.messages)[3:])

    await play(
        [calls("work", "work"), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(before_tool_call=before_tool_call),
        tool_execution="sequential",
    )

    assert contexts == [[], ["result c1: ok"]]


async def test_no_body_begins_before_the_last_preparation_of_a_parallel_batch(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    async def before_tool_call(details: ToolCallDetails) -> None:
        await trio.sleep(1)
        log.append(f"{trio.current_time():g} {details.tool_call.id} prepared")

    await play(
        [calls("read", "read"), "Done."], tools=[timed("read", 1)], hooks=Hooks(before_tool_call=before_tool_call)
    )

    assert log[:2] == ["1 c1 prepared", "2 c2 prepared"]
    assert sorted(log[2:]) == ["2 c1 begins", "2 c2 begins", "3 c1 ends", "3 c2 ends"]


async def test_a_call_that_fails_in_preparation_ends_before_the_next_one_starts() -> None:
    seen = await play([calls("nothing", "work"), "Done."], tools=[plain_tool("work")])

    assert [line for line in seen.outline if line.split()[0] in {"start", "end"}] == [
        "start c1",
        "end c1",
        "start c2",
        "end c2",
    ]
    assert seen.transcript[3:5] == ["error c1: Tool nothing not found", "result c2: ok"]


async def test_a_limiter_bounds_how_many_bodies_run_at_once(timed: ToolMaker, autojump_clock: MockClock) -> None:
    await play([calls(*["read"] * 10), "Done."], tools=[timed("read", 10)], limiter=trio.CapacityLimiter(4))

    assert trio.current_time() == 30


@pytest.mark.parametrize("own", [2, 8])
async def test_the_timeout_of_a_tool_wins_over_that_of_the_run(
    own: float, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    seen = await play([calls("slow"), "Done."], tools=[timed("slow", 60, timeout=own)], tool_timeout=5)

    assert seen.transcript[3] == f'error c1: Tool "slow" timed out after {own} s'
    assert trio.current_time() == own


async def test_the_timeout_of_the_run_is_for_tools_without_one(timed: ToolMaker, autojump_clock: MockClock) -> None:
    seen = await play([calls("slow"), "Done."], tools=[timed("slow", 60)], tool_timeout=5)

    assert seen.transcript[3] == 'error c1: Tool "slow" timed out after 5 s'


# -- hooks -------------------------------------------------------------------------------------------------------------


async def test_a_blocked_call_gets_the_reason_and_is_not_run(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    async def before_tool_call(_details: ToolCallDetails) -> BlockToolCall:
        return BlockToolCall("the user said no", terminate=True)

    seen = await play([calls("work")], tools=[timed("work", 1)], hooks=Hooks(before_tool_call=before_tool_call))

    assert log == []
    assert seen.transcript[-1] == "error c1: the user said no"


async def test_replaced_arguments_are_validated_like_those_of_the_model() -> None:
    got: list[JsonObject] = []

    async def execute(arguments: JsonObject, _ctx: ToolContext) -> str:
        got.append(arguments)
        return "ok"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    replacements = iter([ReplaceArguments({"n": 2}), ReplaceArguments({"m": 2})])

    async def before_tool_call(_details: ToolCallDetails) -> ReplaceArguments:
        return next(replacements)

    seen = await play(
        [Answer(calls=[tool_call("work", "c1", n=1), tool_call("work", "c2", n=1)]), "Done."],
        tools=[Tool(name="work", parameters=schema, execute=execute)],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    assert got == [{"n": 2}]
    assert seen.transcript[3] == "result c1: ok"
    assert seen.transcript[4].startswith("error c2: ")


async def _unreachable(_details: object) -> Any:
    raise RuntimeError("policy server unreachable")


@pytest.mark.parametrize("hooks", [Hooks(before_tool_call=_unreachable), Hooks(after_tool_call=_unreachable)])
async def test_a_failing_tool_hook_makes_an_error_result_and_hides_the_real_one(hooks: Hooks) -> None:
    seen = await play([calls("work"), "Done."], tools=[plain_tool("work", "secret")], hooks=hooks)

    assert seen.transcript[3] == "error c1: policy server unreachable"


async def test_a_decision_of_an_unknown_kind_keeps_the_tool_from_running(
    log: Log, timed: ToolMaker, autojump_clock: MockClock
) -> None:
    async def before_tool_call(_details: ToolCallDetails) -> Any:
        return False

    seen = await play(
        [calls("work"), "Done."], tools=[timed("work", 1)], hooks=Hooks(before_tool_call=before_tool_call)
    )

    assert log == []
    assert seen.transcript[3].startswith("error c1: before_tool_call returned False")


async def test_the_hook_after_a_call_replaces_fields_whole_and_leaves_the_others() -> None:
    async def after_tool_call(details: ToolResultDetails) -> ToolResultPatch:
        assert (details.tool_call.id, details.is_error) == ("c1", False)
        return ToolResultPatch(details={"b": 2}, is_error=True)

    seen = await play(
        [calls("work"), "Done."],
        tools=[plain_tool("work", ToolResult("text", details={"a": 1}, structured_content={"x": 1}))],
        hooks=Hooks(after_tool_call=after_tool_call),
    )

    (end,) = [event for event in seen.events if isinstance(event, ToolExecutionEnd)]
    assert (end.result.details, end.result.structured_content, end.is_error) == ({"b": 2}, {"x": 1}, True)
    assert seen.transcript[3] == "error c1: text"


async def test_new_content_drops_structured_content_that_does_not_come_with_it() -> None:
    patches = iter([ToolResultPatch(content="a"), ToolResultPatch(content="b", structured_content={"y": 2})])

    async def after_tool_call(_details: ToolResultDetails) -> ToolResultPatch:
        return next(patches)

    seen = await play(
        [calls("work", "work"), "Done."],
        tools=[plain_tool("work", ToolResult("text", structured_content={"x": 1}))],
        hooks=Hooks(after_tool_call=after_tool_call),
        tool_execution="sequential",
    )

    found = [e.result.structured_content for e in seen.events if isinstance(e, ToolExecutionEnd)]
    assert found == [UNSET, {"y": 2}]


async def test_the_hook_after_a_call_is_not_asked_about_a_call_that_did_not_run() -> None:
    asked: list[str] = []

    async def after_tool_call(details: ToolResultDetails) -> None:
        asked.append(details.tool_call.id)

    await play(
        [calls("nothing", "work"), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(after_tool_call=after_tool_call),
    )

    assert asked == ["c2"]


async def test_hooks_cannot_change_the_arguments_in_place() -> None:
    got: list[JsonObject] = []

    async def execute(arguments: JsonObject, _ctx: ToolContext) -> str:
        got.append(dict(arguments))
        arguments["n"] = "changed by the tool"
        return "ok"

    async def before_tool_call(details: ToolCallDetails) -> None:
        details.arguments["n"] = "changed by the hook"

    seen = await play(
        [Answer(calls=[tool_call("work", "c1", n=1)]), "Done."],
        tools=[Tool(name="work", parameters={"type": "object"}, execute=execute)],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    assert got == [{"n": 1}]
    assert seen.messages[2].tool_calls[0].arguments == {"n": 1}  # type: ignore[union-attr]
