"""Rules of the loop that end a run or demand another request."""

from __future__ import annotations

from typing import Any

import pytest
from loop_kit import deciding, done, outline, plain_tool, play, polls, short, shorts, user

from trio_agent import (
    Context,
    Hooks,
    ToolResultPatch,
    TurnDecision,
    TurnDetails,
)
from trio_agent.lowlevel import AbortHandle, LoopConfig, run_agent_loop
from trio_agent.testing import Answer, ScriptedModel, tool_call


async def test_should_stop_after_turn_ends_the_run_before_any_queue_is_polled() -> None:
    calls: list[str] = []
    turns: list[list[str]] = []
    hooks = polls(calls)

    async def should_stop_after_turn(details: TurnDetails) -> bool:
        turns.append([short(details.message), *shorts(details.tool_results)])
        return True

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")])],
        tools=[plain_tool("work")],
        hooks=Hooks(
            get_steering_messages=hooks.get_steering_messages,
            get_follow_up_messages=hooks.get_follow_up_messages,
            should_stop_after_turn=should_stop_after_turn,
        ),
    )

    assert turns == [["assistant[toolUse]: work(c1)", "result c1: ok"]]
    assert calls == ["steering"]  # the poll before the first request
    assert seen.outline[-2:] == ["turn_end toolUse 1", "agent_end 4"]


async def test_should_stop_after_turn_is_asked_after_the_turn_has_ended() -> None:
    events: list[Any] = []
    last: list[str] = []

    async def should_stop_after_turn(_details: TurnDetails) -> bool:
        last.append(outline(events)[-1])
        return False

    scripted = ScriptedModel(["Done."])
    await run_agent_loop(
        [user("go")],
        Context(),
        LoopConfig(model=scripted.model, hooks=Hooks(should_stop_after_turn=should_stop_after_turn)),
        events.append,
        scripted,
    )

    assert last == ["turn_end stop 0"]


async def test_should_stop_after_turn_overrules_continue() -> None:
    async def finish_turn(_details: TurnDetails) -> TurnDecision:
        return "continue"

    async def should_stop_after_turn(details: TurnDetails) -> bool:
        return len(details.new_messages) > 2

    seen = await play(
        ["One.", "Two."], hooks=Hooks(finish_turn=finish_turn, should_stop_after_turn=should_stop_after_turn)
    )

    assert seen.transcript == ["user: go", "assistant[stop]: One.", "assistant[stop]: Two."]


async def test_end_stops_before_any_queue_is_polled_although_results_wait() -> None:
    calls: list[str] = []
    hooks = polls(calls)

    async def finish_turn(_details: TurnDetails) -> TurnDecision:
        return "end"

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")])],
        tools=[plain_tool("work")],
        hooks=Hooks(
            finish_turn=finish_turn,
            should_stop_after_turn=hooks.should_stop_after_turn,
            get_steering_messages=hooks.get_steering_messages,
            get_follow_up_messages=hooks.get_follow_up_messages,
        ),
    )

    assert calls == ["steering"]
    assert seen.transcript[-1] == "result c1: ok"


async def test_continue_makes_one_more_request_without_a_message() -> None:
    seen = await play(["One.", "Two."], hooks=deciding("continue", None))

    assert seen.requests == [["user: go"], ["user: go", "assistant[stop]: One."]]


async def test_continue_is_satisfied_by_the_request_that_tools_cause() -> None:
    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=deciding("continue", None),
    )

    assert len(seen.requests) == 2


async def test_continue_overrules_terminate() -> None:
    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work", done())],
        hooks=deciding("continue", None),
    )

    assert seen.transcript[-1] == "assistant[stop]: Done."


