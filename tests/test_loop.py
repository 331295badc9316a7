"""Rules of the loop: the order of a run, when queues are polled, and how answers of every kind end a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from loop_kit import outline, plain_tool, play, polls, shorts, user

from trio_agent import (
    AgentMessage,
    Context,
    Hooks,
    ModelError,
    TurnDetails,
    TurnUpdate,
)
from trio_agent.lowlevel import LoopConfig, run_agent_loop
from trio_agent.testing import Answer, ScriptedModel, tool_call


async def test_a_run_with_a_tool_sends_its_events_in_the_documented_order() -> None:
    seen = await play(
        [Answer(text="Let me see.", calls=[tool_call("work", "c1")]), "Done."], tools=[plain_tool("work")]
    )

    assert seen.outline == [
        "agent_start",
        "turn_start",
        "> system: +work",
        "< system: +work",
        "> user: go",
        "< user: go",
        "> assistant",
        "< assistant[toolUse]: Let me see. work(c1)",
        "start c1",
        "end c1",
        "> result c1: ok",
        "< result c1: ok",
        "turn_end toolUse 1",
        "turn_start",
        "> assistant",
        "< assistant[stop]: Done.",
        "turn_end stop 0",
        "agent_end 5",
    ]


async def test_hooks_and_queues_are_asked_in_the_documented_order() -> None:
    calls: list[str] = []

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done.", "More."],
        tools=[plain_tool("work")],
        hooks=polls(calls, follow_ups={1: "and then?"}),
    )

    assert calls == [
        "steering",
        "prepare_request",
        "finish_turn",
        "should_stop",
        "steering",
        "prepare_next_turn",
        "steering",
        "prepare_request",
        "finish_turn",
        "should_stop",
        "steering",
        "follow-ups",
        "prepare_next_turn",
        "prepare_request",
        "finish_turn",
        "should_stop",
        "steering",
        "follow-ups",
    ]
    assert seen.transcript[-3:] == ["assistant[stop]: Done.", "user: and then?", "assistant[stop]: More."]


async def test_finish_turn_is_asked_before_the_turn_ends() -> None:
    events: list[Any] = []
    lines_at_hook: list[str] = []

    async def finish_turn(_details: TurnDetails) -> None:
        lines_at_hook.extend(outline(events)[-1:])

    scripted = ScriptedModel(["Done."])
    await run_agent_loop(
        [user("go")],
        Context(),
        LoopConfig(model=scripted.model, hooks=Hooks(finish_turn=finish_turn)),
        events.append,
        scripted,
    )

    assert lines_at_hook == ["< assistant[stop]: Done."]


async def test_steering_found_after_preparing_the_next_turn_goes_into_that_turn() -> None:
    calls: list[str] = []

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=polls(calls, steering={3: "hurry"}),
    )

    assert seen.transcript[2:] == [
        "assistant[toolUse]: work(c1)",
        "result c1: ok",
        "user: hurry",
        "assistant[stop]: Done.",
    ]


async def test_steering_is_not_polled_twice_when_there_was_some() -> None:
    calls: list[str] = []

    await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=polls(calls, steering={2: "hurry", 3: "never reached before the request"}),
        max_turns=2,
    )

    assert calls[4:8] == ["steering", "prepare_next_turn", "prepare_request", "finish_turn"]


async def test_steering_of_the_first_poll_comes_before_the_first_request() -> None:
    calls: list[str] = []

    seen = await play(["Done."], hooks=polls(calls, steering={1: "briefly"}))

    assert seen.requests == [["user: go", "user: briefly"]]


async def test_prompts_are_committed_before_the_first_steering_poll() -> None:
    events: list[Any] = []
    at_poll: list[list[str]] = []

    async def get_steering_messages() -> Sequence[AgentMessage]:
        at_poll.append(outline(events))
        return ()

    scripted = ScriptedModel(["Done."])
    await run_agent_loop(
        [user("go")],
        Context(),
        LoopConfig(model=scripted.model, hooks=Hooks(get_steering_messages=get_steering_messages)),
        events.append,
        scripted,
    )

    assert at_poll[0] == ["agent_start", "turn_start", "> user: go", "< user: go"]


async def test_follow_ups_wait_until_steering_is_done() -> None:
    calls: list[str] = []

    seen = await play(["One.", "Two.", "Three."], hooks=polls(calls, steering={2: "steer"}, follow_ups={1: "follow"}))

    assert seen.transcript == [
        "user: go",
        "assistant[stop]: One.",
        "user: steer",
        "assistant[stop]: Two.",
        "user: follow",
        "assistant[stop]: Three.",
    ]


async def test_messages_of_prepare_next_turn_come_before_steering() -> None:
    added = iter([TurnUpdate(messages=[user("reminder")]), None])

    async def prepare_next_turn(_details: TurnDetails) -> TurnUpdate | None:
        return next(added)

    steering = iter([(), [user("steer")], ()])

    async def get_steering_messages() -> Sequence[AgentMessage]:
        return next(steering)

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(prepare_next_turn=prepare_next_turn, get_steering_messages=get_steering_messages),
    )

    assert seen.transcript[3:] == ["result c1: ok", "user: reminder", "user: steer", "assistant[stop]: Done."]


async def test_prepare_next_turn_is_not_asked_when_no_turn_follows() -> None:
    calls: list[str] = []

    await play(["Done."], hooks=polls(calls))

    assert "prepare_next_turn" not in calls


# -- answers of every kind ---------------------------------------------------------------------------------------------


async def test_calls_of_an_answer_that_was_cut_off_are_answered_and_not_run() -> None:
    ran: list[str] = []

    async def before_tool_call(_details: object) -> None:
        ran.append("asked")

    seen = await play(
        [Answer(calls=[tool_call("work", "c1"), tool_call("work", "c2")], stop_reason="length"), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(before_tool_call=before_tool_call),
    )

    text = (
        'Tool call "work" was not executed: the answer reached its output limit, so its arguments may be incomplete. '
        "Send the call again."
    )
    assert ran == []
    assert seen.transcript[2:] == [
        "assistant[length]: work(c1) work(c2)",
        f"error c1: {text}",
        f"error c2: {text}",
        "assistant[stop]: Done.",
    ]


async def test_complete_calls_under_the_label_stop_are_run_and_the_label_stays() -> None:
    seen = await play(
        [Answer(calls=[tool_call("work", "c1")], stop_reason="stop"), "Done."], tools=[plain_tool("work")]
    )

    assert seen.transcript[2:4] == ["assistant[stop]: work(c1)", "result c1: ok"]


async def test_the_label_tool_use_without_calls_ends_the_turn() -> None:
    seen = await play([Answer(text="Hm.", stop_reason="toolUse")])

    assert seen.transcript == ["user: go", "assistant[toolUse]: Hm."]


@pytest.mark.parametrize("reason", ["error", "aborted"])
async def test_calls_of_a_failed_answer_are_neither_run_nor_answered_and_queues_stay(reason: Any) -> None:
    calls: list[str] = []

    seen = await play(
        [Answer(text="Wait", calls=[tool_call("work", "c1")], stop_reason=reason, error_message="broken")],
        tools=[plain_tool("work")],
        hooks=polls(calls, follow_ups={1: "never"}),
    )

    assert calls == ["steering", "prepare_request", "finish_turn"]
    assert seen.outline[-4:] == [
        "> assistant",
        f"< assistant[{reason}]: Wait work(c1)",
        f"turn_end {reason} 0",
        "agent_end 3",
    ]


async def test_two_calls_with_the_same_id_get_different_ids_and_a_result_each() -> None:
    seen = await play(
        [Answer(calls=[tool_call("a", "c"), tool_call("b", "c")]), "Done."],
        tools=[plain_tool("a", "one"), plain_tool("b", "two")],
    )

    answer, *results, _ = seen.messages[2:]
    ids = [call.id for call in answer.tool_calls]  # type: ignore[union-attr]
    assert ids[0] == "c"
    assert len(set(ids)) == 2
    assert shorts(results) == [f"result {ids[0]}: one", f"result {ids[1]}: two"]
    assert [line for line in seen.outline if line.startswith("start")] == [f"start {ids[0]}", f"start {ids[1]}"]
    assert sorted(line for line in seen.outline if line.startswith("end")) == [f"end {ids[0]}", f"end {ids[1]}"]


async def test_a_stream_that_fails_keeps_what_had_arrived_and_ends_the_run() -> None:
    seen = await play([Answer(text="Half a", fail=ModelError("gone"), fail_after=3)])

    assert seen.transcript == ["user: go", "assistant[error]: Half a"]
    assert seen.messages[-1].error_message == "gone"  # type: ignore[union-attr]
    assert seen.outline[-4:] == ["> assistant", "< assistant[error]: Half a", "turn_end error 0", "agent_end 2"]
