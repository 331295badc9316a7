"""What an agent shows: settings and when they count, its state at each event, and what a run leaves."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from loop_kit import done, outline, plain_tool, scripted_agent, short, shorts, spoken, user
from msgspec.structs import replace

from trio_agent import (
    AgentError,
    AgentEvent,
    Hooks,
    MessageEnd,
    ModelError,
    StreamOptions,
    ToolExecutionStart,
    Usage,
)
from trio_agent.testing import Answer, Gate, ScriptedModel, check_transcript, record, tool_call


async def test_settings_changed_during_a_run_count_from_the_next_run_on() -> None:
    gate = Gate()
    agent, scripted = scripted_agent(
        Answer(calls=[tool_call("gate", "c1")]), "One.", "Two.", tools=[gate.tool], options=StreamOptions(max_tokens=1)
    )
    asked: list[str] = []

    async def finish_turn(_details: object) -> None:
        asked.append("new hooks")

    other = ScriptedModel(model=None).model

    def change(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionStart):
            agent.model = other
            agent.thinking_level = "high"
            agent.tools = (plain_tool("fresh"),)
            agent.options = StreamOptions(max_tokens=2)
            agent.hooks = Hooks(finish_turn=finish_turn)
            agent.tool_execution = "sequential"
            gate.open()

    with agent.subscribe(change):
        await agent.prompt("go")

    assert asked == []
    seen = [(r.model is other, r.options.reasoning, r.options.max_tokens) for r in scripted.requests]
    assert seen == [(False, None, 1), (False, None, 1)]
    assert [[tool.name for tool in request.tools] for request in scripted.requests] == [["gate"], ["gate"]]

    await agent.prompt("again")

    last = scripted.requests[-1]
    assert (last.model is other, last.options.reasoning, last.options.max_tokens) == (True, "high", 2)
    assert [tool.name for tool in last.tools] == ["fresh"]
    assert asked == ["new hooks"]
    assert "system: +fresh -gate" in shorts(agent.messages)


def test_two_tools_of_one_name_are_refused() -> None:
    agent, _ = scripted_agent()

    with pytest.raises(AgentError, match="two tools are named 'a'"):
        agent.tools = (plain_tool("a"), plain_tool("a"))

    assert agent.tools == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_turns", 0), ("tool_timeout", 0), ("tool_timeout", -1.0), ("closing_grace", -1), ("tool_execution", "both")],
)
def test_settings_without_sense_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        scripted_agent(**{name: value})


async def test_the_hooks_that_poll_queues_are_not_for_agents() -> None:
    async def none() -> tuple[()]:
        return ()

    agent, _ = scripted_agent(hooks=Hooks(get_steering_messages=none))

    with pytest.raises(ValueError, match=r"call steer\(\) and follow_up\(\)"):
        await agent.prompt("go")
    assert not agent.is_running


# -- what a run leaves -------------------------------------------------------------------------------------------------


def tokens(count: int) -> Usage:
    return replace(Usage.zero(), input=count, output=1, total_tokens=count + 1)


async def test_the_result_sums_the_usage_and_counts_the_turns() -> None:
    agent, _ = scripted_agent(
        Answer(calls=[tool_call("work", "c1")], usage=tokens(10)),
        Answer(text="Done.", usage=tokens(20)),
        tools=[plain_tool("work")],
    )

    result = await agent.prompt("go")

    assert (result.text, result.stop_reason, result.turns) == ("Done.", "stop", 2)
    assert (result.usage.input, result.usage.output, result.usage.total_tokens) == (30, 2, 32)
    assert result.message is agent.messages[-1]
    assert result.raise_for_error() is result


async def test_a_failed_answer_is_a_result_that_raises_on_demand() -> None:
    agent, _ = scripted_agent(Answer(fail=ModelError("the server is down")))

    result = await agent.prompt("go")

    assert result.stop_reason == "error"
    assert agent.state.error_message == "the server is down"
    with pytest.raises(ModelError, match="'scripted' ended as error: the server is down"):
        result.raise_for_error()


async def test_the_error_is_forgotten_by_the_next_run() -> None:
    agent, _ = scripted_agent(Answer(fail=ModelError("down")), "Up.")
    await agent.prompt("go")

    await agent.prompt("again")

    assert agent.state.error_message is None


async def test_a_run_that_terminates_has_the_last_answer_as_its_text() -> None:
    agent, _ = scripted_agent(Answer(text="Bye.", calls=[tool_call("work", "c1")]), tools=[plain_tool("work", done())])

    assert (await agent.prompt("go")).text == "Bye."


async def test_the_state_follows_before_a_listener_sees_the_event() -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "c1")]), "Done.", tools=[plain_tool("work")])
    seen: list[tuple[str, int, tuple[str, ...], bool]] = []

    def listener(event: AgentEvent) -> None:
        state = agent.state
        lines = outline([event])
        if lines:
            streaming = state.streaming_message is not None
            seen.append((lines[0], len(state.messages), state.pending_tool_calls, streaming))

    agent.subscribe(listener)
    await agent.prompt("go")

    assert seen == [
        ("agent_start", 1, (), False),
        ("turn_start", 1, (), False),
        ("> user: go", 1, (), True),
        ("< user: go", 2, (), False),
        ("> assistant", 2, (), True),
        ("< assistant[toolUse]: work(c1)", 3, (), False),
        ("start c1", 3, ("c1",), False),
        ("end c1", 3, (), False),
        ("> result c1: ok", 3, (), True),
        ("< result c1: ok", 4, (), False),
        ("turn_end toolUse 1", 4, (), False),
        ("turn_start", 4, (), False),
        ("> assistant", 4, (), True),
        ("< assistant[stop]: Done.", 5, (), False),
        ("turn_end stop 0", 5, (), False),
        ("agent_end 4", 5, (), False),
    ]


async def test_the_messages_of_an_agent_are_a_snapshot() -> None:
    agent, _ = scripted_agent("Hello.")
    before = agent.messages

    await agent.prompt("Hi")

    assert list(before) == []
    assert len(agent.messages) == 2


async def test_messages_can_be_set_while_no_run_is_on() -> None:
    agent, _ = scripted_agent("Hello.")

    agent.messages = [user("Hi")]
    await agent.continue_()

    assert spoken(agent) == ["user: Hi", "assistant[stop]: Hello."]


async def test_handlers_of_an_answer_have_finished_before_its_tools_are_prepared(
    autojump_clock: trio.testing.MockClock,
) -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call("work", "c1")]), "Done.", tools=[plain_tool("work")])
    order: list[str] = []

    async def listener(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd) and short(event.message).startswith("assistant[toolUse]"):
            await trio.sleep(5)
            order.append("handled")

    async def before_tool_call(_details: object) -> None:
        order.append("prepared")

    agent.hooks = Hooks(before_tool_call=before_tool_call)
    agent.subscribe(listener)
    with record(agent) as events:
        await agent.prompt("go")

    assert order == ["handled", "prepared"]
    check_transcript(agent.messages)
    assert outline(events)[-1] == "agent_end 4"
