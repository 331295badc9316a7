"""Steering and follow-ups of an agent: modes, previews, and what stays in a queue."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from loop_kit import scripted_agent, shorts, spoken, text_of

from trio_agent import (
    AgentEvent,
    MessageEnd,
    ModelError,
    TurnEnd,
)
from trio_agent.testing import Answer


async def test_steering_one_at_a_time_takes_one_message_a_turn() -> None:
    agent, scripted = scripted_agent("One.", "Two.", "Three.")
    for text in ("a", "b", "c"):
        agent.steer(text)

    await agent.prompt("go")

    assert [len(request.messages) for request in scripted.requests] == [2, 4, 6]
    assert spoken(agent) == [
        "user: go",
        "user: a",
        "assistant[stop]: One.",
        "user: b",
        "assistant[stop]: Two.",
        "user: c",
        "assistant[stop]: Three.",
    ]


async def test_steering_all_takes_what_waits_at_once() -> None:
    agent, _ = scripted_agent("One.", steering_mode="all")
    agent.steer("a")
    agent.steer("b")

    await agent.prompt("go")

    assert spoken(agent) == ["user: go", "user: a", "user: b", "assistant[stop]: One."]


async def test_follow_ups_one_at_a_time_get_an_answer_each() -> None:
    agent, _ = scripted_agent("One.", "Two.", "Three.")
    agent.follow_up("a")
    agent.follow_up("b")

    await agent.prompt("go")

    assert spoken(agent)[2:] == ["user: a", "assistant[stop]: Two.", "user: b", "assistant[stop]: Three."]


async def test_follow_ups_all_are_answered_together() -> None:
    agent, _ = scripted_agent("One.", "Two.", follow_up_mode="all")
    agent.follow_up("a")
    agent.follow_up("b")

    await agent.prompt("go")

    assert spoken(agent)[2:] == ["user: a", "user: b", "assistant[stop]: Two."]


async def test_a_queue_mode_counts_at_once() -> None:
    agent, _ = scripted_agent("One.", "Two.")
    for text in ("a", "b", "c"):
        agent.steer(text)

    def switch(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd) and text_of(event.message) == "a":
            agent.steering_mode = "all"

    agent.subscribe(switch)
    await agent.prompt("go")

    assert spoken(agent)[3:] == ["user: b", "user: c", "assistant[stop]: Two."]


@pytest.mark.parametrize("name", ["steering_mode", "follow_up_mode"])
def test_an_unknown_queue_mode_is_refused(name: str) -> None:
    agent, _ = scripted_agent()

    with pytest.raises(ValueError, match="'one-at-a-time' or 'all', not 'some'"):
        setattr(agent, name, "some")
    with pytest.raises(ValueError, match="'one-at-a-time' or 'all', not 'some'"):
        scripted_agent(**{name: "some"})


def test_the_preview_shows_what_would_be_taken_next() -> None:
    agent, _ = scripted_agent()
    agent.follow_up("f1")
    agent.follow_up("f2")
    assert shorts(agent.queued()) == ["user: f1"]

    agent.steer("s1")
    agent.steer("s2")
    assert shorts(agent.queued()) == ["user: s1"]

    agent.steering_mode = "all"
    assert shorts(agent.queued()) == ["user: s1", "user: s2"]
    assert shorts(agent.queued_steering) == ["user: s1", "user: s2"]
    assert shorts(agent.queued_follow_ups) == ["user: f1", "user: f2"]


def test_a_queue_can_be_cleared_without_touching_the_other() -> None:
    agent, _ = scripted_agent()
    agent.steer("s")
    agent.follow_up("f")

    agent.clear_steering()
    assert shorts(agent.queued()) == ["user: f"]

    agent.clear_follow_ups()
    assert agent.queued() == ()


async def test_queues_survive_a_failed_answer_for_the_next_run() -> None:
    agent, _ = scripted_agent(Answer(fail=ModelError("down")), "One.", "Two.")

    def late(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd) and agent.state.error_message == "down":
            agent.steer("s")
            agent.follow_up("f")

    with agent.subscribe(late):
        await agent.prompt("go")
    assert [shorts(agent.queued_steering), shorts(agent.queued_follow_ups)] == [["user: s"], ["user: f"]]

    await agent.prompt("again")
    assert spoken(agent)[2:] == ["user: again", "user: s", "assistant[stop]: One.", "user: f", "assistant[stop]: Two."]


async def test_a_message_taken_and_not_arrived_goes_back_to_the_front_of_its_queue() -> None:
    agent, _ = scripted_agent("One.", steering_mode="all")
    agent.steer("a")
    agent.steer("b")
    agent.steer("c")

    def stop(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd) and text_of(event.message) == "a":
            agent.steer("d")
            agent.abort()

    agent.subscribe(stop)
    await agent.prompt("go")

    assert spoken(agent)[:2] == ["user: go", "user: a"]
    assert shorts(agent.queued_steering) == ["user: b", "user: c", "user: d"]


async def test_steering_and_aborting_never_block_and_are_no_checkpoints() -> None:
    agent, _ = scripted_agent()

    with trio.testing.assert_no_checkpoints():
        agent.steer("x")
        agent.follow_up("y")
        agent.abort()


def test_an_agent_can_be_steered_before_trio_runs() -> None:
    agent, _ = scripted_agent("One.")
    agent.steer("be brief")

    trio.run(agent.prompt, "go")

    assert spoken(agent) == ["user: go", "user: be brief", "assistant[stop]: One."]