async def test_continue_takes_a_follow_up_along() -> None:
    calls: list[str] = []
    hooks = polls(calls, follow_ups={1: "follow"})
    decisions = iter(["continue", None])

    async def finish_turn(_details: TurnDetails) -> TurnDecision:
        decision: Any = next(decisions)
        return decision  # type: ignore[no-any-return]

    seen = await play(
        ["One.", "Two."],
        hooks=Hooks(finish_turn=finish_turn, get_follow_up_messages=hooks.get_follow_up_messages),
    )

    assert seen.requests[1] == ["user: go", "assistant[stop]: One.", "user: follow"]


@pytest.mark.parametrize("decision", ["end", "continue", None])
async def test_a_decision_of_a_turn_that_was_aborted_is_ignored(decision: TurnDecision) -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")])])
    abort = AbortHandle()
    asked: list[str] = []

    async def finish_turn(details: TurnDetails) -> TurnDecision:
        asked.append(details.message.stop_reason)
        abort.abort()
        return decision

    added = await run_agent_loop(
        [user("go")],
        Context((), (plain_tool("work"),)),
        LoopConfig(model=scripted.model, hooks=Hooks(finish_turn=finish_turn)),
        lambda _event: None,
        scripted,
        abort=abort,
    )

    # The results still wait for an answer, so a turn without content closes the run.
    assert shorts(added)[-2:] == ["result c1: ok", "assistant[aborted]: "]
    assert asked == ["toolUse", "aborted"]


async def test_another_decision_than_the_three_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match=r"finish_turn returned 'stop'; return 'end', 'continue' or None"):
        await play(["Done."], hooks=deciding("stop"))


@pytest.mark.parametrize(("limit", "answers"), [(1, 1), (2, 2), (5, 3)])
async def test_max_turns_ends_the_run_after_that_many_turns(limit: int, answers: int) -> None:
    script = [Answer(calls=[tool_call("work", "c1")]), Answer(calls=[tool_call("work", "c2")]), "Done."]

    seen = await play(script[:answers], tools=[plain_tool("work")], max_turns=limit)

    assert seen.outline.count("turn_start") == answers


async def test_max_turns_polls_no_queue_after_the_last_turn() -> None:
    calls: list[str] = []

    await play([Answer(calls=[tool_call("work", "c1")])], tools=[plain_tool("work")], hooks=polls(calls), max_turns=1)

    assert calls == ["steering", "prepare_request", "finish_turn"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_bound_of_zero_turns_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="max_turns must be more than 0"):
        LoopConfig(model=ScriptedModel().model, max_turns=limit)


# -- terminate ---------------------------------------------------------------------------------------------------------


async def test_no_request_follows_when_every_result_terminates() -> None:
    seen = await play(
        [Answer(calls=[tool_call("a", "c1"), tool_call("b", "c2")])],
        tools=[plain_tool("a", done()), plain_tool("b", done())],
    )

    assert seen.transcript[-1] == "result c2: ok"


async def test_a_request_follows_when_one_result_does_not_terminate() -> None:
    seen = await play(
        [Answer(calls=[tool_call("a", "c1"), tool_call("b", "c2")]), "Done."],
        tools=[plain_tool("a", done()), plain_tool("b")],
    )

    assert seen.transcript[-1] == "assistant[stop]: Done."


async def test_follow_ups_are_taken_after_results_that_terminate() -> None:
    calls: list[str] = []

    seen = await play(
        [Answer(calls=[tool_call("a", "c1")]), "Done."],
        tools=[plain_tool("a", done())],
        hooks=polls(calls, follow_ups={1: "go on"}),
    )

    assert seen.transcript[-2:] == ["user: go on", "assistant[stop]: Done."]


async def test_a_hook_may_take_terminate_away() -> None:
    async def after_tool_call(_details: object) -> ToolResultPatch:
        return ToolResultPatch(terminate=False)

    seen = await play(
        [Answer(calls=[tool_call("a", "c1")]), "Done."],
        tools=[plain_tool("a", done())],
        hooks=Hooks(after_tool_call=after_tool_call),
    )

    assert seen.transcript[-1] == "assistant[stop]: Done."
